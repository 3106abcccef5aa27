//! What files cost: `cargo bench -p watchkeeper-sources --features files --bench files`.
//!
//! Documents scanned in a second, from files on disk to events of a feed, and the time from the end of a write to the handler.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that prints its result")]

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Event, Freshness, Source as _, Start};
use watchkeeper_informer::Informer;
use watchkeeper_sources::files::Files;

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

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
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
        println!("scan, {what}: {:.0} documents/s", DOCUMENTS as f64 / best.as_secs_f64());
    }
    let latencies = latencies(directory.path()).await;
    let at = |share: f64| latencies[((WRITES - 1) as f64 * share) as usize];
    println!(
        "close of a write to the handler, among {DOCUMENTS} files: p50 {:?}, p99 {:?}, max {:?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
