//! Notifications are hints: they may be few, late, or lost.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use watchkeeper_core::Error;
use watchkeeper_sources::postgres::Postgres;

use crate::server::{Database, Server};
use crate::tap::Tap;

/// Never, as far as a test is concerned.
const NEVER: Duration = Duration::from_secs(3600);

async fn notified(database: &Database) -> Postgres {
    let source = database.items().await.notify().rescan(NEVER);
    source.install().await.unwrap();
    source
}

#[tokio::test]
async fn a_trigger_tells_of_every_kind_of_change() {
    let database = Server::shared().database().await;
    let source = notified(&database).await;
    database.put("a", 1).await;
    let mut tap = Tap::on(&source).await;
    database.put("b", 1).await;
    tap.until_value("b", 1).await;
    database.put("a", 2).await;
    tap.until_value("a", 2).await;
    database.sql("UPDATE items SET name = 'c' WHERE name = 'b'").await;
    tap.until(|tap| tap.names() == ["a", "c"]).await;
    database.sql("DELETE FROM items WHERE name = 'a'").await;
    tap.until_gone("a").await;
    database.sql("INSERT INTO items SELECT 'n' || n, n FROM generate_series(1, 2000) n").await;
    tap.until(|tap| tap.values.len() == 2001).await;
    database.sql("TRUNCATE items").await;
    tap.until(|tap| tap.values.is_empty()).await;
    assert_eq!(source.figures().drift, 0);
    assert_eq!(source.figures().snapshots, 1);
}

#[tokio::test]
async fn what_is_missing_is_created_if_asked_for_and_otherwise_told_as_statements() {
    let server = Server::shared();
    let database = server.database().await;
    let items = database.items().await;
    database.put("a", 1).await;
    let missing = async |source: &Postgres| match Tap::refusal(source).await {
        Error::Missing(said) => said,
        other => panic!("{other}"),
    };
    // Whoever may can run what the error says.
    for source in [items.clone().notify().rescan(NEVER), items.clone().replicate()] {
        let said = missing(&source).await;
        assert!(said.contains("set install to true"), "{said}");
        database.sql(said.split_once("owner of the table: ").unwrap().1).await;
        let mut tap = Tap::on(&source).await;
        database.put("a", 2).await;
        tap.until_value("a", 2).await;
        database.put("a", 1).await;
        drop(tap);
        source.uninstall().await.unwrap();
        missing(&source).await;
        let mut tap = Tap::on(&source.clone().install_when_opened()).await;
        database.put("a", 3).await;
        tap.until_value("a", 3).await;
        drop(tap);
        source.uninstall().await.unwrap();
    }
    // A trigger that somebody has disabled stays so.
    let source = items.notify().install_when_opened();
    drop(Tap::on(&source).await);
    database.sql("ALTER TABLE items DISABLE TRIGGER ALL").await;
    let disabled = Tap::refusal(&source).await.to_string();
    assert!(disabled.contains("ENABLE TRIGGER"), "{disabled}");
    source.uninstall().await.unwrap();
    let user = format!("reader_{}", database.name);
    database.sql(&format!("CREATE ROLE {user} LOGIN; GRANT SELECT ON items TO {user}")).await;
    let source = Postgres::table(&server.url(&user, &database.name), "items").notify().install_when_opened();
    let denied = Tap::refusal(&source).await;
    assert!(matches!(&denied, Error::Denied(said) if said.contains("CREATE TRIGGER")), "{denied}");
}

#[tokio::test]
async fn a_key_that_is_too_long_to_be_notified_is_found_all_the_same() {
    let database = Server::shared().database().await;
    database
        .sql("CREATE TABLE items (name text, value bigint); CREATE UNIQUE INDEX ON items (md5(name))")
        .await;
    let source = database.source("items").key(["name"]).notify().rescan(NEVER);
    source.install().await.unwrap();
    let mut tap = Tap::on(&source).await;
    let name = "x".repeat(9000);
    database.put_plain(&name, 1).await;
    tap.until_value(&name, 1).await;
    database.sql("DELETE FROM items").await;
    tap.until_gone(&name).await;
}

impl Database {
    async fn put_plain(&self, name: &str, value: i64) {
        self.sql(&format!("INSERT INTO items VALUES ('{name}', {value})")).await;
    }
}

#[tokio::test]
async fn keys_are_notified_as_they_are_read_whatever_the_settings_of_the_writer_are() {
    let database = Server::shared().database().await;
    database
        .sql("CREATE TABLE events (at timestamptz, tag bytea, value bigint, PRIMARY KEY (at, tag))")
        .await;
    let source = database.source("events").notify().rescan(NEVER);
    source.install().await.unwrap();
    let mut tap = Tap::on(&source).await;
    database
        .sql(
            "SET datestyle = 'German'; SET timezone = 'America/New_York'; SET bytea_output = 'escape';
             INSERT INTO events VALUES ('2026-03-04 05:06:07.5+00', '\\x00ff', 1)",
        )
        .await;
    tap.until_value("2026-03-04 05:06:07.5+00/\\x00ff", 1).await;
    database.sql("DELETE FROM events").await;
    tap.until(|tap| tap.values.is_empty()).await;
}

#[tokio::test]
async fn a_change_that_nobody_notified_is_found_and_counted() {
    let database = Server::shared().database().await;
    let source = notified(&database).await.rescan(Duration::from_millis(200));
    database.put("a", 1).await;
    let mut tap = Tap::on(&source).await;
    for value in 2..20 {
        database.put("a", value).await;
        tap.until_value("a", value).await;
    }
    database.sql("SET session_replication_role = replica; INSERT INTO items VALUES ('lost', 1); DELETE FROM items WHERE name = 'a'; RESET session_replication_role").await;
    tap.until(|tap| tap.names() == ["lost"]).await;
    // It is counted when a heartbeat has come back that was sent after it was found.
    for value in 1.. {
        database.put("b", value).await;
        tap.until_value("b", value).await;
        if source.figures().drift > 0 {
            break;
        }
    }
    assert_eq!(source.figures().drift, 2, "{:?}", tap.log);
}

#[tokio::test]
async fn what_changes_while_a_connection_is_cut_is_seen() {
    let database = Server::shared().database().await;
    let source = notified(&database).await;
    database.put("a", 1).await;
    let mut tap = Tap::on(&source).await;
    database.cut().await;
    let error = tap.failure().await;
    assert_eq!(error.class(), "unavailable", "{error}");
    database.put("a", 2).await;
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.value("a"), Some(2));
    database.put("a", 3).await;
    tap.until_value("a", 3).await;
}

#[tokio::test]
async fn without_its_trigger_it_says_so_and_what_was_installed_can_be_removed() {
    let database = Server::shared().database().await;
    let source = database.items().await.notify();
    let error = Tap::refusal(&source).await.to_string();
    assert!(error.contains("no trigger watchkeeper_public_items") && error.contains("install"), "{error}");
    source.install().await.unwrap();
    source.install().await.unwrap();
    drop(Tap::on(&source).await);
    let left = "SELECT (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'watchkeeper%') \
                + (SELECT count(*) FROM pg_proc WHERE proname LIKE 'watchkeeper%')";
    assert_eq!(database.number(left).await, 3);
    source.uninstall().await.unwrap();
    assert_eq!(database.number(left).await, 0);
}

/// Hands on what the server says, but for notifications.
async fn deaf(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                loop {
                    let tag = from_server.read_u8().await?;
                    let length = from_server.read_u32().await?;
                    let mut body = vec![0; length as usize - 4];
                    from_server.read_exact(&mut body).await?;
                    if tag != b'A' {
                        to_client.write_u8(tag).await?;
                        to_client.write_u32(length).await?;
                        to_client.write_all(&body).await?;
                    }
                }
                #[allow(unreachable_code, reason = "the type of the block")]
                Ok::<(), std::io::Error>(())
            });
        }
    });
    here
}

#[tokio::test]
async fn a_connection_over_which_nothing_is_notified_is_given_up() {
    let server = Server::shared();
    let database = server.database().await;
    notified(&database).await;
    let port = deaf(server.port).await;
    let url = format!("postgres://postgres@127.0.0.1:{port}/{}?sslmode=disable", database.name);
    let source = Postgres::table(&url, "items").notify().rescan(NEVER).timeout(Duration::from_millis(600));
    let error = Tap::refusal(&source).await;
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("pooler"), "{error}");
}
