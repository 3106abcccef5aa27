//! What files cost: `bench/run sources`, or `cargo bench -p watchkeeper-sources --features files --bench files`.
//!
//! Documents scanned in a second, from files on disk to events of a feed, and the time from the end of a write to the handler; beside PyYAML (with
//! libyaml) and watchdog, if `WATCHKEEPER_BENCH_PYTHON` names a Python that has them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that prints its result")]

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Event, Freshness, Source as _, Start};
use watchkeeper_informer::Informer;
use watchkeeper_sources::files::Files;

/// The least that is good enough, on an idle machine.
const LEAST_DOCUMENTS: f64 = 20_000.0;
const MOST_MILLISECONDS: f64 = 50.0;
const DOCUMENTS: usize = 20_000;
const WRITES: usize = 500;

/// A document of half a kilobyte, as routes are.
fn route(name: &str, value: usize) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Route\nmetadata:\n  name: {name}\n  namespace: shop\n  labels:\n    app: {name}\n    \
         tier: front\n  annotations:\n    example.com/owner: team-{value}\nspec:\n  hosts:\n  - {name}.example.com\n  - www.{name}.example.com\n  \
         port: 8080\n  weight: {value}\n  backends:\n  - name: primary\n    address: 10.0.0.1:8080\n    healthy: true\n  - name: secondary\n    \
         address: 10.0.0.2:8080\n    healthy: false\n  timeouts:\n    connect: 1s\n    request: 30s\n"
    )
}

async fn scan(directory: &Path) -> Duration {
    let files = Files::directory(directory).kind("example.com/v1", "Route");
    let start = Instant::now();
    let mut feed = files.open(Start::Snapshot(Freshness::Any));
    let mut items = 0;
    loop {
        match feed.next().await.unwrap().unwrap() {
            Event::Item(_) => items += 1,
            Event::Complete(_) => break,
            Event::Begin => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(items, DOCUMENTS);
    start.elapsed()
}

async fn latencies(directory: &Path) -> Vec<Duration> {
    let files = Files::directory(directory).kind("example.com/v1", "Route");
    let informer = Informer::<Value>::builder().start(files);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("bench");
    while changes.try_next().is_some() {}
    let mut latencies = Vec::new();
    for value in 0..WRITES {
        let name = format!("r{}", value % 100);
        std::fs::write(directory.join(format!("{name}.yaml")), route(&name, 1_000_000 + value)).unwrap();
        let closed = Instant::now();
        loop {
            let change = changes.next().await.unwrap();
            if change.new.unwrap().get().unwrap()["spec"]["weight"] == 1_000_000 + value {
                break;
            }
        }
        latencies.push(closed.elapsed());
    }
    latencies.sort();
    latencies
}

/// What the peer says of a directory.
fn peer(directory: &Path, writes: usize) -> Option<Value> {
    let python = std::env::var_os("WATCHKEEPER_BENCH_PYTHON")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peer.py");
    let output = Command::new(python).arg(script).arg(directory).arg(writes.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Of latencies that are sorted, the one at this share of them.
fn at(latencies: &[f64], share: f64) -> f64 {
    latencies[((latencies.len() - 1) as f64 * share) as usize] * 1000.0
}

/// Notes what is not good enough: the rest is measured all the same.
fn require(failures: &mut Vec<String>, is_so: bool, failure: String) {
    if !is_so {
        println!("FAILED: {failure}");
        failures.push(failure);
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let mut failures = Vec::new();
    let directory = tempfile::tempdir().unwrap();
    for number in 0..DOCUMENTS {
        let name = format!("r{number}");
        std::fs::write(directory.path().join(format!("{name}.yaml")), route(&name, number)).unwrap();
    }
    let together = tempfile::tempdir().unwrap();
    for chunk in 0..DOCUMENTS / 100 {
        let documents: Vec<_> = (0..100).map(|at| route(&format!("r{}", chunk * 100 + at), at)).collect();
        std::fs::write(together.path().join(format!("{chunk}.yaml")), documents.join("---\n")).unwrap();
    }
    for (what, directory) in [("one to a file", &directory), ("a hundred to a file", &together)] {
        scan(directory.path()).await;
        let mut best = Duration::MAX;
        for _ in 0..3 {
            best = best.min(scan(directory.path()).await);
        }
        let ours = DOCUMENTS as f64 / best.as_secs_f64();
        println!("scan, {what}: {ours:.0} documents/s");
        let failure = format!("scan, {what}: fewer than {LEAST_DOCUMENTS} documents a second");
        require(&mut failures, ours >= LEAST_DOCUMENTS, failure);
        if let Some(peer) = peer(directory.path(), 0) {
            let theirs = DOCUMENTS as f64 / peer["seconds"].as_f64().unwrap();
            println!(
                "scan, {what}, by PyYAML: {theirs:.0} documents/s; ours is {:.1} times as fast",
                ours / theirs
            );
        }
    }
    let ours: Vec<f64> = latencies(directory.path()).await.iter().map(Duration::as_secs_f64).collect();
    let print = |what: &str, latencies: &[f64]| {
        let (p50, p99, max) = (at(latencies, 0.5), at(latencies, 0.99), at(latencies, 1.0));
        println!(
            "close of a write to {what}, among {DOCUMENTS} files: p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms"
        );
    };
    print("the handler, read and parsed", &ours);
    let failure = format!("close of a write to the handler: p99 is more than {MOST_MILLISECONDS} ms");
    require(&mut failures, at(&ours, 0.99) <= MOST_MILLISECONDS, failure);
    if let Some(peer) = peer(directory.path(), WRITES) {
        let list = |name: &str| -> Vec<f64> {
            peer[name].as_array().unwrap().iter().filter_map(Value::as_f64).collect()
        };
        print("watchdog's handler", &list("heard"));
        print("watchdog's handler, read and parsed by PyYAML", &list("parsed"));
        let ratio = |share| at(&list("parsed"), share) / at(&ours, share);
        println!("watchdog's latency beside ours: p50 {:.2} times, p99 {:.2} times", ratio(0.5), ratio(0.99));
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
