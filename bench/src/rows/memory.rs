//! What it costs to hold objects, and to list them again. Exact: bytes asked of the allocator.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use watchkeeper_bench_report::{Row, Target, Unit};
use watchkeeper_informer::Policy;

use crate::measure::{MEMORY, cpu_time};
use crate::peers::{Kind, ours, peer};
use crate::rows::{PEER, Size, runtime};
use crate::sample::Sample;
use crate::server::Fixture;

/// Bytes per object, and the peak while listing again as a multiple of that.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    /// Bytes in use per object once synced.
    pub per_object: f64,
    /// The largest number of bytes in use during a second list, divided by those in use before it.
    pub relist_peak: f64,
    /// Seconds of CPU time that the second list took.
    pub relist_cpu: f64,
}

/// Ours, with everything the informer has: client, source, store, indexes by namespace and owner.
pub fn our_footprint<K: Kind>(fixture: &Arc<Fixture>, policy: Policy) -> Footprint {
    runtime().block_on(async {
        let base = MEMORY.in_use();
        let ours = ours::<K>(fixture, policy).await;
        let steady = MEMORY.in_use() - base;
        MEMORY.reset_peak();
        let before = cpu_time();
        let unchanged = ours.informer.store().len();
        let _ = ours.go.send(true);
        let mut status = ours.informer.watch_status();
        // The log expires; the source is asked for everything again, and then follows without an error.
        let _ = status.wait_for(|sources| sources[0].error.is_some()).await;
        let _ = status.wait_for(|sources| sources[0].error.is_none()).await;
        assert_eq!(ours.informer.store().len(), unchanged);
        footprint(fixture, steady, MEMORY.peak() - base, cpu_time() - before)
    })
}

/// The peer: client, watcher, store.
pub fn peer_footprint<K: Kind>(fixture: &Arc<Fixture>) -> Footprint {
    runtime().block_on(async {
        let base = MEMORY.in_use();
        let mut peer = peer::<K>(fixture);
        peer.sync().await;
        let steady = MEMORY.in_use() - base;
        MEMORY.reset_peak();
        let before = cpu_time();
        let _ = peer.go.send(true);
        peer.sync().await;
        assert_eq!(peer.store.len(), fixture.items().len());
        footprint(fixture, steady, MEMORY.peak() - base, cpu_time() - before)
    })
}

fn footprint(fixture: &Fixture, steady: usize, peak: usize, relist: Duration) -> Footprint {
    Footprint {
        per_object: steady as f64 / fixture.items().len() as f64,
        relist_peak: peak as f64 / steady as f64,
        relist_cpu: relist.as_secs_f64(),
    }
}

const GROUP: &str = "memory";

/// All rows.
pub fn rows(size: Size) -> Vec<Row> {
    let mut rows = Vec::new();
    let pods = Fixture::expiring(Sample::Pod, size.objects);
    let maps = Fixture::expiring(Sample::ConfigMap, size.objects);
    kind::<Pod>(&mut rows, "5.9 kB Pod", &pods, [Some(6.0), Some(20.0), Some(1.0), None]);
    kind::<ConfigMap>(&mut rows, "1.1 kB ConfigMap", &maps, [None, None, Some(1.0), None]);
    rows
}

fn kind<K: Kind>(rows: &mut Vec<Row>, what: &str, fixture: &Arc<Fixture>, targets: [Option<f64>; 4]) {
    let peer = peer_footprint::<K>(fixture);
    let policies = [Policy::Packed, Policy::Compressed, Policy::Typed, Policy::Metadata];
    for (policy, target) in policies.into_iter().zip(targets) {
        let ours = our_footprint::<K>(fixture, policy);
        let bytes = format!("memory per {what}, {policy:?}");
        let bytes = Row::new(GROUP, bytes, Unit::Bytes, ours.per_object.into());
        let bytes = bytes.beside(PEER, peer.per_object.into());
        rows.push(Row { target: target.map(Target::TimesBetter), ..bytes });
        if policy == Policy::Packed {
            let peak = format!("re-list peak / steady, {what}, {policy:?}");
            let peak = Row::new(GROUP, peak, Unit::Number, ours.relist_peak.into());
            rows.push(peak.beside(PEER, peer.relist_peak.into()).aims(Target::Value(1.15)));
        }
    }
}
