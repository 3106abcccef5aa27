//! How often a controller can look and find that nothing has to be done: a cached get and an apply that sends nothing.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{Cache, Client, Outcome, Policy, key_of};
use watchkeeper_testkit::TestEnv;

const OBJECTS: usize = 1000;
const ROUNDS: usize = 100;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for policy in [Policy::Packed, Policy::Typed] {
        runtime.block_on(measure(policy));
    }
}

async fn measure(policy: Policy) {
    let env = TestEnv::start().await;
    let client = Client::new(env.connection());
    client.declare(Cache::of::<ConfigMap>().policy(policy)).unwrap();
    client.synced().await.unwrap();
    let maps: Vec<ConfigMap> = (0..OBJECTS).map(map).collect();
    for map in &maps {
        client.apply(map).await.unwrap();
    }
    client.barrier::<ConfigMap>().await.unwrap();
    let requests = env.request_count();
    let (wall, cpu) = (Instant::now(), cpu_time());
    for _ in 0..ROUNDS {
        for map in &maps {
            client.get::<ConfigMap>(&key_of(map)).await.unwrap().unwrap();
            assert_eq!(client.apply(map).await.unwrap().outcome, Outcome::Unchanged);
        }
    }
    let spent = match (cpu, cpu_time()) {
        (Some(before), Some(after)) => after - before,
        _ => wall.elapsed(),
    };
    assert_eq!(env.request_count(), requests, "nothing is sent");
    let rate = (OBJECTS * ROUNDS) as f64 / spent.as_secs_f64();
    println!("{policy:?}: {rate:.0} cached get + apply without a change per CPU second");
}

fn map(number: usize) -> ConfigMap {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": format!("map-{number}"), "namespace": "default", "labels": {"app": "web", "tier": "front"}},
        "data": {"index.html": "<h1>hello</h1>", "count": number.to_string()},
    }))
    .unwrap()
}

/// What this thread has used of a processor, where the system tells.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
