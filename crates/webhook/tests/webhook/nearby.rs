//! An API server at a loopback address that may be somewhere else.

use serde_json::Value;
use watchkeeper::prelude::*;
use watchkeeper_testkit::{TestEnv, eventually};

use crate::certificates::CONFIGURATION;
use crate::kinds::v1::App;
use crate::world::{ask, started};

async fn manager(env: &TestEnv) -> Manager {
    let connection = Connection::from_kubeconfig(env.kubeconfig(), None).await.unwrap();
    let webhook =
        Webhook::of::<App>().validate(|_: &App, _: Option<&App>, _: &AdmissionRequest| Verdict::allow());
    Manager::new("apps", connection).install::<App>().webhook(webhook)
}

#[tokio::test]
async fn a_server_behind_a_tunnel_is_not_told_of_webhooks_that_it_cannot_reach() {
    // An address for documentation: that of a node of a cluster in containers, as seen from here.
    let address = "203.0.113.7:6443".parse().unwrap();
    let env = TestEnv::builder().advertised(address).listening().start().await;
    let running = started(manager(&env).await).await;
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 404);
    running.stop().await;
}

#[tokio::test]
async fn a_server_of_this_machine_is_told_of_webhooks_as_soon_as_it_answers() {
    let env = TestEnv::builder().listening().start().await;
    let slow = env.deny(|call| call.path == "/api");
    let running = manager(&env).await.start().await.unwrap();
    eventually(|| async {
        running.not_ready().iter().any(|(check, why)| check == "webhooks" && why.contains("--webhook-url"))
    })
    .await;
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 404);
    slow.lift();
    tokio::time::timeout(Duration::from_secs(60), running.ready()).await.unwrap();
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 200);
    running.stop().await;
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 404);
}
