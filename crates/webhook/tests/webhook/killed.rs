//! A replica that is killed at any write of a rotation: the next one brings the rotation to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;
use watchkeeper::prelude::*;
use watchkeeper::webhooks::Rotation;
use watchkeeper_testkit::{Outcome, TestEnv, eventually};

use crate::certificates::{CONFIGURATION, SECRET};
use crate::rotation::{Endpoints, options, replica_of};
use crate::world::{APPS_DEFINITION, APPS_V2, ask};

/// The user that is killed.
const FIRST: &str = "first";

/// What becomes of the write that is on its way.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// It does not arrive.
    Lost,
    /// It is done, and its sender does not hear of it.
    Done,
}

fn rotation() -> Rotation {
    let mut rotation = Rotation::default();
    (rotation.settle, rotation.overlap) = (Duration::from_millis(20), Duration::from_millis(20));
    rotation
}

/// Kills a replica at this write, counted from 1, and has another one take over. False if a whole rotation has fewer writes.
async fn kill_at(number: usize, last: Last) -> bool {
    let endpoints = Endpoints::default();
    let env = TestEnv::builder().options(options(&endpoints).await).start().await;
    let (writes, reached) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let reaches = Arc::clone(&reached);
    env.fault(move |call| {
        if call.user != FIRST || !call.is_write() || call.is_of("events") {
            return Outcome::pass();
        }
        let at = writes.fetch_add(1, Ordering::Relaxed) + 1;
        if at < number {
            return Outcome::pass();
        }
        reaches.notify_one();
        match last {
            Last::Done if at == number => Outcome::swallow(),
            _ => Outcome::hang(),
        }
    })
    .keep();

    let first = env.connection_as(FIRST, &["system:masters"]);
    let first = replica_of(first, rotation()).start().await.unwrap();
    let life = async {
        first.ready().await;
        let before = signer(&env).await;
        let asks = json!({"metadata": {"annotations": {"webhook.watchkeeper.dev/rotate": "now"}}});
        assert_eq!(ask(&env, "PATCH", SECRET, &asks).await.0, 200);
        eventually(|| async { is_steady(&env).await && signer(&env).await != before }).await;
        eventually(|| async { are_published(&env).await }).await;
    };
    let is_killed = tokio::select! {
        () = reached.notified() => true,
        () = life => false,
    };
    drop(first);
    if !is_killed {
        return false;
    }

    let (second, _) = endpoints.join(&env, rotation()).await;
    eventually(|| async { is_steady(&env).await && are_published(&env).await }).await;
    eventually(|| async { second.not_ready().is_empty() }).await;
    for (size, wanted) in [(11, 422), (3, 201)] {
        let app = json!({
            "apiVersion": "example.com/v2", "kind": "App", "metadata": {"name": format!("a{size}")},
            "spec": {"replicas": size},
        });
        let (code, answer) = ask(&env, "POST", APPS_V2, &app).await;
        assert_eq!(code, wanted, "killed at write {number}, {last:?}: {answer}");
    }
    drop(second);
    true
}

async fn signer(env: &TestEnv) -> Value {
    ask(env, "GET", SECRET, &Value::Null).await.1["data"]["current.crt"].clone()
}

/// Whether there is one authority, and nobody wants another one.
async fn is_steady(env: &TestEnv) -> bool {
    let (_, secret) = ask(env, "GET", SECRET, &Value::Null).await;
    let data = &secret["data"];
    let asked = &secret["metadata"]["annotations"]["webhook.watchkeeper.dev/rotate"];
    data["current.crt"].is_string()
        && [&data["next.crt"], &data["previous.crt"], asked].into_iter().all(Value::is_null)
}

/// Whether every configuration shows the one authority and no other.
async fn are_published(env: &TestEnv) -> bool {
    let (_, configuration) = ask(env, "GET", CONFIGURATION, &Value::Null).await;
    let (_, definition) = ask(env, "GET", APPS_DEFINITION, &Value::Null).await;
    let signer = signer(env).await;
    configuration["webhooks"][0]["clientConfig"]["caBundle"] == signer
        && definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == signer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_at_any_write_of_a_rotation_is_replaced_by_the_next_one() {
    for last in [Last::Lost, Last::Done] {
        let mut number = 1;
        while kill_at(number, last).await {
            number += 1;
        }
        // The Secret is written four times, and each of two configurations as often.
        assert!(number > 12, "{} writes", number - 1);
    }
}
