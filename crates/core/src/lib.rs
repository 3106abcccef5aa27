//! The vocabulary of Watchkeeper: what is watched, how a change is described, and what a source of changes
//! promises.
//!
//! The crate does no I/O and spawns nothing. It defines
//!
//! - [`Key`], [`Uid`] and [`Version`]: which object, which incarnation of it, which state of it;
//! - [`Document`]: one object as bytes, its [`Header`] read, its body still encoded; read by [`json`];
//! - [`Change`]: an old and a new state;
//! - [`text`]: what others wrote, made fit for errors;
//! - [`Source`]: anything that can be watched, with its [`Capabilities`] and classified [`Error`]s.
//!
//! With the feature `contract` it also has the [`contract`] of a source as a runnable suite and
//! a reference source in memory that holds it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod change;
#[cfg(feature = "contract")]
pub mod contract;
mod document;
mod error;
pub mod json;
mod key;
mod projection;
mod source;
pub mod text;
mod uid;
mod version;

pub use change::{Change, ChangeKind, Delivery};
pub use document::{Document, Header, Known, ReadError, Unreadable};
pub use error::Error;
pub use key::Key;
pub use projection::Projection;
pub use source::{
    Capabilities, Event, Feed, Follow, Freshness, ObjectStatus, Reason, Rejection, Source, SourceGauge,
    Start, StatusWritten,
};
pub use uid::Uid;
pub use version::{Order, Version};
