//! What replication costs: `bench/run sources`, or `cargo bench -p watchkeeper-sources --features postgres --bench postgres`.
//!
//! Row changes read from the log of a real server in a second, by a feed and into the store of an informer, beside `pg_recvlogical`, which reads
//! the same log by the same plugin and looks at none of it; the first snapshot; and the time from a commit to the handler.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    dead_code,
    reason = "a measurement that prints its result"
)]

#[path = "../tests/postgres/server.rs"]
mod server;

use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::Value;
use watchkeeper_core::{Event, Freshness, Source as _, Start, Version};
use watchkeeper_informer::Informer;
use watchkeeper_sources::postgres::Postgres;

use server::{Database, Server, program};

const ROWS: usize = 100_000;
/// The least that is good enough, on an idle machine.
const LEAST_CHANGES: f64 = 5_000.0;
const CHANGES: usize = 100_000;
const WRITES: usize = 300;

/// A row of half a kilobyte.
const TABLE: &str =
    "CREATE TABLE items (name text PRIMARY KEY, value bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    labels jsonb NOT NULL, tags text[] NOT NULL, note text NOT NULL)";
const FILL: &str =
    "INSERT INTO items SELECT 'row-' || n, n, now(), jsonb_build_object('app', 'a' || n, 'tier', 'front'),
    ARRAY['a', 'b' || n], repeat('x', 300) FROM generate_series(1, 100000) n";

async fn position(source: &Postgres) -> (Version, Duration) {
    let start = Instant::now();
    let mut feed = source.open(Start::Snapshot(Freshness::Any));
    let mut items = 0;
    loop {
        match feed.next().await.unwrap().unwrap() {
            Event::Item(_) => items += 1,
            Event::Complete(position) => {
                assert_eq!(items, ROWS);
                return (position, start.elapsed());
            }
            _ => {}
        }
    }
}

/// Reads the log from a position on, up to so many changes.
async fn read(source: &Postgres, position: &Version) -> Duration {
    let start = Instant::now();
    let mut feed = source.open(Start::Resume(position.clone()));
    let mut changes = 0;
    while changes < CHANGES {
        if let Event::Put { .. } = feed.next().await.unwrap().unwrap() {
            changes += 1;
        }
    }
    start.elapsed()
}

/// The same by `pg_recvlogical`, from a slot of its own.
async fn recvlogical(server: &Server, database: &Database, slot: &str) -> Duration {
    let end: String =
        database.client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap().get(0);
    let port = server.port.to_string();
    let start = Instant::now();
    server::run(Command::new(program("pg_recvlogical")).args([
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-U",
        "postgres",
        "-d",
        &database.name,
        "--slot",
        slot,
        "--start",
        "--no-loop",
        "--endpos",
        &end,
        "-o",
        "proto_version=1",
        "-o",
        "publication_names=watchkeeper_public_items",
        "-f",
        "/dev/null",
    ]));
    start.elapsed()
}

/// As they are committed, into the store of an informer.
async fn applied(database: &Database, source: &Postgres, write: &str) -> (Duration, Duration) {
    let informer = Informer::<Value>::builder().start(source.clone());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("bench");
    while changes.try_next().is_some() {}
    let start = Instant::now();
    database.sql(write).await;
    let written = start.elapsed();
    database.sql("UPDATE items SET value = -1 WHERE name = 'row-1'").await;
    loop {
        let change = changes.next().await.unwrap();
        if change.key.name() == "row-1" && change.new.unwrap().get().unwrap()["value"] == -1 {
            break;
        }
    }
    database.sql("UPDATE items SET value = 1 WHERE name = 'row-1'").await;
    (written, start.elapsed())
}

async fn latencies(database: &Database, source: Postgres) -> Vec<Duration> {
    let informer = Informer::<Value>::builder().start(source);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("bench");
    while changes.try_next().is_some() {}
    let mut latencies = Vec::new();
    for value in 0..WRITES {
        let value = 1_000_000 + value;
        database
            .sql(&format!("UPDATE items SET value = {value} WHERE name = 'row-{}'", value % 100 + 2))
            .await;
        let committed = Instant::now();
        loop {
            let change = changes.next().await.unwrap();
            if change.new.unwrap().get().unwrap()["value"] == value {
                break;
            }
        }
        latencies.push(committed.elapsed());
    }
    latencies.sort();
    latencies
}

fn rate(count: usize, time: Duration) -> String {
    format!("{:.0}/s", count as f64 / time.as_secs_f64())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server =
        Server::start(&["max_wal_size=8GB", "shared_buffers=256MB", "logical_decoding_work_mem=64MB"]);
    let database = server.database().await;
    database.sql(TABLE).await;
    database.sql(FILL).await;
    let source = Postgres::table(&database.url, "items");
    let durable = source.clone().replicate_durably("ours").acknowledge_after(Duration::from_secs(3600));
    durable.install().await.unwrap();
    let one_transaction = format!("UPDATE items SET value = value + 1 WHERE value <= {CHANGES}");
    let many_transactions = format!(
        "DO $$ BEGIN FOR n IN 1..{CHANGES} LOOP UPDATE items SET value = value + 1 WHERE name = 'row-' || n; COMMIT; END LOOP; END $$"
    );
    for (what, write) in [("one transaction", &one_transaction), ("a transaction each", &many_transactions)] {
        let (position, snapshot) = position(&durable).await;
        // One each, for reading moves a slot.
        let peers = ["peer1", "peer2", "peer3"];
        for peer in peers {
            database.sql(&format!("SELECT pg_create_logical_replication_slot('{peer}', 'pgoutput')")).await;
        }
        database.sql(write).await;
        let mut ours = Duration::MAX;
        for _ in 0..3 {
            ours = ours.min(read(&durable, &position).await);
        }
        let mut peer = Duration::MAX;
        for slot in peers {
            peer = peer.min(recvlogical(&server, &database, slot).await);
            database
                .until(&format!("(SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{slot}')"))
                .await;
            database.sql(&format!("SELECT pg_drop_replication_slot('{slot}')")).await;
        }
        println!("snapshot of {ROWS} rows: {} rows", rate(ROWS, snapshot));
        println!(
            "{CHANGES} row changes, {what}: {} by a feed, {} by pg_recvlogical: {:.2} times its rate",
            rate(CHANGES, ours),
            rate(CHANGES, peer),
            peer.as_secs_f64() / ours.as_secs_f64()
        );
        let longest = Duration::from_secs(1).mul_f64(CHANGES as f64 / LEAST_CHANGES);
        assert!(ours <= longest, "a feed reads fewer than {LEAST_CHANGES} changes a second");
        let (written, applied) = applied(&database, &source.clone().replicate(), write).await;
        println!(
            "{CHANGES} row changes, {what}, from the first write to the store: {} (written at {})",
            rate(CHANGES, applied),
            rate(CHANGES, written)
        );
        // Nobody applies more than are written.
        assert!(
            applied <= longest.max(written.mul_f64(1.2)),
            "fewer than {LEAST_CHANGES} changes a second are applied"
        );
    }
    assert!(durable.drop_slot().await.unwrap());
    let notified = source.clone().notify();
    notified.install().await.unwrap();
    for (what, source) in [("replicated", source.replicate()), ("notified", notified)] {
        let latencies = latencies(&database, source).await;
        let at = |share: f64| latencies[((WRITES - 1) as f64 * share) as usize];
        println!("commit to the handler, {what}, {ROWS} rows: p50 {:?}, p99 {:?}", at(0.5), at(0.99));
    }
}
