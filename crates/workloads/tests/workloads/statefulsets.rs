use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};
use watchkeeper_testkit::eventually;
use watchkeeper_workloads::Timing;

use crate::place::{Place, template};

fn set(replicas: i32, more: Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("db:1"),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    for (key, value) in more.as_object().unwrap() {
        set["spec"][key] = value.clone();
    }
    set
}

fn image(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().containers[0].image.as_deref().unwrap()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

async fn complete(place: &Place, replicas: i32) {
    eventually(|| async {
        let set = place.get::<StatefulSet>("db").await.unwrap();
        let status = set.status.clone().unwrap_or_default();
        let counts = [
            Some(status.replicas),
            status.ready_replicas,
            status.updated_replicas,
            status.available_replicas,
        ];
        let is = counts.iter().all(|count| count.unwrap_or(0) == replicas)
            && status.observed_generation == set.metadata.generation
            && status.current_revision == status.update_revision;
        if is { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .within(std::time::Duration::from_secs(60))
    .await;
}

#[tokio::test(start_paused = true)]
async fn pods_come_in_order_and_go_in_the_opposite_one() {
    let place = Place::new(Timing::default()).await;
    place.create::<StatefulSet>(set(3, json!({}))).await;
    let check = |pods: &[std::sync::Arc<Pod>]| {
        let names: Vec<_> = pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
        let expected: Vec<_> = (0..names.len()).map(|ordinal| format!("db-{ordinal}")).collect();
        assert_eq!(names, expected);
        let before_last = pods.iter().rev().skip(1);
        assert!(before_last.into_iter().all(|pod| is_ready(pod)), "{names:?}");
    };
    eventually(|| async {
        let pods = place.pods().await;
        check(&pods);
        pods.len() == 3 && pods.iter().all(|pod| is_ready(pod))
    })
    .await;
    complete(&place, 3).await;
    place.modify::<StatefulSet>("db", |set| set.spec.replicas = Some(1)).await;
    eventually(|| async {
        let pods = place.pods().await;
        check(&pods);
        pods.len() == 1
    })
    .await;
    complete(&place, 1).await;
    let claims: Vec<_> = place
        .list::<PersistentVolumeClaim>()
        .await
        .iter()
        .map(|claim| claim.metadata.name.clone().unwrap())
        .collect();
    assert_eq!(claims, ["data-db-0", "data-db-1", "data-db-2"]);
    let pod = &place.pods().await[0];
    assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some("db-0"));
    assert_eq!(pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0].name, "data");
}

#[tokio::test(start_paused = true)]
async fn an_update_goes_from_the_last_pod_down_to_the_partition() {
    let place = Place::new(Timing::default()).await;
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    place.create::<StatefulSet>(set(3, json!({"updateStrategy": strategy}))).await;
    complete(&place, 3).await;
    let update = |image: &'static str| {
        move |set: &mut StatefulSet| {
            set.spec.template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
        }
    };
    place.modify::<StatefulSet>("db", update("db:2")).await;
    place.settled().await;
    let images: Vec<_> = place.pods().await.iter().map(|pod| image(pod).to_owned()).collect();
    assert_eq!(images, ["db:1", "db:1", "db:2"]);
    let status = place.get::<StatefulSet>("db").await.unwrap().status.clone().unwrap();
    assert_eq!((status.current_replicas, status.updated_replicas), (Some(2), Some(1)));
    assert_ne!(status.current_revision, status.update_revision);

    // A pod below the partition comes back as it was.
    place.delete::<Pod>("db-0").await;
    place.settled().await;
    assert_eq!(image(&place.pods().await[0]), "db:1");

    place
        .modify::<StatefulSet>("db", |set| {
            set.spec.update_strategy.as_mut().unwrap().rolling_update.as_mut().unwrap().partition = Some(0);
        })
        .await;
    eventually(|| async {
        let pods = place.pods().await;
        let ready =
            pods.iter().filter(|pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none()).count();
        assert!(ready >= 2, "only {ready} are ready");
        pods.len() == 3 && pods.iter().all(|pod| image(pod) == "db:2")
    })
    .await;
    complete(&place, 3).await;
    assert_eq!(place.list::<ControllerRevision>().await.len(), 2);
    // Back to the first one: its revision becomes the newest again.
    place.modify::<StatefulSet>("db", update("db:1")).await;
    complete(&place, 3).await;
    let numbers: Vec<_> =
        place.list::<ControllerRevision>().await.iter().filter_map(|one| one.revision).collect();
    assert_eq!(numbers.iter().max(), Some(&3));
    assert_eq!(numbers.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn parallel_pods_come_together() {
    let place = Place::new(Timing::default()).await;
    place.create::<StatefulSet>(set(5, json!({"podManagementPolicy": "Parallel"}))).await;
    eventually(|| async {
        let pods = place.pods().await;
        assert!(pods.iter().all(|pod| !is_ready(pod)) || pods.len() == 5);
        pods.len() == 5
    })
    .await;
    complete(&place, 5).await;
    place.modify::<StatefulSet>("db", |set| set.spec.replicas = Some(0)).await;
    complete(&place, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_the_node() {
    let place = Place::new(Timing::default()).await;
    let value = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("agent:1")},
    });
    place.create::<DaemonSet>(value).await;
    let available = |image_wanted: &'static str| {
        let place = &place;
        eventually(move || async move {
            let set = place.get::<DaemonSet>("agent").await.unwrap();
            let status = set.status.clone().unwrap_or_default();
            let pods = place.pods().await;
            status.number_available == Some(1)
                && status.updated_number_scheduled == Some(1)
                && pods.len() == 1
                && image(&pods[0]) == image_wanted
        })
    };
    available("agent:1").await;
    place
        .modify::<DaemonSet>("agent", |set| {
            set.spec.template.spec.as_mut().unwrap().containers[0].image = Some("agent:2".into());
        })
        .await;
    available("agent:2").await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_a_set_goes_and_so_do_its_claims() {
    use k8s_openapi::api::core::v1::Namespace;
    let place = Place::new(Timing::default()).await;
    place.create::<Namespace>(json!({"metadata": {"name": "other"}})).await;
    let mut set = set(3, json!({}));
    set["metadata"]["namespace"] = "other".into();
    place.create::<StatefulSet>(set).await;
    let live = place.client.live();
    let of = |name: String| watchkeeper_core::Key::new(Some("other"), &name);
    eventually(|| async {
        let last = live.get::<Pod>(&of("db-2".into())).await.unwrap();
        let claim = live.get::<PersistentVolumeClaim>(&of("data-db-2".into())).await.unwrap();
        claim.is_some() && last.is_some_and(|pod| is_ready(&pod))
    })
    .within(std::time::Duration::from_secs(60))
    .await;
    let other = watchkeeper_core::Key::new(None, "other");
    place.client.delete_key::<Namespace>(&other).await.unwrap();
    eventually(|| async { live.get::<Namespace>(&other).await.unwrap().is_none() })
        .within(std::time::Duration::from_secs(60))
        .await;
}
