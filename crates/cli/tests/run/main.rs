//! `watchkeeper run`, as a person or a script sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod applies;
mod commands;
mod hook;
#[path = "../../../sources/tests/mysql/server.rs"]
#[allow(dead_code, reason = "the tests of the source use more of it")]
mod mysql;
mod mysql_tables;
mod once;
mod place;
#[path = "../../../sources/tests/postgres/server.rs"]
#[allow(dead_code, reason = "the tests of the source use more of it")]
mod postgres;
mod recipes;
mod requests;
mod restarts;
mod secrets;
#[path = "../watch/server.rs"]
#[allow(dead_code, reason = "the tests of watch use more of it")]
mod server;
mod sqlite_tables;
mod stores;
#[path = "../watch/watcher.rs"]
#[allow(dead_code, reason = "the tests of watch use more of it")]
mod watcher;
mod webhooks;
