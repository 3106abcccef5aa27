//! The versioned store under the API server: an ordered map with one global revision, snapshots of the recent past,
//! and watches.
//!
//! - [`Storage`] is the contract. Backends: [`Memory`] lives as long as the process, [`Embedded`] in a directory, `Etcd` (feature `etcd`)
//!   in a cluster that several processes share.
//! - [`Commit`] is a change with its preconditions, [`Range`] a stretch of keys, [`Watch`] a stream of [`Event`]s.
//! - [`follow`] lists, then watches, and goes on after whatever fails.
//! - [`Snapshot`] is everything that a storage holds, to be taken from one place to another.
//! - [`Error`] says what went wrong by what can be done about it, [`Options`] what can be chosen.
//!
//! ```
//! use futures_util::StreamExt;
//! use watchkeeper_storage::{Commit, Error, Memory, Options, Range, Storage, Update};
//!
//! # futures_executor::block_on(async {
//! let storage = Memory::new(Options::default());
//! let created = storage.commit(Commit::new().absent("/pods/a").put("/pods/a", "one")).await?;
//! storage.commit(Commit::new().unchanged("/pods/a", created.revision).put("/pods/a", "two")).await?;
//!
//! let before = storage.range(Range::prefix("/pods/").at(created.revision)).await?;
//! assert_eq!(before.entries[0].value, "one");
//!
//! let mut watch = storage.watch("/pods/", created.revision).await?;
//! let Some(Ok(Update::Event(event))) = watch.next().await else { panic!() };
//! assert_eq!(event.entry().unwrap().value, "two");
//! assert_eq!(event.previous().unwrap().value, "one");
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```
//!
//! What the backends in this process share, from the inside out: a `Tree` is the state at a revision, a `History` the
//! events of the window, old ones in a `Pack`, a `Hub` knows who watches what, the `Engine` puts them behind one lock. Trees and history are
//! pure. The embedded backend owns two threads and waits for them; that of etcd needs a runtime, and so does [`follow`] after a failure.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod commit;
#[cfg(feature = "contract")]
pub mod contract;
mod embedded;
mod engine;
mod entry;
mod error;
#[cfg(feature = "etcd")]
mod etcd;
mod event;
mod follow;
mod follower;
mod foreign;
mod history;
mod hub;
mod leadership;
mod memory;
mod options;
mod pack;
mod progress;
mod range;
mod snapshot;
mod stats;
mod storage;
mod tree;
mod watch;

pub use commit::{Commit, Committed, MAX_COMMIT_BYTES};
pub use embedded::Embedded;
pub use entry::{Entry, Revision};
pub use error::Error;
#[cfg(feature = "etcd")]
pub use etcd::{Etcd, EtcdOptions, Layout};
pub use event::{Change, Event};
pub use follow::{Follow, Followed, follow};
pub use foreign::Foreign;
pub use leadership::Leadership;
pub use memory::Memory;
pub use options::{Clock, Durability, Limits, Options, Window};
pub use progress::Progress;
pub use range::{Page, Range};
pub use snapshot::Snapshot;
pub use stats::{ClusterStats, Stats};
pub use storage::{Answer, Found, Storage};
pub use watch::{Update, Watch, Watching};
