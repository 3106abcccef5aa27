//! A local, indexed, eventually consistent copy of anything that can be watched, and the news of every change of it.
//!
//! The way of a change: a [`Source`](watchkeeper_core::Source) delivers it to a reflector, which decides when to resume,
//! when to take a new snapshot and how long to wait; the reflector writes it into the [`Store`]; the store shows it, in
//! its objects and indexes, and then to every [`Subscription`].
//!
//! The crate does not know Kubernetes. It needs a tokio runtime for tasks and timers, and does no other I/O.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod codec;
#[cfg(feature = "compressed")]
mod dictionary;
#[cfg(not(feature = "compressed"))]
#[path = "no_dictionary.rs"]
mod dictionary;
mod faults;
mod gauges;
mod index;
mod informer;
mod journal;
mod metadata;
mod metrics;
mod object;
mod outbox;
mod pending;
mod plan;
mod recent;
mod reflector;
mod set;
mod shared;
mod status;
mod store;
mod subscription;

pub use backoff::SourceBackoff;
pub use codec::{Policy, decode};
pub use index::{Index, IndexError};
pub use informer::{Informer, InformerBuilder};
pub use journal::Entry;
pub use metadata::{Metadata, Owner};
pub use metrics::InformerMetrics;
pub use object::{AnyValue, DecodeError, Object, Untyped};
pub use set::InformerSet;
pub use status::{Phase, SourceId, SourceStatus};
pub use store::{Readable, Store};
pub use subscription::{Handler, Subscription};
