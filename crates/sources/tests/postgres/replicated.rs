//! The log: every change, once, in order.

use std::time::Duration;

use watchkeeper_core::{Error, Start, Version};
use watchkeeper_sources::postgres::Postgres;

use crate::server::{Database, Server, connect};
use crate::tap::Tap;

async fn replicated(database: &Database) -> Postgres {
    let source = database.items().await.replicate();
    source.install().await.unwrap();
    source
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_told_once_while_others_write() {
    let database = Server::shared().database().await;
    let source = replicated(&database).await;
    database.sql("INSERT INTO items SELECT 'n' || n, 0 FROM generate_series(1, 5000) n").await;
    let writer = connect(&database.url).await;
    let written = tokio::spawn(async move {
        for value in 1..=400 {
            writer
                .batch_execute(&format!("UPDATE items SET value = {value} WHERE name = 'n1'"))
                .await
                .unwrap();
        }
    });
    let mut tap = Tap::on(&source).await;
    let mut known = tap.value("n1").unwrap();
    let puts = |tap: &Tap| tap.log.iter().filter(|line| *line == "put n1").count() as i64;
    while known < 400 {
        tap.until(|tap| tap.value("n1") != Some(known)).await;
        assert_eq!(tap.value("n1"), Some(known + 1), "one came twice or not at all");
        known += 1;
    }
    written.await.unwrap();
    assert_eq!(tap.values.len(), 5000);
    database.put("end", 1).await;
    tap.until_value("end", 1).await;
    assert!(puts(&tap) <= 400);
}

#[tokio::test]
async fn transactions_are_told_whole_or_not_at_all() {
    let database = Server::shared().database().await;
    let source = replicated(&database).await;
    let mut tap = Tap::on(&source).await;
    database
        .sql(
            "BEGIN; INSERT INTO items VALUES ('undone', 1); ROLLBACK;
             BEGIN; INSERT INTO items VALUES ('kept', 1); SAVEPOINT s; INSERT INTO items VALUES ('undone', 2); ROLLBACK TO s; COMMIT",
        )
        .await;
    // Larger than the memory that the server has for it: it is decoded by way of the disk.
    assert_eq!(
        database
            .number("SELECT setting::bigint FROM pg_settings WHERE name = 'logical_decoding_work_mem'")
            .await,
        64
    );
    database.sql("INSERT INTO items SELECT 'n' || n, n FROM generate_series(1, 50000) n").await;
    database.put("end", 1).await;
    tap.until_value("end", 1).await;
    assert_eq!(tap.values.len(), 50_002);
    assert!(!tap.log.iter().any(|line| line.contains("undone")));
    assert_eq!(tap.log.iter().filter(|line| line.starts_with("put")).count(), 50_002);
}

#[tokio::test]
async fn a_row_whose_key_changes_is_another_object() {
    let database = Server::shared().database().await;
    let source = replicated(&database).await;
    database.put("old", 1).await;
    for identity in ["DEFAULT", "FULL"] {
        database.sql(&format!("ALTER TABLE items REPLICA IDENTITY {identity}")).await;
        let mut tap = Tap::on(&source).await;
        let lines = tap.log.len();
        database.sql("UPDATE items SET name = 'new' WHERE name = 'old'").await;
        tap.until_value("new", 1).await;
        assert_eq!(tap.log[lines..], ["gone old", "put new"]);
        database.sql("DELETE FROM items WHERE name = 'new'").await;
        tap.until_gone("new").await;
        database.put("old", 1).await;
    }
}

#[tokio::test]
async fn a_table_that_is_truncated_is_empty_at_that_place_of_the_log() {
    let database = Server::shared().database().await;
    let source = replicated(&database).await;
    database.sql("INSERT INTO items VALUES ('a', 1), ('b', 1); CREATE TABLE others ()").await;
    let mut tap = Tap::on(&source).await;
    let lines = tap.log.len();
    database
        .sql("BEGIN; UPDATE items SET value = 2; TRUNCATE items, others; INSERT INTO items VALUES ('b', 3), ('c', 3); COMMIT")
        .await;
    tap.until_value("c", 3).await;
    let told = ["put a", "put b", "begin", "complete", "put b", "put c"];
    assert_eq!(tap.log[lines..], told);
    assert_eq!(tap.names(), ["b", "c"]);
}

#[tokio::test]
async fn large_values_that_an_update_does_not_touch_are_kept() {
    for identity in ["DEFAULT", "FULL"] {
        let database = Server::shared().database().await;
        let source = replicated(&database).await;
        database
            .sql(&format!(
                "ALTER TABLE items ADD COLUMN large text; ALTER TABLE items ALTER COLUMN large SET STORAGE EXTERNAL;
                 ALTER TABLE items REPLICA IDENTITY {identity}; INSERT INTO items VALUES ('a', 1, repeat('x', 100000))"
            ))
            .await;
        let mut tap = Tap::on(&source).await;
        let large = |tap: &Tap| tap.values["a"]["large"].as_str().map(str::len);
        assert_eq!(large(&tap), Some(100_000));
        for value in 2..5 {
            database.put_value("a", value).await;
            tap.until_value("a", value).await;
            assert_eq!(large(&tap), Some(100_000), "{identity}");
        }
        database.sql("UPDATE items SET name = 'b'").await;
        tap.until_value("b", 4).await;
        assert_eq!(tap.values["b"]["large"].as_str().map(str::len), Some(100_000), "{identity}");
        assert_eq!(tap.names(), ["b"]);
        // Gone before the row can be read again.
        database.sql("BEGIN; UPDATE items SET value = 9; DELETE FROM items; COMMIT; INSERT INTO items VALUES ('end', 1)").await;
        tap.until_value("end", 1).await;
        assert_eq!(tap.names(), ["end"], "{identity}");
    }
}

impl Database {
    async fn put_value(&self, name: &str, value: i64) {
        self.sql(&format!("UPDATE items SET value = {value} WHERE name = '{name}'")).await;
    }
}

#[tokio::test]
async fn columns_that_come_and_go_lead_to_a_new_snapshot() {
    let database = Server::shared().database().await;
    let source = replicated(&database).await;
    database.sql("INSERT INTO items VALUES ('a', 1), ('b', 1)").await;
    for (statement, colour) in [
        ("ALTER TABLE items ADD COLUMN colour text DEFAULT 'red'", Some("red")),
        ("ALTER TABLE items RENAME COLUMN colour TO color", None),
        ("ALTER TABLE items ALTER COLUMN value TYPE int", None),
        ("ALTER TABLE items DROP COLUMN color", None),
    ] {
        let mut tap = Tap::on(&source).await;
        database.sql(statement).await;
        database.put("a", 2).await;
        let error = tap.failure().await;
        assert!(matches!(error, Error::Expired(_)), "{statement}: {error}");
        assert!(!tap.log.iter().any(|line| line == "put a"), "{statement}: rows of two shapes");
        let tap = Tap::on(&source).await;
        assert_eq!(tap.values["b"].get("colour").and_then(|colour| colour.as_str()), colour, "{statement}");
    }
    // Also if no row is written: it is looked for.
    let source = source.rescan(Duration::from_millis(100));
    let mut tap = Tap::on(&source).await;
    database.sql("ALTER TABLE items ADD COLUMN size int DEFAULT 5").await;
    assert!(matches!(tap.failure().await, Error::Expired(_)));
}

#[tokio::test]
async fn a_row_that_leaves_the_filter_of_its_publication_is_gone() {
    let database = Server::shared().database().await;
    database
        .sql(
            "CREATE TABLE items (name text, value bigint, secret text DEFAULT 'x', PRIMARY KEY (name, value));
             ALTER TABLE items REPLICA IDENTITY FULL;
             CREATE PUBLICATION large FOR TABLE items (name, value) WHERE (value > 10);
             INSERT INTO items VALUES ('a', 1), ('b', 20)",
        )
        .await;
    // A list of columns has to have the identity: with FULL, all of them.
    database.sql("ALTER TABLE items REPLICA IDENTITY DEFAULT").await;
    let source = database.source("items").key(["name", "value"]).replicate().publication("large");
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.names(), ["b/20"]);
    assert!(tap.values["b/20"].get("secret").is_none());
    let lines = tap.log.len();
    database.sql("UPDATE items SET value = 11 WHERE name = 'a'").await;
    tap.until_value("a/11", 11).await;
    database.sql("UPDATE items SET value = 2 WHERE name = 'b'").await;
    tap.until_gone("b/20").await;
    assert_eq!(tap.log[lines..], ["put a/11", "gone b/20"]);
}

#[tokio::test]
async fn partitions_are_one_table() {
    let database = Server::shared().database().await;
    database
        .sql(
            "CREATE TABLE items (name text PRIMARY KEY, value bigint) PARTITION BY LIST (name);
             CREATE TABLE items_a PARTITION OF items FOR VALUES IN ('a');
             CREATE TABLE items_b PARTITION OF items DEFAULT; INSERT INTO items VALUES ('a', 1)",
        )
        .await;
    let source = database.source("items").replicate();
    source.install().await.unwrap();
    let mut tap = Tap::on(&source).await;
    database.sql("INSERT INTO items VALUES ('b', 2); UPDATE items SET name = 'c' WHERE name = 'a'").await;
    tap.until(|tap| tap.names() == ["b", "c"]).await;
}

#[tokio::test]
async fn a_position_of_another_server_has_expired() {
    let database = Server::shared().database().await;
    let source = database.items().await.replicate_durably(&format!("slot_{}", database.name));
    source.install().await.unwrap();
    let tap = Tap::on(&source).await;
    let here = tap.position.clone().unwrap().to_string();
    drop(tap);
    let parts: Vec<&str> = here.splitn(4, '-').collect();
    let change = |at: usize, to: &str| {
        let mut parts = parts.clone();
        parts[at] = to;
        Version::from(&*parts.join("-"))
    };
    for version in [change(0, "17"), change(1, "9"), change(3, "h0"), "7".into()] {
        let error = Tap::start(&source, Start::Resume(version.clone())).failure().await;
        assert!(matches!(error, Error::Expired(_)), "{version}: {error}");
    }
    let mut tap = Tap::start(&source, Start::Resume(Version::from(&*here)));
    tap.until_said("position").await;
    drop(tap);
    source.uninstall().await.unwrap();
}
