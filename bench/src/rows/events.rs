//! CPU time from bytes to the store: the first sync, and changes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use watchkeeper_bench_report::Row;
use watchkeeper_informer::Policy;

use crate::measure::cpu_time;
use crate::peers::{Kind, ours, peer};
use crate::rows::{Size, row, runtime};
use crate::sample::Sample;
use crate::server::Fixture;

/// How many objects take part in the changes.
const CHANGING: usize = 1_000;

const GROUP: &str = "events";

/// All rows.
pub fn rows(size: Size) -> Vec<Row> {
    let mut rows = Vec::new();
    for policy in [Policy::Packed, Policy::Typed] {
        let first = |target: f64| Some(if policy == Policy::Typed { 1.0 } else { target });
        let pods = Fixture::new(Sample::Pod, size.objects, 0, 0);
        rows.push(sync::<Pod>("Pod", &pods, policy, size, first(3.0)));
        let maps = Fixture::new(Sample::ConfigMap, size.objects, 0, 0);
        rows.push(sync::<ConfigMap>("ConfigMap", &maps, policy, size, first(3.0)));
        let pods = Fixture::new(Sample::Pod, CHANGING, size.changes, CHANGING);
        rows.push(changes::<Pod>("Pod", &pods, policy, size, first(3.0)));
        let maps = Fixture::new(Sample::ConfigMap, CHANGING, size.changes, CHANGING);
        rows.push(changes::<ConfigMap>("ConfigMap", &maps, policy, size, first(3.0)));
    }
    rows
}

/// The first sync of everything in the fixture.
fn sync<K: Kind>(kind: &str, fixture: &Arc<Fixture>, policy: Policy, size: Size, target: Option<f64>) -> Row {
    row(
        GROUP,
        format!("first sync, CPU per {kind}, {policy:?}"),
        size,
        size.objects,
        || our_sync::<K>(fixture, policy),
        || peer_sync::<K>(fixture),
        target,
    )
}

/// CPU time until ours has everything.
pub(super) fn our_sync<K: Kind>(fixture: &Arc<Fixture>, policy: Policy) -> Duration {
    runtime().block_on(async {
        let before = cpu_time();
        let ours = ours::<K>(fixture, policy).await;
        let took = cpu_time() - before;
        assert_eq!(ours.informer.store().len(), fixture.items().len());
        took
    })
}

/// CPU time until the peer has everything.
pub(super) fn peer_sync<K: Kind>(fixture: &Arc<Fixture>) -> Duration {
    runtime().block_on(async {
        let before = cpu_time();
        let mut peer = peer::<K>(fixture);
        peer.sync().await;
        let took = cpu_time() - before;
        assert_eq!(peer.store.len(), fixture.items().len());
        took
    })
}

fn changes<K: Kind>(
    kind: &str,
    fixture: &Arc<Fixture>,
    policy: Policy,
    size: Size,
    target: Option<f64>,
) -> Row {
    let our_side = || {
        runtime().block_on(async {
            let ours = ours::<K>(fixture, policy).await;
            let before = cpu_time();
            let _ = ours.go.send(true);
            ours.reach(fixture.last_version()).await;
            cpu_time() - before
        })
    };
    let peer_side = || {
        runtime().block_on(async {
            let mut peer = peer::<K>(fixture);
            peer.sync().await;
            let before = cpu_time();
            let _ = peer.go.send(true);
            peer.reach(fixture.last_version()).await;
            cpu_time() - before
        })
    };
    row(
        GROUP,
        format!("decode and apply a change, CPU per {kind}, {policy:?}"),
        size,
        size.changes,
        our_side,
        peer_side,
        target,
    )
}
