//! Slots: who has one, how long, and what becomes of the log that it keeps.

use std::time::Duration;

use watchkeeper_core::{Error, Start};
use watchkeeper_sources::postgres::Postgres;

use crate::server::{Database, Server, connect};
use crate::tap::Tap;

async fn durable(database: &Database) -> Postgres {
    let source = database.items().await.replicate_durably(&format!("slot_{}", database.name));
    source.install().await.unwrap();
    source
}

const SLOTS: &str = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";

#[tokio::test]
async fn a_slot_goes_with_its_feed_unless_it_is_durable() {
    let database = Server::shared().database().await;
    let source = durable(&database).await;
    let passing = database.source("items").replicate();
    let tap = Tap::on(&passing).await;
    assert_eq!(database.number(SLOTS).await, 1);
    drop(tap);
    database.until(&format!("({SLOTS}) = 0")).await;
    // Nor is one left by a feed that is dropped in the middle of its snapshot.
    database.sql("INSERT INTO items SELECT 'n' || n, n FROM generate_series(1, 50000) n").await;
    let mut tap = Tap::closed(&passing);
    tap.until_said("item").await;
    assert_eq!(database.number(SLOTS).await, 1);
    drop(tap);
    database.until(&format!("({SLOTS}) = 0")).await;
    drop(Tap::on(&source).await);
    assert_eq!(database.number(SLOTS).await, 1);
    assert!(source.drop_slot().await.unwrap());
    assert!(!source.drop_slot().await.unwrap());
    assert_eq!(database.number(SLOTS).await, 0);
}

#[tokio::test]
async fn a_feed_is_resumed_where_it_was_after_a_restart_of_either_side() {
    let mut server = Server::start(&[]);
    let database = server.database().await;
    let source = durable(&database).await;
    database.put("a", 1).await;
    let mut tap = Tap::on(&source).await;
    database.put("a", 2).await;
    tap.until_value("a", 2).await;
    // What was in a transaction that the reader did not see the end of comes again, whole.
    database.sql("INSERT INTO items VALUES ('x', 1), ('y', 1)").await;
    let position = tap.position.clone().unwrap();
    tap.until_value("x", 1).await;
    assert_eq!(tap.position, Some(position.clone()));
    drop(tap);
    database.put("a", 3).await;
    server.kill();
    server.restart();
    let database = Database { client: connect(&database.url).await, ..database };
    database.put("a", 4).await;
    let again = database.source("items").replicate_durably(&format!("slot_{}", database.name));
    let mut tap = Tap::start(&again, Start::Resume(position));
    tap.until_value("a", 4).await;
    assert_eq!(tap.log[1..], ["put x", "put y", "put a", "put a"]);
}

#[tokio::test]
async fn what_the_server_keeps_for_a_slot_is_a_metric() {
    let server = Server::start(&["max_slot_wal_keep_size=1GB"]);
    let database = server.database().await;
    let source = durable(&database).await.rescan(Duration::from_millis(50));
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
    let builder = watchkeeper_informer::Informer::<serde_json::Value>::builder();
    let informer = builder.name("items").metrics(&metrics).start(source.clone());
    informer.synced().await.unwrap();
    let gauge = |name: &str| -> Option<f64> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let start = format!("watchkeeper_informer_source_{name}{{informer=\"items\",source=\"");
        let line = text.lines().find(|line| line.starts_with(&start))?;
        line.rsplit(' ').next().unwrap().parse().ok()
    };
    // What nobody has confirmed yet is kept.
    database.sql("INSERT INTO items SELECT 'n' || n, n FROM generate_series(1, 20000) n").await;
    let due = std::time::Instant::now() + crate::server::LONG;
    while gauge("slot_retained_bytes").is_none_or(|bytes| bytes < 1_000_000.0) {
        assert!(std::time::Instant::now() < due, "{:?}", source.figures());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(gauge("slot_wal_status"), Some(0.0));
    assert!(gauge("slot_safe_bytes").is_some_and(|bytes| bytes > 0.0));
    assert!(gauge("replication_lag_bytes").is_some());
    informer.stop().await;
    drop((informer, source));
    assert_eq!(gauge("slot_wal_status"), None, "it is gone with its source");
}

#[tokio::test]
async fn a_slot_that_is_dropped_means_a_new_snapshot() {
    let database = Server::shared().database().await;
    let source = durable(&database).await;
    let mut tap = Tap::on(&source).await;
    let position = tap.position.clone().unwrap();
    database.cut().await;
    assert_eq!(tap.failure().await.class(), "unavailable");
    assert!(source.drop_slot().await.unwrap());
    database.put("a", 1).await;
    let error = Tap::start(&source, Start::Resume(position)).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
    let tap = Tap::on(&source).await;
    assert_eq!(tap.value("a"), Some(1));
    drop(tap);
    source.uninstall().await.unwrap();
    assert_eq!(database.number(SLOTS).await, 0);
    assert_eq!(database.number("SELECT count(*) FROM pg_publication").await, 0);
}

#[tokio::test]
async fn a_slot_that_was_too_far_behind_means_a_new_snapshot() {
    let server = Server::start(&["max_slot_wal_keep_size=1MB", "max_wal_size=32MB", "min_wal_size=32MB"]);
    let database = server.database().await;
    let source = durable(&database).await;
    let position = Tap::on(&source).await.position.unwrap();
    database.put("a", 1).await;
    for _ in 0..4 {
        database.sql("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 30000)").await;
        database.sql("DROP TABLE filler; SELECT pg_switch_wal(); CHECKPOINT").await;
    }
    database.until("(SELECT wal_status = 'lost' FROM pg_replication_slots)").await;
    let error = Tap::start(&source, Start::Resume(position)).failure().await;
    assert!(matches!(&error, Error::Expired(why) if why.contains("invalidated")), "{error}");
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.value("a"), Some(1));
    database.put("a", 2).await;
    tap.until_value("a", 2).await;
}

#[tokio::test]
async fn a_position_that_was_confirmed_away_has_expired() {
    let database = Server::shared().database().await;
    let source =
        durable(&database).await.acknowledge_after(Duration::ZERO).timeout(Duration::from_millis(600));
    let mut tap = Tap::on(&source).await;
    let first = tap.position.clone().unwrap();
    database.put("a", 1).await;
    tap.until_value("a", 1).await;
    let confirmed =
        "(SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database())";
    let lsn = tap.position.clone().unwrap().to_string().split('-').nth(2).unwrap().to_owned();
    let condition = format!("{confirmed} >= '{lsn}'");
    tokio::select! {
        () = tap.until(|_| false) => {}
        () = database.until(&condition) => {}
    }
    drop(tap);
    let error = Tap::start(&source, Start::Resume(first)).failure().await;
    assert!(matches!(&error, Error::Expired(why) if why.contains("beyond")), "{error}");
    source.uninstall().await.unwrap();
}

#[tokio::test]
async fn two_sources_do_not_share_a_slot() {
    let database = Server::shared().database().await;
    let source = durable(&database).await;
    let tap = Tap::on(&source).await;
    let error = Tap::refusal(&source).await;
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("two sources cannot share one"), "{error}");
    drop(tap);
    drop(Tap::on(&source).await);
    source.uninstall().await.unwrap();
}

#[tokio::test]
async fn the_position_moves_though_nothing_happens_to_the_table() {
    let server = Server::start(&[]);
    let database = server.database().await;
    let source = durable(&database)
        .await
        .acknowledge_after(Duration::ZERO)
        .timeout(Duration::from_millis(600))
        .rescan(Duration::from_millis(200));
    let mut tap = Tap::on(&source).await;
    let first = tap.position.clone();
    database.sql("CREATE TABLE others AS SELECT repeat('x', 1000) FROM generate_series(1, 20000)").await;
    tap.until(|tap| tap.position != first).await;
    let retained =
        "(SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) FROM pg_replication_slots)";
    let condition = format!("{retained} < 1000000");
    tokio::select! {
        () = tap.until(|_| false) => {}
        () = database.until(&condition) => {}
    }
    tap.until(|_| {
        let figures = source.figures();
        figures.lag_bytes < 1_000_000 && figures.slot.is_some_and(|slot| slot.wal_status == "reserved")
    })
    .await;
    assert!(!tap.log.iter().any(|line| line.starts_with("put")));
}
