use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use watchkeeper::client::Kind;
use watchkeeper_testkit::eventually;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_webapp::{Http, WebApp, WebAppSpec};

use crate::world::{World, spec};

const SOON: Duration = Duration::from_secs(1);
const CONTAINER: &str = "/spec/template/spec/containers/0";

fn set(path: &str, value: Value) -> Value {
    json!([{"op": "replace", "path": path, "value": value}])
}

fn add(path: &str, value: Value) -> Value {
    json!([{"op": "add", "path": path, "value": value}])
}

fn remove(path: &str) -> Value {
    json!([{"op": "remove", "path": path}])
}

/// Does something to a child that should not last, and sees that it does not.
async fn edited<K: Kind>(world: &World, edits: Vec<Value>) {
    let before = world.seen::<K>("shop").await.unwrap();
    for edit in edits {
        assert_ne!(world.edit::<K>("shop", edit.clone()).await, before, "{edit} changed nothing");
        eventually(|| async {
            let now = world.seen::<K>("shop").await.ok_or("it is gone")?;
            if now == before { Ok(()) } else { Err(format!("after {edit}:\n{now}\nand not\n{before}")) }
        })
        .within(SOON)
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_is_edited_in_the_deployment_is_put_back() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let at = |field: &str| format!("{CONTAINER}/{field}");
    let edits = vec![
        set("/spec/replicas", json!(7)),
        set(&at("image"), json!("evil:1")),
        set(&at("name"), json!("other")),
        set(&at("ports/0/containerPort"), json!(1)),
        set(&at("ports/0/name"), json!("other")),
        set(&at("ports/0/protocol"), json!("UDP")),
        set(&at("env/0/value"), json!("changed")),
        set(&at("env/0/name"), json!("RENAMED")),
        remove(&at("env/0")),
        remove(&at("env")),
        remove(&at("ports")),
        add(&at("env/-"), json!({"name": "EXTRA", "value": "1"})),
        add(&at("env/0"), json!({"name": "EXTRA", "value": "1"})),
        add(&at("ports/-"), json!({"containerPort": 9})),
        add(&at("command"), json!(["sh"])),
        add(&at("args"), json!(["-c", "true"])),
        add(&at("envFrom"), json!([{"configMapRef": {"name": "x"}}])),
        add("/spec/template/spec/containers/-", json!({"name": "miner", "image": "evil:2"})),
        add("/spec/template/spec/containers/0", json!({"name": "miner", "image": "evil:2"})),
        add("/spec/template/spec/initContainers", json!([{"name": "miner", "image": "evil:2"}])),
        remove("/metadata/labels"),
        set("/metadata/labels/app.kubernetes.io~1instance", json!("other")),
        remove("/metadata/ownerReferences"),
    ];
    edited::<Deployment>(&world, edits).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_is_edited_in_the_service_is_put_back() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let edits = vec![
        set("/spec/ports/0/port", json!(81)),
        set("/spec/ports/0/targetPort", json!(1)),
        set("/spec/ports/0/name", json!("other")),
        set("/spec/ports/0/protocol", json!("UDP")),
        add("/spec/ports/-", json!({"name": "more", "port": 90})),
        set("/spec/selector/app.kubernetes.io~1instance", json!("other")),
        add("/spec/selector/more", json!("x")),
        remove("/spec/selector"),
        set("/spec/type", json!("NodePort")),
        remove("/metadata/labels"),
        remove("/metadata/ownerReferences"),
    ];
    edited::<Service>(&world, edits).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_deleted_comes_back() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let (deployment, service) = (world.deployment("shop").await, world.service("shop").await);
    for _ in 0..3 {
        world.person.delete_key::<Deployment>(&key("shop")).await.unwrap();
        eventually(|| async { world.deployment("shop").await == deployment }).within(SOON).await;
        world.person.delete_key::<Service>(&key("shop")).await.unwrap();
        eventually(|| async { world.service("shop").await.is_some() }).within(SOON).await;
    }
    // All but the address, which is another one.
    let without_address = |mut service: Value| {
        service["spec"]["clusterIP"].take();
        service["spec"]["clusterIPs"].take();
        service
    };
    let now = world.service("shop").await.unwrap();
    assert_eq!(without_address(now), without_address(service.unwrap()));
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_own_is_left_to_them() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let restart = "/spec/template/metadata/annotations";
    world.edit::<Deployment>("shop", add(restart, json!({"kubectl.kubernetes.io/restartedAt": "now"}))).await;
    world.edit::<Deployment>("shop", add("/metadata/labels/team", json!("sales"))).await;
    let resources = json!({"limits": {"cpu": "1"}});
    world.edit::<Deployment>("shop", add(&format!("{CONTAINER}/resources"), resources)).await;
    let expected = world.deployment("shop").await;
    // The operator has looked at it: what it declares follows.
    world.person.modify::<WebApp>(&key("shop"), |app| app.spec.replicas = 5).await.unwrap();
    eventually(|| async { world.deployment("shop").await.unwrap()["spec"]["replicas"] == json!(5) }).await;
    let mut now = world.deployment("shop").await.unwrap();
    now["spec"]["replicas"] = json!(2);
    assert_eq!(Some(now), expected);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_field_of_the_spec_reaches_the_children_and_what_is_no_longer_wanted_goes() {
    let world = World::new().await;
    let operator = world.operator().await;
    world.settled("shop", spec()).await;
    let wanted = WebAppSpec {
        image: "httpd:2".into(),
        replicas: 3,
        http: Http { port: 9090 },
        environment: [("C".into(), "3".into())].into(),
    };
    world.person.modify::<WebApp>(&key("shop"), |app| app.spec = wanted.clone()).await.unwrap();
    eventually(|| async { world.deployment("shop").await.unwrap()["spec"]["replicas"] == json!(3) }).await;
    let now = world.deployment("shop").await.unwrap();
    let container = &now["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "httpd:2");
    assert_eq!(container["ports"], json!([{"name": "web", "containerPort": 9090, "protocol": "TCP"}]));
    assert_eq!(container["env"], json!([{"name": "C", "value": "3"}]));
    world.person.modify::<WebApp>(&key("shop"), |app| app.spec.environment.clear()).await.unwrap();
    let env = || async {
        world.deployment("shop").await.unwrap()["spec"]["template"]["spec"]["containers"][0]["env"].take()
    };
    eventually(|| async { env().await.is_null() }).await;

    world.person.delete_key::<WebApp>(&key("shop")).await.unwrap();
    eventually(|| async {
        world.deployment("shop").await.is_none() && world.service("shop").await.is_none()
    })
    .await;
    operator.stop().await;
}
