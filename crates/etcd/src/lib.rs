//! A client of etcd v3, made for watching and for storage: keys, transactions, watches, leases.
//!
//! [`Client`] is a handle with one HTTP/2 connection, to whichever of its endpoints answers. [`Watcher`] is one stream with any number of
//! watches. Requests and answers are plain values ([`Range`], [`Txn`], [`Notice`]), named as etcd names them.
//!
//! # What it promises
//!
//! - **What failed is told apart by what is known of it.** [`Error::Unknown`] says that the request may have happened; most others say that
//!   it did not. A read whose outcome is unknown is asked again, of the next endpoint; a write never is.
//! - **Nothing waits for ever.** Every call has a deadline, and connections that are in use are pinged.
//! - **Memory is bounded** by [`ClientBuilder::max_message_bytes`] for each message, before any of it is reserved.
//! - **Nothing outlives its handles.** The connection closes when the last client and stream that uses it is dropped.
//! - **No secret in an error.** Neither passwords, tokens and values nor the credentials of URLs are in a message.
//!
//! # What it does not do
//!
//! It does not resume watches and does not keep leases alive by itself: whoever holds them knows how far they are.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod client;
mod cluster;
mod connection;
mod duplex;
mod endpoint;
mod error;
mod grpc;
mod keys;
mod kv;
mod lease;
mod message;
mod session;
mod settings;
mod snapshot_file;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod txn;
mod watch;
mod watcher;

pub use client::Client;
pub use cluster::{Member, Status};
pub use error::{Code, Error};
pub use keys::{Header, KeyValue, Keys};
pub use kv::{Delete, Deleted, Found, Put, PutDone, Range};
pub use lease::{KeepAlive, Lease};
pub use settings::ClientBuilder;
pub use snapshot_file::{SnapshotFile, SnapshotFileError};
pub use txn::{Compare, Operation, Outcome, Relation, Txn, TxnDone};
pub use watch::{Change, ChangeKind, Notice, Watch, WatchId};
pub use watcher::Watcher;
