//! Sources: where the objects come from that Watchkeeper watches.
//!
//! Each module is one implementation of [`watchkeeper_core::Source`] and stands behind a feature of its own name:
//!
//! - `kubernetes`: a kind of an API server (on by default);
//! - `etcd`: the documents under a prefix of etcd;
//! - `files`: the YAML and JSON documents of a directory or a file;
//! - `http`: the items of a list that a service has;
//! - `webhook`: any other source, read again when somebody calls;
//! - `channel`: what the program itself puts there;
//! - `union`: several of these as one.

#[cfg(feature = "channel")]
pub mod channel;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(any(feature = "files", feature = "http", feature = "webhook"))]
mod print;
#[cfg(feature = "union")]
pub mod union;
#[cfg(feature = "webhook")]
pub mod webhook;
