//! An API server at a loopback address that may be somewhere else.

use serde_json::{Value, json};
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
    let env = TestEnv::builder().listening().start().await;
    // An address for documentation: that of a node of a cluster in containers, as seen from here.
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "endpoints": [{"addresses": ["203.0.113.7"]}], "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let (code, answer) = ask(&env, "POST", slices, &slice).await;
    assert_eq!(code, 201, "{answer}");
    let running = started(manager(&env).await).await;
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 404);
    running.stop().await;
}

#[tokio::test]
async fn a_server_of_this_machine_is_told_of_webhooks_as_soon_as_it_answers() {
    let env = TestEnv::builder().listening().start().await;
    let slow = env.deny(|call| call.is_of("endpointslices"));
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
