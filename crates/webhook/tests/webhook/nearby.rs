//! An API server at a loopback address that may be somewhere else.

use std::fmt;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};
use watchkeeper::prelude::*;
use watchkeeper_testkit::{TestEnv, eventually};

use crate::certificates::CONFIGURATION;
use crate::kinds::v1::App;
use crate::world::{ask, started};

/// The warnings of this thread, a message each.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

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
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let running = started(manager(&env).await).await;
    let served = running.webhook_address().unwrap();
    let told = format!(
        "webhooks are served on {served}, and nobody asks them: the API server is on another machine. Make a tunnel for TCP from a host \
         and a port that it reaches to 127.0.0.1:9443 (TLS ends here), and start with --webhook-url https://HOST:PORT; it is going to \
         ask for /validate-example-com-v1-app. In a cluster no tunnel is needed"
    );
    let said = warnings.0.lock().unwrap().clone();
    assert!(said.contains(&told), "{told:?} is not in {said:?}");
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
