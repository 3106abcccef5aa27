//! Whether memory stays flat while 500 changes a second are reconciled and every third reconcile fails.
//!
//! `cargo bench -p watchkeeper-runtime --bench memory` runs for ten minutes, `-- 60` for one. Objects come and go, too, so
//! that whatever is kept about keys that are gone would show. Fails if the last third of the time needs a tenth more than the
//! middle one.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use watchkeeper_client::{Client, Patch};
use watchkeeper_core::Key;
use watchkeeper_queue::Backoff;
use watchkeeper_runtime::{Action, Context, Controller, Error, Manager};
use watchkeeper_testkit::TestEnv;

const PER_SECOND: u64 = 500;
const NAMES: u64 = 2_000;

/// Resident memory of this process in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn map(number: u64, version: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(format!("map-{number}")),
        namespace: Some("default".into()),
        ..ObjectMeta::default()
    };
    let data = [("version".to_owned(), version.to_string())].into();
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

#[tokio::main]
async fn main() {
    let seconds: u64 = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(600);
    // The server is in this process, so what it remembers must not grow either: its window is full after a minute.
    let window = watchkeeper_storage::Window { age: Duration::from_secs(30), ..Default::default() };
    let env = TestEnv::builder().window(window).start().await;
    let client = Client::new(env.connection());
    for number in 0..NAMES {
        client.create(&map(number, 0)).await.unwrap();
    }
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1));
    let controller = Controller::of::<ConfigMap>().backoff(backoff).reconcile(
        move |_: Arc<ConfigMap>, _cx: Context<ConfigMap>| {
            let run = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                if run.is_multiple_of(3) { Err(Error::message("every third")) } else { Ok(Action::done()) }
            }
        },
    );
    let running = Manager::new("bench", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;

    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let (begun, mut change, mut samples) = (Instant::now(), 0u64, Vec::new());
    while begun.elapsed() < Duration::from_secs(seconds) {
        ticks.tick().await;
        for _ in 0..PER_SECOND / 10 {
            change += 1;
            let number = fastrand::u64(..NAMES);
            let key = Key::new(Some("default"), &format!("map-{number}"));
            if change.is_multiple_of(10) {
                // Gone and back again, under a name that is new every time.
                let (name, late) = (NAMES + change, change.saturating_sub(5_000) + NAMES);
                client.create(&map(name, change)).await.unwrap();
                let _ =
                    client.delete_key::<ConfigMap>(&Key::new(Some("default"), &format!("map-{late}"))).await;
            } else {
                let patch = Patch::Merge(serde_json::json!({ "data": { "version": change.to_string() } }));
                client.patch::<ConfigMap>(&key, patch).await.unwrap();
            }
        }
        if change.is_multiple_of(PER_SECOND * 5) {
            samples.push(resident());
            println!(
                "{:>4} s  {:>6.1} MB  {} reconciles",
                begun.elapsed().as_secs(),
                resident(),
                runs.load(Ordering::Relaxed)
            );
        }
    }
    running.stop().await;
    let third = samples.len() / 3;
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let (middle, last) = (most(&samples[third..2 * third]), most(&samples[2 * third..]));
    println!(
        "{change} changes, {} reconciles: {middle:.1} MB in the middle third, {last:.1} MB in the last",
        runs.load(Ordering::Relaxed)
    );
    assert!(last <= middle * 1.1, "memory grows");
}
