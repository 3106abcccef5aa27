//! `watch` over a table of a real PostgreSQL and over keys of a real etcd.

use std::process::Command;

use watchkeeper_etcd::{Delete, Keys, Put};

use super::postgres;
use super::server::watchkeeper;
use super::watcher::Watcher;

fn watch(url: &str) -> Command {
    let mut command = watchkeeper();
    command.arg("watch").arg(url);
    command
}

/// Ends it, and looks for the password in everything that it said.
fn end(watcher: Watcher) {
    watcher.signal("INT");
    let (code, out, notes) = watcher.end();
    assert_eq!(code, Some(0), "{notes:?}");
    assert!(!format!("{out:?} {notes:?}").contains("pass-word"), "{notes:?}");
}

#[test]
fn rows_of_postgres_are_shown_as_kinds_are_and_no_password_is() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = postgres::Server::shared();
    let database = runtime.block_on(server.database());
    let sql = |statements: &str| runtime.block_on(database.sql(statements));
    sql(
        "CREATE TABLE items (name text PRIMARY KEY, value bigint NOT NULL); INSERT INTO items VALUES ('a', 1)",
    );
    sql("CREATE ROLE locked LOGIN PASSWORD 'pass-word'; GRANT SELECT ON items TO locked");
    let address = server.url("locked:pass-word", &database.name);
    let polled = Watcher::start(watch(&format!("{address}?table=items&interval=50ms")));
    // The log shows every change; a role that may only read rows cannot have it.
    sql("CREATE PUBLICATION watched FOR TABLE items");
    let logged = format!("{}?table=items&mode=replicate&publication=watched", database.url);
    let logged = Watcher::start(watch(&logged));
    for watcher in [&polled, &logged] {
        assert_eq!(watcher.told(), "PRESENT   a");
        watcher.note("-- watching ");
    }
    sql("INSERT INTO items VALUES ('b', 2)");
    for watcher in [&polled, &logged] {
        assert_eq!(watcher.told(), "ADDED     b");
    }
    sql("UPDATE items SET value = 7 WHERE name = 'a'");
    for watcher in [&polled, &logged] {
        assert_eq!(watcher.told(), "MODIFIED  a  value: 1 -> 7");
    }
    sql("DELETE FROM items WHERE name = 'b'");
    for watcher in [&polled, &logged] {
        assert_eq!(watcher.told(), "DELETED   b");
    }
    end(polled);
    end(logged);
}

#[test]
fn keys_of_etcd_are_shown_as_kinds_are() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(server) = runtime.block_on(watchkeeper_etcd::testing::Server::start()).unwrap() else { return };
    let client = server.builder().build().unwrap();
    let put = |key: &str, value: &str| drop(runtime.block_on(client.put(&Put::new(key, value))).unwrap());
    put("/routes/a", r#"{"port": 80}"#);
    put("/elsewhere", "{}");
    let watcher = Watcher::start(watch(&format!("etcd://127.0.0.1:{}/routes/", server.port())));
    assert_eq!(watcher.told(), "PRESENT   a");
    watcher.note("-- watching ");
    put("/routes/b", r#"{"port": 81}"#);
    assert_eq!(watcher.told(), "ADDED     b");
    put("/routes/a", r#"{"port": 8080}"#);
    assert_eq!(watcher.told(), "MODIFIED  a  port: 80 -> 8080");
    runtime.block_on(client.delete(&Delete::of(Keys::one("/routes/b")))).unwrap();
    assert_eq!(watcher.told(), "DELETED   b");
    put("/routes/c", "no JSON: {");
    watcher.note("-- a change of ");
    end(watcher);
}
