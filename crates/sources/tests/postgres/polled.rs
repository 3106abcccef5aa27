//! Polling that does not lose rows.

use std::time::Duration;

use crate::server::{Server, connect};
use crate::tap::Tap;

#[tokio::test]
async fn a_transaction_that_is_committed_late_is_not_lost() {
    let database = Server::shared().database().await;
    let source = database.items().await;
    let mut tap = Tap::on(&source).await;
    // Begins first, with the smaller number and the earlier time, and is committed last.
    let late = connect(&database.url).await;
    late.batch_execute("BEGIN; INSERT INTO items VALUES ('late', 1)").await.unwrap();
    for value in 1..4 {
        database.put("early", value).await;
        tap.until_value("early", value).await;
    }
    late.batch_execute("COMMIT").await.unwrap();
    tap.until_value("late", 1).await;
    // In a part of a transaction, whose number is larger than that of its whole.
    late.batch_execute("BEGIN; SAVEPOINT s; INSERT INTO items VALUES ('later', 1); RELEASE s").await.unwrap();
    database.put("early", 9).await;
    tap.until_value("early", 9).await;
    late.batch_execute("COMMIT").await.unwrap();
    tap.until_value("later", 1).await;
}

#[tokio::test]
async fn rows_that_are_deleted_are_missed_by_the_count() {
    let database = Server::shared().database().await;
    let source = database.items().await;
    database.sql("INSERT INTO items SELECT 'n' || n, n FROM generate_series(1, 50) n").await;
    let mut tap = Tap::on(&source).await;
    database.sql("DELETE FROM items WHERE name = 'n7'").await;
    tap.until_gone("n7").await;
    // As many come as go, and one is another row under the same key.
    database
        .sql("BEGIN; DELETE FROM items WHERE value < 4; INSERT INTO items VALUES ('a', 1), ('b', 1), ('n1', 100); COMMIT")
        .await;
    tap.until(|tap| tap.value("n1") == Some(100) && !tap.values.contains_key("n3")).await;
    assert_eq!(tap.values.len(), 49);
    assert_eq!(tap.log.iter().filter(|line| line.starts_with("gone")).count(), 3, "{:#?}", tap.log);
    database.sql("TRUNCATE items").await;
    tap.until(|tap| tap.values.is_empty()).await;
    assert_eq!(tap.log.iter().filter(|line| *line == "begin").count(), 1, "one snapshot was enough");
}

#[tokio::test]
async fn a_column_with_a_default_is_in_rows_that_nobody_wrote() {
    let database = Server::shared().database().await;
    let source = database.items().await;
    database.put("a", 1).await;
    let mut tap = Tap::on(&source).await;
    database.sql("ALTER TABLE items ADD COLUMN colour text DEFAULT 'red'").await;
    tap.until(|tap| tap.values["a"]["colour"] == "red").await;
    database.sql("ALTER TABLE items RENAME COLUMN colour TO color").await;
    tap.until(|tap| tap.values["a"]["color"] == "red" && tap.values["a"].get("colour").is_none()).await;
}

#[tokio::test]
async fn rows_of_a_partition_that_is_attached_are_seen() {
    let database = Server::shared().database().await;
    database
        .sql(
            "CREATE TABLE items (name text PRIMARY KEY, value bigint) PARTITION BY LIST (name);
             CREATE TABLE items_a PARTITION OF items FOR VALUES IN ('a');
             CREATE TABLE items_b (name text PRIMARY KEY, value bigint);
             INSERT INTO items VALUES ('a', 1); INSERT INTO items_b VALUES ('b', 2)",
        )
        .await;
    let source = database.source("items");
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.names(), ["a"]);
    database.sql("ALTER TABLE items ATTACH PARTITION items_b FOR VALUES IN ('b')").await;
    tap.until_value("b", 2).await;
    database.sql("ALTER TABLE items DETACH PARTITION items_a").await;
    tap.until_gone("a").await;
}

#[tokio::test]
async fn a_view_is_compared_whole_and_one_of_two_rows_with_one_key_wins() {
    let database = Server::shared().database().await;
    database.items().await;
    database.sql("CREATE VIEW even AS SELECT value % 10 AS name, value FROM items WHERE value % 2 = 0").await;
    database.sql("INSERT INTO items VALUES ('a', 2), ('b', 4), ('c', 3), ('d', 12)").await;
    let source = database.source("even").key(["name"]);
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.names(), ["2", "4"]);
    assert_eq!(tap.value("2"), Some(12), "its text is the smaller one");
    assert!(
        tap.log.iter().any(|line| line == "rejected 2: conflict (another row has the same key)"),
        "{:?}",
        tap.log
    );
    let lines = tap.log.len();
    database.sql("DELETE FROM items WHERE name = 'd'").await;
    tap.until_value("2", 2).await;
    database.sql("UPDATE items SET value = 5 WHERE name = 'b'").await;
    tap.until_gone("4").await;
    assert_eq!(tap.log[lines..], ["put 2", "gone 4"]);
}

#[tokio::test]
async fn keys_of_several_columns_are_namespaces_and_names() {
    let database = Server::shared().database().await;
    database
        .sql(
            "CREATE TABLE pages (site text, path text, lang text, value bigint, PRIMARY KEY (path, site, lang));
             INSERT INTO pages VALUES ('shop', 'a/b', 'en', 1), ('shop', 'a', 'b/en', 2)",
        )
        .await;
    let tap = Tap::on(&database.source("pages").namespace("site")).await;
    assert_eq!(tap.names(), ["shop/a%2Fb/en", "shop/a/b%2Fen"]);
    let tap = Tap::on(&database.source("pages").key(["lang"])).await;
    assert_eq!(tap.names(), ["b/en", "en"]);
}

#[tokio::test]
async fn a_server_that_is_silent_is_not_waited_for_without_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://me@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
    let source =
        watchkeeper_sources::postgres::Postgres::table(&url, "items").timeout(Duration::from_millis(200));
    let error = Tap::refusal(&source).await;
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("not connected after 200ms"), "{error}");
}
