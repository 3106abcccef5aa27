//! Polling that does not lose rows, and takes no memory.

use std::time::Duration;

use futures_util::StreamExt as _;
use watchkeeper_core::{Event, Freshness, Source as _, Start};

use crate::server::Server;
use crate::tap::Tap;

#[tokio::test]
async fn a_transaction_that_is_committed_late_is_not_lost() {
    let database = Server::shared().database();
    database.sql(
        "CREATE TABLE items (name varchar(20) PRIMARY KEY, value bigint, updated_at timestamp(6) DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6))",
    );
    let put = |value| format!("REPLACE INTO items (name, value) VALUES ('early', {value})");
    let mut tap = Tap::on(&database.source("items")).await;
    // Begins first, with the earlier time, and is committed last.
    let late = database.another();
    late.sql("BEGIN; INSERT INTO items (name, value) VALUES ('late', 1)");
    for value in 1..4 {
        database.sql(&put(value));
        tap.until_value("early", value).await;
    }
    late.sql("COMMIT");
    tap.until_value("late", 1).await;
    late.sql("BEGIN; INSERT INTO items (name, value) VALUES ('undone', 1); ROLLBACK");
    database.sql(&put(9));
    tap.until_value("early", 9).await;
    assert!(!tap.log.concat().contains("undone"));
}

#[tokio::test]
async fn rows_that_are_deleted_are_gone() {
    let database = Server::shared().database();
    let source = database.items();
    database.sql("INSERT INTO items SELECT CONCAT('n', seq), seq FROM seq_1_to_50");
    let mut tap = Tap::on(&source).await;
    database.sql("DELETE FROM items WHERE name = 'n7'");
    tap.until_gone("n7").await;
    // As many come as go, and one is another row under the same key.
    database.sql("BEGIN; DELETE FROM items WHERE value < 4; INSERT INTO items VALUES ('a', 1), ('b', 1), ('n1', 100); COMMIT");
    tap.until(|tap| tap.value("n1") == Some(100) && !tap.values.contains_key("n3")).await;
    assert_eq!(tap.values.len(), 49);
    assert_eq!(tap.log.iter().filter(|line| line.starts_with("gone")).count(), 3, "{:#?}", tap.log);
    database.sql("TRUNCATE items");
    tap.until(|tap| tap.values.is_empty()).await;
    assert_eq!(tap.log.iter().filter(|line| *line == "begin").count(), 1, "one snapshot was enough");
}

#[tokio::test]
async fn a_read_is_of_one_moment() {
    let database = Server::shared().database();
    let source = database.items();
    // Far more than buffers on the way hold.
    database.sql("ALTER TABLE items ADD COLUMN more longtext");
    database.sql(
        "INSERT INTO items SELECT CONCAT('n', LPAD(seq, 5, '0')), 1, REPEAT('x', 20000) FROM seq_1_to_2000",
    );
    let mut feed = source.open(Start::Snapshot(Freshness::Any));
    assert!(matches!(feed.next().await.unwrap().unwrap(), Event::Begin));
    assert!(matches!(feed.next().await.unwrap().unwrap(), Event::Item(_)));
    database.sql("DELETE FROM items WHERE name > 'n01000'; INSERT INTO items VALUES ('z', 2, NULL)");
    let mut names = 1;
    loop {
        match feed.next().await.unwrap().unwrap() {
            Event::Item(document) => {
                assert_ne!(document.header.key.name(), "z");
                names += 1;
            }
            Event::Complete(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, 2000);
}

#[tokio::test]
async fn columns_that_come_and_go_are_read() {
    let database = Server::shared().database();
    let source = database.items();
    database.put("a", 1);
    let mut tap = Tap::on(&source).await;
    database.sql("ALTER TABLE items ADD COLUMN colour varchar(10) DEFAULT 'red'");
    tap.until(|tap| tap.values["a"]["colour"] == "red").await;
    database.sql("ALTER TABLE items RENAME COLUMN colour TO color");
    tap.until(|tap| tap.values["a"]["color"] == "red" && tap.values["a"].get("colour").is_none()).await;
    assert_eq!(tap.log.iter().filter(|line| line.starts_with("gone")).count(), 0);
}

#[tokio::test]
async fn a_view_is_read_and_one_of_two_rows_with_one_key_wins() {
    let database = Server::shared().database();
    database.items();
    database.sql("CREATE VIEW even AS SELECT value % 10 AS name, value FROM items WHERE value % 2 = 0");
    database.sql("INSERT INTO items VALUES ('a', 2), ('b', 4), ('c', 3), ('d', 12)");
    let source = database.source("even").key(["name"]);
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.names(), ["2", "4"]);
    assert_eq!(tap.value("2"), Some(2), "the smaller one");
    assert!(
        tap.log.iter().any(|line| line == "rejected 2: conflict (another row has the same key)"),
        "{:?}",
        tap.log
    );
    database.sql("DELETE FROM items WHERE name = 'a'");
    tap.until_value("2", 12).await;
}

#[tokio::test]
async fn keys_of_several_columns_are_namespaces_and_names() {
    let database = Server::shared().database();
    database.sql(
        "CREATE TABLE pages (site varchar(9), path varchar(9), lang varchar(9), value bigint, PRIMARY KEY (path, site, lang));
         INSERT INTO pages VALUES ('shop', 'a/b', 'en', 1), ('shop', 'a', 'b/en', 2)",
    );
    let tap = Tap::on(&database.source("pages").namespace("site")).await;
    assert_eq!(tap.names(), ["shop/a%2Fb/en", "shop/a/b%2Fen"]);
    let tap = Tap::on(&database.source("pages").key(["lang"])).await;
    assert_eq!(tap.names(), ["b/en", "en"]);
    // By the name of its database, and without a column.
    let url = database.url.replace(&database.name, "mysql");
    let other = watchkeeper_sources::mysql::Mysql::table(&url, &format!("{}.pages", database.name));
    let tap = Tap::on(&other.without(["value"])).await;
    assert!(tap.values["a%2Fb/shop/en"].get("value").is_none(), "{:?}", tap.values);
}

/// What this process has, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
async fn the_first_snapshot_of_a_hundred_thousand_rows_is_bounded_in_memory() {
    let database = Server::shared().database();
    let source = database.items();
    // 200 MB.
    database.sql("ALTER TABLE items ADD COLUMN more text");
    database.sql("INSERT INTO items SELECT CONCAT('n', seq), seq, REPEAT('x', 2000) FROM seq_1_to_100000");
    let before = resident();
    let mut feed = source.open(Start::Snapshot(Freshness::Any));
    let (mut items, mut peak) = (0, before);
    loop {
        match feed.next().await.unwrap().unwrap() {
            Event::Item(_) => items += 1,
            Event::Complete(_) => break,
            _ => {}
        }
        if items % 1000 == 0 {
            peak = peak.max(resident());
        }
    }
    assert_eq!(items, 100_000);
    let taken = (peak - before) >> 20;
    assert!(taken < 96, "{taken} MiB");
    database.sql("DROP TABLE items");
}

#[tokio::test]
async fn a_server_that_is_silent_is_not_waited_for_without_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mysql://me@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
    let source = watchkeeper_sources::mysql::Mysql::table(&url, "items").timeout(Duration::from_millis(200));
    let error = Tap::refusal(&source).await;
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("200ms"), "{error}");
}
