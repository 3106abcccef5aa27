//! A program that stops: reviews are answered to the end, and nothing is left behind that nobody serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use watchkeeper::prelude::*;
use watchkeeper::webhooks::{Reached, WebhookOptions};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::certificates::CONFIGURATION;
use crate::hostile::post;
use crate::kinds::v1::App;
use crate::world::{APPS_V1, ask, started};

const PATH: &str = "/validate-example-com-v1-app";

fn review(name: &str) -> String {
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": name}, "spec": {}});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": "CREATE", "object": object},
    })
    .to_string()
}

/// Whether a review was allowed.
fn is_allowed((code, answer): &(u16, String)) -> bool {
    *code == 200 && serde_json::from_str::<Value>(answer).unwrap()["response"]["allowed"] == true
}

#[tokio::test]
async fn reviews_are_answered_while_a_program_stops_however_short_its_grace_is() {
    let env = TestEnv::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let webhook = Webhook::of::<App>().validate_async(move |app: Arc<App>, _, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            if app.metadata.name.as_deref() == Some("slow") {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            Verdict::allow()
        }
    });
    let mut options = WebhookOptions::default();
    options.address = Some(([127, 0, 0, 1], 0).into());
    options.reached = Reached::Service("apps-webhook".into());
    let manager = Manager::new("apps", env.connection()).install::<App>().webhook(webhook);
    let running = started(manager.webhook_options(options).grace(Duration::from_millis(200))).await;
    let (address, observer) = (running.webhook_address().unwrap(), running.observer());

    let slow = tokio::spawn(post(address, PATH, "application/json", review("slow")));
    eventually(|| async { asked.load(Ordering::Relaxed) == 1 }).await;
    let stopped = tokio::spawn(running.stop());
    eventually(|| async {
        observer.not_ready().iter().any(|(check, why)| check == "running" && why == "stopping")
    })
    .await;
    let late = post(address, PATH, "application/json", review("late")).await;
    assert!(is_allowed(&late), "{late:?}");
    let slow = slow.await.unwrap();
    assert!(is_allowed(&slow), "{slow:?}");
    assert!(!stopped.is_finished(), "API servers may not have heard of it yet");
    stopped.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "it has stopped");
}

#[tokio::test]
async fn configurations_go_with_a_program_also_if_a_reconcile_uses_up_its_grace() {
    let env = TestEnv::start().await;
    env.install::<App>().await;
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let controller = Controller::of::<App>().reconcile(move |_: Arc<App>, _: Context<App>| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Result<Action>>()
    });
    let webhook =
        Webhook::of::<App>().validate(|_: &App, _: Option<&App>, _: &AdmissionRequest| Verdict::allow());
    let manager = Manager::new("apps", env.connection()).controller(controller).webhook(webhook);
    let running = started(manager.grace(Duration::from_secs(1))).await;
    let app = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "a"}, "spec": {}});
    assert_eq!(ask(&env, "POST", APPS_V1, &app).await.0, 201);
    eventually(|| async { begun.load(Ordering::Relaxed) == 1 }).await;
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 200);
    // The API server is not quick about it.
    let slow = env.fault(|call| match call.verb {
        "delete" => watchkeeper_testkit::Outcome::pass().delayed(Duration::from_millis(300)),
        _ => watchkeeper_testkit::Outcome::pass(),
    });
    let stopped = running.stop().await;
    assert_eq!(stopped.dropped, 1);
    slow.lift();
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 404);
}
