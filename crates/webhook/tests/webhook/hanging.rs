//! A webhook that never decides holds up those who wait for it, and nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use watchkeeper::prelude::*;
use watchkeeper_testkit::{TestEnv, eventually};

use crate::kinds::v1::App;
use crate::world::{APPS_V1, ask, started};

const WAITING: usize = 100;

/// How long creates of another kind take, in the middle and at worst.
async fn creates(env: &TestEnv, prefix: &str) -> (Duration, Duration) {
    let mut times = Vec::new();
    for number in 0..200 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{prefix}{number}")}});
        let begin = Instant::now();
        assert_eq!(ask(env, "POST", "/api/v1/namespaces/default/configmaps", &map).await.0, 201);
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_hangs_slows_no_other_kind() {
    let env = Arc::new(TestEnv::start().await);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let hangs = Webhook::of::<App>()
        .validate_async(move |_: Arc<App>, _, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Verdict>()
        })
        .timeout(Duration::from_secs(20));
    let running = started(Manager::new("apps", env.connection()).install::<App>().webhook(hangs)).await;
    let (before, _) = creates(&env, "before").await;

    let mut waiting = JoinSet::new();
    for number in 0..WAITING {
        let env = Arc::clone(&env);
        waiting.spawn(async move {
            let app = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": format!("a{number}")}, "spec": {}});
            ask(&env, "POST", APPS_V1, &app).await.0
        });
    }
    eventually(|| async { asked.load(Ordering::Relaxed) == WAITING }).await;
    let (during, worst) = creates(&env, "during").await;
    // They still wait: what was measured was measured beside them.
    assert!(waiting.try_join_next().is_none());
    assert!(during < before * 3 + Duration::from_millis(5), "{before:?} before, {during:?} during");
    assert!(worst < Duration::from_secs(5), "{worst:?}");
    waiting.abort_all();
    drop(running);
}
