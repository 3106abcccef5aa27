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
//! `write` builds it, asks the [`Guard`], sends it (`exchange`) and notes the answer in the `overlay` of its kind
//! (`kind_state`), which `view` lays over the informer's store for every read.

mod applied;
mod apply;
mod cache;
mod child;
mod children;
mod client;
mod condition;
mod delete;
mod desired;
mod difference;
mod discovery;
mod dynamic;
mod error;
mod exchange;
mod fields;
mod finalizer;
mod guard;
mod kind;
mod kind_state;
mod list;
mod live;
mod lookup;
mod modify;
mod named;
mod overlay;
mod owner;
mod patch;
mod path;
mod recent;
mod selector;
mod status;
mod subresource;
mod view;
mod write;

pub use apply::Apply;
pub use cache::Cache;
pub use children::{Child, ChildSet, Children, Outcomes};
pub use client::{Client, ClientBuilder};
pub use condition::{Condition, ConditionUpdate, condition, not_ready, ready};
pub use delete::{Delete, DeleteAll, Propagation};
pub use dynamic::{DynamicKind, DynamicObject};
pub use error::Error;
pub use guard::Guard;
pub use kind::{Kind, key_of, kind_of};
pub use list::List;
pub use live::Live;
pub use lookup::Lookup;
pub use named::{named, named_after};
pub use owner::{controller_of, controller_reference, owner_reference};
pub use patch::Patch;
pub use selector::SelectorError;
pub use status::StatusWriter;
pub use subresource::Subresource;
pub use write::{Outcome, Update, Written};

pub use watchkeeper_informer::{Informer, Policy};
pub use watchkeeper_sources::kubernetes::Connection;
pub use watchkeeper_wire::StatusCause;
