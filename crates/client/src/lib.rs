//! The client of a controller.
//!
//! One [`Client`] reads from local caches, writes to the API, and sees its own writes:
//!
//! - **Declared caches.** A kind is read from memory once it was [declared](Client::declare). Reading a kind that nobody
//!   declared is an error at once, never a hidden watch of everything. [`Client::live`] asks the API itself.
//! - **Own writes are visible.** What a write answered is laid over the cache until the cache has caught up. No read waits
//!   for that; where it cannot be known what is newer, the read goes to the API.
//! - **Nothing is sent when nothing would change**: [`apply`](Client::apply), [`children`](Client::children),
//!   [`status`](Client::status), [`modify`](Client::modify), [finalizers](Client::add_finalizer).
//! - **Errors by what can be done about them**: [`Error`].
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper_client::{Cache, Client, Connection};
//! use watchkeeper_core::Key;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(Connection::infer().await?);
//! client.declare(Cache::of::<ConfigMap>().namespaces(["shop"]))?;
//! client.synced().await?;
//! if let Some(found) = client.get::<ConfigMap>(&Key::new(Some("shop"), "cart")).await? {
//!     let mut copy = ConfigMap::clone(&found);
//!     copy.data.get_or_insert_default().insert("total".into(), "3".into());
//!     client.update(&copy).await?;
//! }
//! for map in client.list::<ConfigMap>().in_namespace("shop").labels("app=web").await? {
//!     println!("{:?}", map.metadata.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a write
//!
//! `write` builds it, asks the [`Guard`], sends it (`exchange`) and notes the answer in the overlay of its kind
//! (`state`), which `state::view` lays over the informer's store for every read. `apply` is built on both.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod apply;
mod client;
mod error;
mod exchange;
mod guard;
mod kind;
mod read;
mod selector;
mod state;
mod write;

pub use apply::Apply;
pub use apply::children::{Child, ChildSet, Children, Outcomes};
pub use client::{Client, ClientBuilder};
pub use error::Error;
pub use guard::Guard;
pub use kind::dynamic::{DynamicKind, DynamicObject};
pub use kind::named::{named, named_after};
pub use kind::owner::{controller_of, controller_reference, owner_reference};
pub use kind::{Kind, StaticKind, key_of, kind_of};
pub use read::cache::Cache;
pub use read::list::List;
pub use read::live::Live;
pub use read::lookup::Lookup;
pub use selector::SelectorError;
pub use write::condition::{Condition, ConditionUpdate, condition, not_ready, ready};
pub use write::delete::{Delete, DeleteAll, Propagation};
pub use write::patch::Patch;
pub use write::status::StatusWriter;
pub use write::subresource::Subresource;
pub use write::{Outcome, Update, Written};

pub use watchkeeper_informer::{Informer, Policy};
pub use watchkeeper_sources::kubernetes::Connection;
pub use watchkeeper_wire::StatusCause;
