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

/// How long creates of another kind take: the 50th, the 99th and the last of a hundred.
async fn creates(env: &TestEnv, prefix: &str, count: usize) -> [Duration; 3] {
    let mut times = Vec::new();
    for number in 0..count {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{prefix}{number}")}});
        let begin = Instant::now();
        assert_eq!(ask(env, "POST", "/api/v1/namespaces/default/configmaps", &map).await.0, 201);
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    [times[count / 2], times[count * 99 / 100], times[count - 1]]
}

/// Times of creates before, and while a hundred writes of another kind wait for a webhook.
async fn measure(count: usize) -> [[Duration; 3]; 2] {
    let env = Arc::new(TestEnv::start().await);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let hangs = Webhook::of::<App>()
        .validate_async(move |_: Arc<App>, _, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Verdict>()
        })
        .timeout(Duration::from_secs(30));
    let running = started(Manager::new("apps", env.connection()).install::<App>().webhook(hangs)).await;
    let _ = creates(&env, "first", count / 4).await; // the first of all take longer
    let before = creates(&env, "before", count).await;

    let mut waiting = JoinSet::new();
    for number in 0..WAITING {
        let env = Arc::clone(&env);
        waiting.spawn(async move {
            let app = json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": format!("a{number}")}, "spec": {}});
            ask(&env, "POST", APPS_V1, &app).await.0
        });
    }
    eventually(|| async { asked.load(Ordering::Relaxed) == WAITING }).await;
    let during = creates(&env, "during", count).await;
    // They still wait: what was measured was measured beside them.
    assert!(waiting.try_join_next().is_none());
    waiting.abort_all();
    drop(running);
    [before, during]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_hangs_slows_no_other_kind() {
    let [before, during] = measure(200).await;
    assert!(during[0] < before[0] * 3 + Duration::from_millis(5), "{before:?} before, {during:?} during");
    assert!(during[2] < Duration::from_secs(5), "{during:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "compares times: for a quiet machine and a release build, part of make soak"]
async fn the_slowest_of_a_hundred_creates_is_at_most_a_fifth_slower_beside_one_that_hangs() {
    let mut seen = Vec::new();
    for _ in 0..5 {
        let [before, during] = measure(2_000).await;
        println!("{before:?} before, {during:?} during");
        seen.push(during[1].as_secs_f64() / before[1].as_secs_f64());
    }
    seen.sort_by(f64::total_cmp);
    assert!(seen[2] <= 1.2, "{seen:?}");
}
