use std::time::Duration;

use serde_json::json;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Call, consistently, eventually};
use watchkeeper_webapp::WebApp;

use crate::world::{World, spec};

fn is_write(call: &Call) -> bool {
    call.is_write()
}

#[tokio::test(start_paused = true)]
async fn a_new_webapp_takes_three_writes_and_then_nothing_is_asked() {
    let world = World::new().await;
    let operator = world.operator().await;
    let before = world.env.request_count();
    world.settled("shop", spec()).await;
    consistently(|| async { true }).await;
    // The Deployment, the Service, the status.
    assert_eq!(world.sent(before, is_write), 3);
    assert_eq!(world.sent(before, |call| !call.is_write() && call.verb != "watch"), 0);

    let before = world.env.request_count();
    let calm = consistently(|| async { world.sent(before, |call| call.verb != "watch") == 0 });
    calm.throughout(Duration::from_secs(60)).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_comes_back_writes_nothing() {
    let world = World::new().await;
    world.operator().await.stop().await;
    let operator = world.operator().await;
    for name in ["one", "two", "three"] {
        world.settled(name, spec()).await;
    }
    operator.stop().await;
    let before = world.env.request_count();
    let operator = world.operator().await;
    consistently(|| async { world.sent(before, is_write) == 0 }).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_status_follows_the_deployment_with_one_write_for_each_step() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    assert_eq!(world.condition("shop", "Available").await, Some(("False".into(), "TooFewReplicas".into())));
    assert_eq!(world.condition("shop", "Progressing").await, Some(("True".into(), "RollingOut".into())));

    let before = world.env.request_count();
    let available = json!([{"type": "Available", "status": "True"}]);
    let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1,
        "availableReplicas": 1, "conditions": available});
    world.report("shop", status.clone()).await;
    eventually(|| async { world.app("shop").await.unwrap().status.clone().unwrap().ready_replicas == 1 })
        .await;
    assert_eq!(world.condition("shop", "Available").await.unwrap().0, "True");
    assert_eq!(world.condition("shop", "Progressing").await.unwrap().0, "True");

    let mut all = status;
    all["readyReplicas"] = json!(2);
    all["availableReplicas"] = json!(2);
    world.report("shop", all).await;
    eventually(|| async {
        world.condition("shop", "Progressing").await.unwrap() == ("False".into(), "Done".into())
    })
    .await;
    let status = world.app("shop").await.unwrap().status.clone().unwrap();
    assert_eq!((status.replicas, status.ready_replicas, status.observed_generation), (2, 2, Some(1)));
    assert_eq!(status.service_url.as_deref(), Some("http://shop.default.svc"));
    assert_eq!(world.sent(before, is_write), 2);

    // The counts are still those of the old image: nobody has looked at the new one yet.
    world.person.modify::<WebApp>(&key("shop"), |app| app.spec.image = "nginx:2".into()).await.unwrap();
    eventually(|| async {
        world.condition("shop", "Progressing").await.unwrap() == ("True".into(), "RollingOut".into())
    })
    .await;
    operator.stop().await;
}
