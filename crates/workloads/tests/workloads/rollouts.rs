//! Rollouts as a watcher sees them, and as they are when the simulation is stopped in the middle.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Api;
use kube_core::params::WatchParams;
use kube_core::watch::WatchEvent;
use serde_json::json;
use watchkeeper_testkit::Outcome;
use watchkeeper_workloads::Timing;

use crate::place::{Place, deployment, set_image};

fn is_available(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

/// The most pods that were not asked to go, and the fewest that were available, over all states that a watcher saw.
struct Extremes {
    most: usize,
    fewest: usize,
}

/// Follows the pods while something happens.
async fn during(place: &Place, happens: impl Future<Output = ()>) -> Extremes {
    let api: Api<Pod> = Api::default_namespaced(place.env.client());
    let list = api.list(&Default::default()).await.unwrap();
    let mut pods: BTreeMap<String, Pod> =
        list.items.into_iter().map(|pod| (pod.metadata.name.clone().unwrap(), pod)).collect();
    let params = WatchParams::default().timeout(290);
    let mut events =
        Box::pin(api.watch(&params, list.metadata.resource_version.as_deref().unwrap()).await.unwrap());
    let mut seen = Extremes { most: 0, fewest: usize::MAX };
    let mut happens = std::pin::pin!(happens);
    let mut over = false;
    loop {
        let event = tokio::select! {
            biased;
            event = events.next() => event,
            () = &mut happens, if !over => { over = true; continue }
            () = tokio::time::sleep(Duration::from_secs(2)), if over => return seen,
        };
        match event.unwrap().unwrap() {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                pods.insert(pod.metadata.name.clone().unwrap(), pod);
            }
            WatchEvent::Deleted(pod) => {
                pods.remove(pod.metadata.name.as_deref().unwrap());
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => panic!("{error:?}"),
        }
        let there = pods.values().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
        seen.most = seen.most.max(there);
        seen.fewest = seen.fewest.min(pods.values().filter(|pod| is_available(pod)).count());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_never_leaves_its_bounds() {
    // Size, surge, unavailable; then the most pods and the fewest available ones there may be.
    let cases = [
        (4, json!("25%"), json!("25%"), 5, 3),
        (10, json!(3), json!(0), 13, 10),
        (10, json!(0), json!("30%"), 10, 7),
        (3, json!("100%"), json!("1%"), 6, 3),
        (1, json!(0), json!("25%"), 1, 0),
    ];
    for (size, surge, unavailable, most, fewest) in cases {
        let place = Place::new(Timing::default()).await;
        let mut value = deployment(size, "web:1");
        value["spec"]["strategy"] =
            json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        place.create::<Deployment>(value).await;
        place.rolled_out("web").await;
        let rollout = async {
            place.modify::<Deployment>("web", |web| set_image(web, "web:2")).await;
            place.rolled_out("web").await;
            // And one that is overtaken by another in the middle.
            place.modify::<Deployment>("web", |web| set_image(web, "web:3")).await;
            tokio::time::sleep(Duration::from_millis(700)).await;
            place.modify::<Deployment>("web", |web| set_image(web, "web:4")).await;
            place.rolled_out("web").await;
        };
        let seen = during(&place, rollout).await;
        let case = format!("{size} with surge {surge} and unavailable {unavailable}");
        assert!(seen.most <= most, "{case}: {} pods", seen.most);
        assert!(seen.fewest >= fewest, "{case}: {} available", seen.fewest);
        assert!(seen.most == most || seen.fewest == fewest, "{case}: the bounds are not used");
    }
}

/// The decisions alone are tried under far more schedules, see `deployment/schedules`.
#[tokio::test(start_paused = true)]
async fn a_rollout_stays_within_its_bounds_when_writes_and_answers_are_late() {
    for seed in [1, 3, 5, 7] {
        let place = Place::new(Timing::default()).await;
        let mut value = deployment(10, "web:1");
        value["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 0}});
        place.create::<Deployment>(value).await;
        place.rolled_out("web").await;
        let rng = parking_lot::Mutex::new(fastrand::Rng::with_seed(seed));
        let late = place.env.fault(move |call| {
            let some = || Duration::from_millis(rng.lock().u64(0..4) * 100);
            if call.is_write() {
                Outcome::pass().delayed(some()).answered_late(some())
            } else {
                Outcome::pass()
            }
        });
        let rollout = async {
            for image in ["web:2", "web:3", "web:2", "web:1"] {
                place.modify::<Deployment>("web", |web| set_image(web, image)).await;
                tokio::time::sleep(Duration::from_millis(500 * seed)).await;
            }
            place.rolled_out("web").await;
        };
        let seen = during(&place, rollout).await;
        drop(late);
        assert!(seen.most <= 13, "seed {seed}: {} pods", seen.most);
        assert!(seen.fewest >= 10, "seed {seed}: {} available", seen.fewest);
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_wherever_it_was_stopped() {
    for moment in (0..24).map(|step| step * 130) {
        let mut place = Place::new(Timing::default()).await;
        place.create::<Deployment>(deployment(4, "web:1")).await;
        place.rolled_out("web").await;
        place.modify::<Deployment>("web", |web| set_image(web, "web:2")).await;
        place.modify::<Deployment>("web", |web| web.spec.replicas = Some(6)).await;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        place.stop().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        place.start().await;
        place.rolled_out("web").await;
        place.settled().await;
        let pods = place.pods().await;
        assert_eq!(pods.len(), 6, "stopped after {moment} ms");
        let mut addresses: Vec<_> =
            pods.iter().map(|pod| pod.status.as_ref().unwrap().pod_ip.clone().unwrap()).collect();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 6, "stopped after {moment} ms");
        assert!(
            pods.iter().all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("web:2"))
        );
        assert_eq!(place.sets().await.len(), 2, "stopped after {moment} ms");
    }
}

#[tokio::test]
async fn a_thousand_pods_are_a_matter_of_seconds() {
    let place = Place::new(Timing::instant()).await;
    let began = std::time::Instant::now();
    place.create::<Deployment>(deployment(1000, "web:1")).await;
    place.rolled_out("web").await;
    // Even in a build for tests, on a busy machine.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(place.pods().await.len(), 1000);
}
