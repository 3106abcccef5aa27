//! What the log tells, compared with the table itself.

use std::time::Duration;

use crate::server::{Database, Server};
use crate::tap::Tap;

const OFTEN: Duration = Duration::from_millis(50);

/// Changes rows in a way that the log does not tell: the publication has inserts only for a while.
async fn unpublished(database: &Database, statements: &str) {
    let publication = "watchkeeper_public_items";
    database.sql(&format!("ALTER PUBLICATION {publication} SET (publish = 'insert')")).await;
    database.sql(statements).await;
    database
        .sql(&format!("ALTER PUBLICATION {publication} SET (publish = 'insert, update, delete, truncate')"))
        .await;
}

#[tokio::test]
async fn what_was_not_published_is_found_told_and_counted() {
    let database = Server::shared().database().await;
    let source = database.items().await;
    source.clone().replicate().install().await.unwrap();
    let slot = format!("drift_{}", database.name);
    for source in [source.clone().replicate(), source.replicate_durably(&slot)] {
        database.sql("DELETE FROM items").await;
        for name in ["a", "b", "c"] {
            database.put(name, 1).await;
        }
        let source = source.check_drift(OFTEN);
        let mut tap = Tap::on(&source).await;
        unpublished(
            &database,
            "UPDATE items SET value = 2 WHERE name = 'a'; DELETE FROM items WHERE name = 'b'",
        )
        .await;
        tap.until_value("a", 2).await;
        tap.until_gone("b").await;
        assert_eq!(source.figures().drift, 2);
        // What the log tells is no drift.
        for value in 10..60 {
            database.put("c", value).await;
            tap.until_value("c", value).await;
        }
        assert_eq!(watchkeeper_core::Source::drift(&source), 2);
        assert_eq!(tap.log.iter().filter(|line| *line == "begin").count(), 1);
        drop(tap);
        let _ = source.drop_slot().await;
    }
}

#[tokio::test]
async fn a_feed_that_goes_on_where_another_one_was_compares_what_both_have_told() {
    let database = Server::shared().database().await;
    let slot = format!("drift_{}", database.name);
    let source = database.items().await.replicate_durably(&slot).check_drift(OFTEN);
    source.install().await.unwrap();
    for name in ["a", "b"] {
        database.put(name, 1).await;
    }
    let mut tap = Tap::on(&source).await;
    database.put("c", 1).await;
    tap.until(|tap| tap.position.is_some() && tap.value("c") == Some(1)).await;
    let position = tap.position.clone().unwrap();
    drop(tap);
    unpublished(&database, "UPDATE items SET value = 2 WHERE name = 'a'").await;
    let mut tap = Tap::start(&source, watchkeeper_core::Start::Resume(position));
    tap.until_value("a", 2).await;
    assert_eq!(source.figures().drift, 1, "{:#?}", tap.log);
    assert_eq!(tap.names(), ["a"], "nothing else was told again");
    drop(tap);
    source.drop_slot().await.unwrap();
}

#[tokio::test]
async fn while_everybody_writes_nothing_looks_like_drift() {
    let database = Server::shared().database().await;
    let source = database.items().await.replicate().check_drift(Duration::from_millis(1));
    source.install().await.unwrap();
    database.sql("INSERT INTO items SELECT 'n' || n, 0 FROM generate_series(1, 500) n").await;
    let mut tap = Tap::on(&source).await;
    for value in 1..200 {
        database
            .sql(&format!(
                "UPDATE items SET value = {value} WHERE name = 'n' || (1 + {value} * 7 % 500); \
                 DELETE FROM items WHERE name = 'm{}'; INSERT INTO items VALUES ('m{value}', {value})",
                value - 1
            ))
            .await;
        if value % 10 == 0 {
            tap.until_value(&format!("m{value}"), value).await;
        }
    }
    tap.until_value("m199", 199).await;
    assert_eq!(source.figures().drift, 0);
}
