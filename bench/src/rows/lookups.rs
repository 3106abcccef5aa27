//! Reading: by key, by namespace, by a label, and decoding what is held packed.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_runtime::reflector::ObjectRef;
use watchkeeper_bench_report::Row;
use watchkeeper_core::Key;
use watchkeeper_informer::{Object, Policy};

use crate::measure::cpu_time;
use crate::peers::{ours, peer};
use crate::rows::{Size, row, runtime};
use crate::sample::{NAMESPACES, Sample};
use crate::server::Fixture;

const LOOKUPS: usize = 200;
/// How many decoded values a packed store keeps by default.
const KEPT: usize = 16;

const GROUP: &str = "lookups";

/// All rows.
pub fn rows(size: Size) -> Vec<Row> {
    let fixture = Fixture::new(Sample::Pod, size.objects, 0, 0);
    let runtime = runtime();
    let (ours, peer) = runtime.block_on(async {
        let mut peer = peer::<Pod>(&fixture);
        peer.sync().await;
        (ours::<Pod>(&fixture, Policy::Packed).await, peer)
    });
    let store = ours.informer.store();
    let by_app = store.index("app", |pod: &Object<Pod>| Ok(pod.metadata()?.labels.remove("app")));
    let keys: Vec<_> = store.list().iter().map(|pod| pod.key().clone()).collect();
    let names: Vec<_> = keys.iter().map(name).collect();

    let by_key = row(
        GROUP,
        format!("get 1 of {} by key, CPU", size.objects),
        size,
        LOOKUPS * 100,
        || timed(LOOKUPS * 100, |n| drop(black_box(store.get(&keys[n % keys.len()])))),
        || timed(LOOKUPS * 100, |n| drop(black_box(peer.store.get(&names[n % names.len()])))),
        None,
    );
    let by_namespace = row(
        GROUP,
        format!("list 1 of {NAMESPACES} namespaces of {} Pods, CPU", size.objects),
        size,
        LOOKUPS,
        || timed(LOOKUPS, |n| drop(black_box(store.in_namespace(&format!("team-{}", n % NAMESPACES))))),
        || {
            timed(LOOKUPS, |n| {
                let namespace = format!("team-{}", n % NAMESPACES);
                drop(black_box(peer.store.state_filter(|pod| pod.namespace().as_ref() == Some(&namespace))));
            })
        },
        Some(1.0),
    );
    let by_label = row(
        GROUP,
        format!("list by a label, 1 of 200 values, {} Pods, CPU", size.objects),
        size,
        LOOKUPS,
        || timed(LOOKUPS, |n| drop(black_box(by_app.get(&format!("service-{}", n % 200))))),
        || {
            timed(LOOKUPS, |n| {
                let app = format!("service-{}", n % 200);
                drop(black_box(peer.store.state_filter(|pod| pod.labels().get("app") == Some(&app))));
            })
        },
        Some(1.0),
    );
    let objects = store.list();
    let bodies: Vec<Arc<[u8]>> =
        objects.iter().filter_map(|object| object.json()).map(|json| Arc::from(&*json)).collect();
    // The store keeps the last few decoded values; whoever decodes without it and keeps them as long pays as much for
    // memory that is not warm.
    let mut kept = VecDeque::with_capacity(KEPT);
    let decode = row(
        GROUP,
        "read a packed Pod typed / decode the same bytes once, CPU".into(),
        size,
        objects.len(),
        || timed(objects.len(), |n| drop(black_box(objects[n].get()))),
        || {
            timed(bodies.len(), |n| {
                if kept.len() == KEPT {
                    kept.pop_front();
                }
                kept.push_back(black_box(serde_json::from_slice::<Pod>(&bodies[n])));
            })
        },
        Some(1.0 / 1.1),
    );
    vec![by_key, by_namespace, by_label, decode]
}

/// What the peer calls a key of ours.
pub(super) fn name(key: &Key) -> ObjectRef<Pod> {
    ObjectRef::new(key.name()).within(key.namespace().unwrap_or_default())
}

pub(super) fn timed(times: usize, mut work: impl FnMut(usize)) -> Duration {
    let before = cpu_time();
    (0..times).for_each(&mut work);
    cpu_time() - before
}
