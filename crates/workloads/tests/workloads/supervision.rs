use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use watchkeeper_workloads::Timing;

use crate::place::{Place, template};

fn deployment(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1"),
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_workload_of_absurd_size_costs_itself_only() {
    let mut place = Place::new(Timing::default()).await;
    let never = json!({
        "metadata": {"labels": {"app": "huge"}},
        "spec": {
            "terminationGracePeriodSeconds": i64::MAX,
            "containers": [{"name": "c", "image": "does-not-exist"}],
        },
    });
    let set = json!({
        "metadata": {"name": "huge", "namespace": "default"},
        "spec": {
            "replicas": i32::MAX, "minReadySeconds": i32::MAX, "serviceName": "huge",
            "selector": {"matchLabels": {"app": "huge"}}, "template": never,
        },
    });
    place.create::<StatefulSet>(set).await;
    let mut late = never.clone();
    late["metadata"]["labels"] = json!({});
    late["spec"]["restartPolicy"] = "Never".into();
    let job = json!({
        "metadata": {"name": "late", "namespace": "default"},
        "spec": {
            "completions": i32::MAX, "completionMode": "Indexed", "activeDeadlineSeconds": i64::MAX,
            "ttlSecondsAfterFinished": i32::MAX, "template": late,
        },
    });
    place.create::<Job>(job).await;
    place.create::<Deployment>(deployment("web", 3)).await;
    place.rolled_out("web").await;
    place.settled().await;
    let pods = place.pods().await;
    assert_eq!(pods.len(), 5, "three of the Deployment, one of each other");
    let of_set = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).find(|name| *name == "huge-0");
    place.delete::<Pod>(of_set.unwrap()).await;
    place.settled().await;
    assert_eq!(place.supervisor().panics("controller pod"), 0);
    assert_eq!(place.not_ready(), []);
    place.stop().await;
}

#[tokio::test(start_paused = true)]
async fn workloads_go_on_after_a_panic_of_any_of_their_controllers() {
    let mut place = Place::new(Timing::default()).await;
    place.create::<Deployment>(deployment("web", 1)).await;
    let supervisor = place.supervisor();
    let tasks = supervisor.tasks();
    let controllers: Vec<_> = tasks.iter().filter(|task| task.starts_with("controller ")).collect();
    assert_eq!(controllers.len(), 7, "{controllers:?}");
    for (controller, replicas) in controllers.into_iter().zip(2..) {
        supervisor.inject(controller);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(supervisor.panics(controller) > 0, "{controller} was not told to panic");
        place.modify::<Deployment>("web", |web| web.spec.replicas = Some(replicas)).await;
        place.rolled_out("web").await;
        assert_eq!(place.not_ready(), [], "{controller}");
    }
    place.stop().await;
}
