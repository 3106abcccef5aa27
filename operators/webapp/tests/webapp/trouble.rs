use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Call, Outcome, consistently, eventually};
use watchkeeper_webapp::WebApp;

use crate::world::{World, is_operators, spec, webapp};

fn creates_deployment(call: &Call) -> bool {
    is_operators(call) && call.is_write() && call.resource == "deployments"
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_told_and_tried_again_slowly_until_there_is_room() {
    let world = World::new().await;
    let operator = world.operator().await;
    let message =
        "deployments.apps \"shop\" is forbidden: exceeded quota: few, requested: count/deployments.apps=1";
    let quota = world.env.fault(move |call| match creates_deployment(call) {
        true => Outcome::reject(403, "Forbidden", message),
        false => Outcome::pass(),
    });
    world.person.create(&webapp("shop", spec())).await.unwrap();
    let degraded = || world.condition("shop", "Degraded");
    eventually(|| async { degraded().await == Some(("True".into(), "QuotaExceeded".into())) }).await;
    assert_eq!(world.condition("shop", "Progressing").await.unwrap(), ("False".into(), "Stuck".into()));

    // Ten minutes of it: two tries a minute, and not one write of a status that says the same.
    let before = world.env.request_count();
    consistently(|| async { true }).throughout(Duration::from_secs(600)).await;
    let tries = world.sent(before, creates_deployment);
    assert!((15..=25).contains(&tries), "{tries} tries");
    assert_eq!(world.sent(before, |call| call.is_write() && call.resource == "webapps"), 0);

    quota.lift();
    eventually(|| async { world.deployment("shop").await.is_some() }).within(Duration::from_secs(40)).await;
    eventually(|| async { degraded().await == Some(("False".into(), "AsExpected".into())) }).await;
    operator.stop().await;
    let events = world.person.live().list::<Event>().await.unwrap();
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("QuotaExceeded")));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_cannot_be_one_of_a_service_is_told_once() {
    let world = World::new().await;
    let operator = world.operator().await;
    // Fine for a WebApp, and not for a Service.
    world.person.create(&webapp("my.shop", spec())).await.unwrap();
    eventually(|| async {
        world.condition("my.shop", "Degraded").await == Some(("True".into(), "Refused".into()))
    })
    .await;
    let app = world.app("my.shop").await.unwrap();
    let conditions = &app.status.as_ref().unwrap().conditions;
    assert!(conditions.iter().any(|condition| condition.message.contains("metadata.name")), "{conditions:?}");
    let before = world.env.request_count();
    let calm = consistently(|| async { world.sent(before, |call| call.is_write()) == 0 });
    calm.throughout(Duration::from_secs(600)).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_of_somebody_else_is_left_alone() {
    let world = World::new().await;
    let operator = world.operator().await;
    let theirs = json!({"metadata": {"name": "boss", "namespace": "default"}});
    let boss = world
        .person
        .create(&serde_json::from_value::<ConfigMap>(theirs).unwrap())
        .await
        .unwrap()
        .into_object();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": boss.metadata.uid, "controller": true});
    let theirs = json!({"metadata": {"name": "shop", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"replicas": 9, "selector": {"matchLabels": {"a": "b"}}, "template":
            {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let theirs: Deployment = serde_json::from_value(theirs).unwrap();
    world.person.create(&theirs).await.unwrap();
    world.person.create(&webapp("shop", spec())).await.unwrap();
    eventually(|| async {
        world.condition("shop", "Degraded").await == Some(("True".into(), "NameTaken".into()))
    })
    .await;
    assert_eq!(world.deployment("shop").await.unwrap()["spec"]["replicas"], json!(9));
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_is_told_at_once_and_forgotten_when_it_can() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let template = world.deployment("shop").await.unwrap()["spec"]["template"].clone();
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shop-1", "namespace": "default", "labels": template["metadata"]["labels"]},
        "spec": template["spec"]});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    world.person.create(&pod).await.unwrap();
    let waits = |reason: &'static str| {
        let world = &world;
        async move {
            let pod = world.person.live().get::<Pod>(&key("shop-1")).await.unwrap().unwrap();
            let status = json!({"containerStatuses": [{"name": "web", "image": "nginx:1.29", "imageID": "",
                "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason}}}]});
            let status: k8s_openapi::api::core::v1::PodStatus = serde_json::from_value(status).unwrap();
            world
                .person
                .status(&*pod)
                .set(move |pod: &mut Pod| pod.status = Some(status.clone()))
                .await
                .unwrap();
        }
    };
    waits("ErrImagePull").await;
    eventually(|| async {
        world.condition("shop", "Degraded").await == Some(("True".into(), "BadImage".into()))
    })
    .within(Duration::from_secs(1))
    .await;
    // It alternates for as long as it is tried, and that is not news.
    let before = world.env.request_count();
    for reason in ["ImagePullBackOff", "ErrImagePull"].repeat(10) {
        waits(reason).await;
        consistently(|| async { true }).await;
    }
    assert_eq!(world.sent(before, |call| call.verb != "watch"), 0);
    waits("ContainerCreating").await;
    eventually(|| async { world.condition("shop", "Degraded").await.unwrap().0 == "False" }).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_is_stuck_is_told() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let stuck = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "m"});
    world.report("shop", json!({"observedGeneration": 1, "conditions": [stuck]})).await;
    let degraded = || world.condition("shop", "Degraded");
    eventually(|| async { degraded().await == Some(("True".into(), "ProgressDeadlineExceeded".into())) })
        .await;
    world.report("shop", json!({"observedGeneration": 1})).await;
    eventually(|| async { degraded().await.unwrap().0 == "False" }).await;
    world.person.delete_key::<WebApp>(&key("shop")).await.unwrap();
    operator.stop().await;
}
