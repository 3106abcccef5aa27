//! How many reconciles a second of CPU time is good for, and how many requests they send, when nothing has to be done.
//!
//! 10,000 objects, 16 workers; each reconcile reads its object and another one from caches and applies a third of which
//! nothing has changed. Fails below the promise of 20,000, and if a single request is sent.
//!
//! `cargo bench -p watchkeeper-runtime --bench reconcile`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_core::ObjectMeta;
use watchkeeper_client::{Client, key_of};
use watchkeeper_core::Key;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Result};
use watchkeeper_testkit::TestEnv;

const OBJECTS: usize = 10_000;
const ROUNDS: usize = 20;
const PROMISED: f64 = 20_000.0;

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), namespace: Some("default".into()), ..ObjectMeta::default() }
}

fn secret(name: &str) -> Secret {
    let data = [("text".to_owned(), format!("text of {name}"))].into();
    Secret { metadata: meta(name), string_data: Some(data), ..Secret::default() }
}

/// What should be there for an object: about as much as a small child has.
fn desired(name: &str) -> ConfigMap {
    let mut metadata = meta(name);
    metadata.labels =
        Some([("app".to_owned(), name.to_owned()), ("tier".to_owned(), "web".to_owned())].into());
    let data = (0..5).map(|line| (format!("line-{line}"), format!("{name} {line}"))).collect();
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

/// User and system time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[tokio::main]
async fn main() {
    let env = TestEnv::start().await;
    let writer = Client::new(env.connection());
    for number in 0..OBJECTS {
        writer.create(&secret(&format!("object-{number}"))).await.unwrap();
    }
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let reconcile = move |object: Arc<Secret>, cx: Context<Secret>| {
        let runs = Arc::clone(&counted);
        async move {
            let key = key_of(&*object);
            let _there = cx.client().get::<ConfigMap>(&key).await?;
            cx.client().apply(&desired(key.name())).await?;
            runs.fetch_add(1, Ordering::Relaxed);
            Result::Ok(Action::done())
        }
    };
    let builder = Controller::of::<Secret>().reads::<ConfigMap>().concurrency(16);
    let trigger = builder.trigger();
    let manager = Manager::new("bench", env.connection()).controller(builder.reconcile(reconcile));
    let running = manager.start().await.unwrap();
    running.ready().await;
    until(|| runs.load(Ordering::Relaxed) >= OBJECTS as u64).await;
    running.client().barrier::<ConfigMap>().await.unwrap();
    println!("{OBJECTS} objects are there; {ROUNDS} rounds");

    let (requests, begun, time, before) =
        (env.request_count(), cpu(), std::time::Instant::now(), runs.load(Ordering::Relaxed));
    for round in 1..=ROUNDS {
        for number in 0..OBJECTS {
            trigger.fire(Key::new(Some("default"), &format!("object-{number}")));
        }
        until(|| runs.load(Ordering::Relaxed) >= before + (round * OBJECTS) as u64).await;
    }
    let (cpu, time) = ((cpu() - begun).as_secs_f64(), time.elapsed().as_secs_f64());
    let done = (runs.load(Ordering::Relaxed) - before) as f64;
    let sent = env.request_count() - requests;
    running.stop().await;
    println!(
        "{:.0} reconciles per CPU second ({:.0} per second), promised {PROMISED:.0}",
        done / cpu,
        done / time
    );
    println!("{sent} requests sent, promised 0");
    assert!(done / cpu >= PROMISED && sent == 0, "missed");
}

async fn until(reached: impl Fn() -> bool) {
    while !reached() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
