//! CPU time from bytes to every subscriber.

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use watchkeeper_bench_report::Row;
use watchkeeper_informer::Policy;

use crate::measure::cpu_time;
use crate::peers::{ours, shared_peer};
use crate::rows::{Size, row, runtime};
use crate::sample::Sample;
use crate::server::Fixture;

const CHANGING: usize = 1_000;

const GROUP: &str = "delivery";

/// All rows.
pub fn rows(size: Size) -> Vec<Row> {
    let fixture = Fixture::new(Sample::Pod, CHANGING, size.changes, CHANGING);
    [1, 10]
        .into_iter()
        .map(|subscribers| {
            let our_side = || {
                runtime().block_on(async {
                    let ours = ours::<Pod>(&fixture, Policy::Packed).await;
                    let last = fixture.last_version();
                    let tasks: Vec<_> = (0..subscribers)
                        .map(|n| {
                            let mut changes = ours.informer.subscribe(&n.to_string());
                            tokio::spawn(async move {
                                while let Some(change) = changes.next().await {
                                    if change.newest().and_then(|pod| pod.version().number()) == Some(last) {
                                        break;
                                    }
                                }
                            })
                        })
                        .collect();
                    tokio::task::yield_now().await;
                    let before = cpu_time();
                    let _ = ours.go.send(true);
                    for task in tasks {
                        let _ = task.await;
                    }
                    cpu_time() - before
                })
            };
            let peer_side = || {
                runtime().block_on(async {
                    let (mut peer, handles) = shared_peer::<Pod>(&fixture, subscribers);
                    let last = fixture.last_version().to_string();
                    let tasks: Vec<_> = handles
                        .into_iter()
                        .map(|mut handle| {
                            let last = last.clone();
                            tokio::spawn(async move {
                                while let Some(pod) = handle.next().await {
                                    if pod.resource_version().as_ref() == Some(&last) {
                                        break;
                                    }
                                }
                            })
                        })
                        .collect();
                    peer.sync().await;
                    let before = cpu_time();
                    let _ = peer.go.send(true);
                    peer.reach(fixture.last_version()).await;
                    for task in tasks {
                        let _ = task.await;
                    }
                    cpu_time() - before
                })
            };
            let what = format!("decode, apply, deliver to {subscribers}, CPU per Pod change");
            row(GROUP, what, size, size.changes, our_side, peer_side, Some(3.0))
        })
        .collect()
}
