//! How costs grow with the number of objects or items.

use std::hint::black_box;

use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use watchkeeper_bench_report::{Curve, Point, Report, Samples, Unit};
use watchkeeper_informer::{Object, Policy};

use crate::measure::alternate;
use crate::peers::{ours, peer};
use crate::rows::memory::{our_footprint, peer_footprint};
use crate::rows::{PEER, Size, events, lookups, queue, runtime};
use crate::sample::Sample;
use crate::server::Fixture;

/// By how much the counts differ from one point to the next.
const STEPS: [usize; 3] = [1, 4, 16];
/// How often something is looked up in a round.
const LOOKUPS: usize = 200;
/// Different values of the label that is looked up.
const VALUES: usize = 200;

/// All curves.
pub fn curves(size: Size) -> Report {
    let [mut sync, mut memory, mut relist, mut queued, mut by_key, mut by_label] = [
        ("first sync of Pods, Packed, CPU", Unit::Seconds),
        ("memory of Pods, Packed", Unit::Bytes),
        ("re-list of Pods, Packed, CPU", Unit::Seconds),
        ("queue: add all, get and finish all, CPU", Unit::Seconds),
        ("get 1 Pod by key, CPU", Unit::Seconds),
        ("list Pods by a label, 1 of 200 values, CPU", Unit::Seconds),
    ]
    .map(|(what, unit)| Curve {
        group: "growth".into(),
        what: what.into(),
        unit,
        peer_name: Some(PEER.into()),
        points: Vec::new(),
    });
    for step in STEPS {
        let pods = size.objects / 4 * step;
        let add = |curve: &mut Curve, count: usize, (ours, peer): (Samples, Samples)| {
            curve.points.push(Point { count: count as f64, ours, peer });
        };
        let fixture = Fixture::new(Sample::Pod, pods, 0, 0);
        let synced = alternate(
            size.rounds,
            1,
            || events::our_sync::<Pod>(&fixture, Policy::Packed),
            || events::peer_sync::<Pod>(&fixture),
        );
        add(&mut sync, pods, synced);
        let found = found(&fixture, size);
        add(&mut by_key, pods, found.0);
        add(&mut by_label, pods, found.1);
        drop(fixture);
        let fixture = Fixture::expiring(Sample::Pod, pods);
        let (mut held, mut listed) = <((Samples, Samples), (Samples, Samples))>::default();
        for _ in 0..size.rounds {
            let ours = our_footprint::<Pod>(&fixture, Policy::Packed);
            let peer = peer_footprint::<Pod>(&fixture);
            held.0.push(ours.per_object * pods as f64);
            held.1.push(peer.per_object * pods as f64);
            listed.0.push(ours.relist_cpu);
            listed.1.push(peer.relist_cpu);
        }
        add(&mut memory, pods, held);
        add(&mut relist, pods, listed);
        let items = size.changes * step;
        let worked = alternate(size.rounds, 1, || queue::ours_alone(items), || queue::peer_alone(items));
        add(&mut queued, items, worked);
    }
    Report { curves: vec![sync, memory, relist, queued, by_key, by_label], ..Report::default() }
}

/// CPU time of a look-up by key, and of one by a label.
fn found(fixture: &std::sync::Arc<Fixture>, size: Size) -> ((Samples, Samples), (Samples, Samples)) {
    let runtime = runtime();
    let (ours, peer) = runtime.block_on(async {
        let mut peer = peer::<Pod>(fixture);
        peer.sync().await;
        (ours::<Pod>(fixture, Policy::Packed).await, peer)
    });
    let store = ours.informer.store();
    let by_app = store.index("app", |pod: &Object<Pod>| Ok(pod.metadata()?.labels.remove("app")));
    let keys: Vec<_> = store.list().iter().map(|pod| pod.key().clone()).collect();
    let names: Vec<_> = keys.iter().map(lookups::name).collect();
    // Far apart, so that what is close to each other in memory does not help.
    let at = |n: usize| n * 7_919 % keys.len();
    let app = |n: usize| format!("service-{}", n % VALUES);
    let many = LOOKUPS * 100;
    let by_key = alternate(
        size.rounds,
        many,
        || lookups::timed(many, |n| drop(black_box(store.get(&keys[at(n)])))),
        || lookups::timed(many, |n| drop(black_box(peer.store.get(&names[at(n)])))),
    );
    let by_label = alternate(
        size.rounds,
        LOOKUPS,
        || lookups::timed(LOOKUPS, |n| drop(black_box(by_app.get(&app(n))))),
        || {
            lookups::timed(LOOKUPS, |n| {
                let app = app(n);
                drop(black_box(peer.store.state_filter(|pod| pod.labels().get("app") == Some(&app))));
            })
        },
    );
    (by_key, by_label)
}
