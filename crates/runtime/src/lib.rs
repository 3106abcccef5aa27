//! The runtime of controllers: what turns changes into reconciles, and reconciles into a program.
//!
//! - A [`Controller`] says what wakes it ([`ControllerBuilder::owns`], [`ControllerBuilder::watches`], any [`Watch`]) and what it does then, as a
//!   [`Reconciler`] or an async function.
//! - A [`Manager`] runs controllers: it connects, fills caches, elects a leader, serves probes and metrics, and stops in
//!   order.
//! - A [`Context`] is what a reconcile has at hand: its object, and the [`Client`](watchkeeper_client::Client), whose reads come from
//!   memory and show its own writes.
//!
//! ```no_run
//! use std::sync::Arc;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper_runtime::{Action, Context, Controller, Manager, Result};
//!
//! async fn reconcile(map: Arc<ConfigMap>, cx: Context<ConfigMap>) -> Result<Action> {
//!     println!("{:?} (attempt {})", map.metadata.name, cx.attempt());
//!     Ok(Action::done())
//! }
//!
//! # async fn example() -> Result<()> {
//! Manager::from_environment("maps")
//!     .controller(Controller::of::<ConfigMap>().reconcile(reconcile))
//!     .run()
//!     .await
//! # }
//! ```
//!
//! # The way of a change
//!
//! `watch_task` takes changes from an informer's subscription, asks the rules of the `watch` what work they are, and queues it.
//! `controller/worker` takes a key from the queue and runs what `controller/object` makes of it. `manager` owns it all.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod action;
mod cause;
mod closed_world;
mod clusters;
mod context;
mod controller;
mod declared;
mod degradation;
mod error;
#[cfg(feature = "events")]
mod events;
#[cfg(not(feature = "events"))]
#[path = "no_events.rs"]
mod events;
#[cfg_attr(not(all(feature = "server", unix)), allow(dead_code, reason = "asked by the server of probes"))]
mod health;
mod hot_loop;
mod leadership;
#[cfg(feature = "log")]
pub mod log;
mod manager;
mod metric_names;
mod metrics;
mod predicate;
mod reconciler;
mod request;
mod rest;
#[cfg(all(feature = "server", unix))]
mod server;
mod signals;
mod trigger;
mod watch;
mod watch_task;

pub use action::Action;
pub use cause::Cause;
pub use context::Context;
pub use controller::{Controller, ControllerBuilder, DynamicWatches, Every, Keyed, Primary, WatchId};
pub use error::{Error, Result};
#[cfg(feature = "args")]
pub use manager::Args;
pub use manager::{Manager, Observer, Running, StartError, Stopped};
pub use predicate::Predicate;
pub use reconciler::Reconciler;
pub use request::{Request, WorkKey};
pub use trigger::Trigger;
pub use watch::{IntoWork, Watch};
pub use watchkeeper_description::{Description, Right, Rights, Verbs};
#[cfg(all(feature = "webhooks", unix))]
pub use watchkeeper_webhook as webhook;
