//! Sources: where the objects come from that Watchkeeper watches.
//!
//! Each module is one implementation of [`watchkeeper_core::Source`] and stands behind a feature of its own name:
//!
//! - `kubernetes`: a kind of an API server (on by default);
//! - `etcd`: the documents under a prefix of etcd;
//! - `files`: the YAML and JSON documents of a directory or a file;
//! - `http`: the items of a list that a service has;
//! - `mysql`: the rows of a table of MySQL or MariaDB;
//! - `postgres`: the rows of a table of PostgreSQL;
//! - `sqlite`: the rows of a table of SQLite;
//! - `webhook`: any other source, read again when somebody calls;
//! - `channel`: what the program itself puts there;
//! - `union`: several of these as one.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "etcd", feature = "postgres"))]
mod audit;
#[cfg(feature = "channel")]
pub mod channel;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod database;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(
    feature = "files",
    feature = "http",
    feature = "mysql",
    feature = "postgres",
    feature = "sqlite",
    feature = "webhook"
))]
mod print;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "union")]
pub mod union;
#[cfg(feature = "webhook")]
pub mod webhook;
