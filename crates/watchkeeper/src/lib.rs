//! Watch custom resources and drive the world to the state they declare.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper::prelude::*;
//!
//! async fn reconcile(map: Arc<ConfigMap>, cx: Context<ConfigMap>) -> Result<Action> {
//!     let copy = ConfigMap { data: map.data.clone(), ..cx.named_after("copy") };
//!     cx.children().apply([copy]).await?;
//!     Ok(Action::done())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     watchkeeper::log::init();
//!     Manager::from_args()
//!         .controller(Controller::of::<ConfigMap>().owns::<ConfigMap>().reconcile(reconcile))
//!         .run()
//!         .await
//! }
//! ```
//!
//! # Features
//!
//! | feature | on by default | what it adds |
//! |---|---|---|
//! | `derive` | yes | [`kind`](macro@kind) and [`schema`](macro@schema): custom resources from structs |
//! | `args` | yes | [`Manager::from_args`](runtime::Manager::from_args): the options of a program |
//! | `election` | yes | [`Manager::leader_election`](runtime::Manager::leader_election): one of several replicas works; `--leader-elect` |
//! | `events` | yes | [`Context::event`](runtime::Context::event): what `kubectl events` shows about an object |
//! | `log` | yes | [`log::init`]: a log in one line |
//! | `server` | yes | [`Manager::serve`](runtime::Manager::serve): probes and metrics; on Unix |
//! | `webhooks` | no | `Manager::webhook`: admission and conversion webhooks; on Unix |
//! | `latest` | yes | the newest version of the Kubernetes types; without it, choose one with a feature of `k8s-openapi` |
//! | `compressed` | no | [`Policy::Compressed`](informer::Policy): caches held compressed; needs a C compiler |
//! | `channel`, `etcd`, `files`, `http`, `mysql`, `postgres`, `sqlite`, `union`, `webhook-source` | no | what can be watched besides Kubernetes: modules of [`sources`] |
//!
//! # The parts
//!
//! For those who want one of them only:
//!
//! | | |
//! |---|---|
//! | [`runtime`] | controllers and their manager |
//! | [`client`] | reads from caches that show own writes, writes that know when nothing would change |
//! | `webhooks` | defaulting, validation and conversion as functions, with certificates that look after themselves |
//! | [`election`] | one of several replicas leads |
//! | [`events`] | what people see in `kubectl events` |
//! | [`queue`] | which key to work on next |
//! | [`informer`] | a local, indexed copy of what is watched |
//! | [`sources`] | what can be watched |
//! | [`source`] | the contract of a source, for those who write one |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use watchkeeper_client as client;
pub use watchkeeper_core as source;
#[cfg(feature = "election")]
pub use watchkeeper_election as election;
#[cfg(feature = "events")]
pub use watchkeeper_events as events;
pub use watchkeeper_informer as informer;
pub use watchkeeper_queue as queue;
pub use watchkeeper_runtime as runtime;
pub use watchkeeper_sources as sources;
#[cfg(all(feature = "webhooks", unix))]
pub use watchkeeper_webhook as webhooks;

pub use watchkeeper_client::{named, named_after};
pub use watchkeeper_core::{Change, ChangeKind, Delivery, Key, Uid, Version};
#[cfg(feature = "derive")]
pub use watchkeeper_macros::{kind, schema};
#[cfg(feature = "log")]
pub use watchkeeper_runtime::log;
pub use watchkeeper_sources::kubernetes::Connection;

/// The dependencies of the code that the macros write. Not for use by hand: they may change with every version.
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod __private {
    pub use {k8s_openapi, kube, schemars, serde, serde_json};
}

/// The names that a controller needs: `use watchkeeper::prelude::*`.
pub mod prelude {
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use kube_core::{CustomResourceExt, Resource, ResourceExt};
    pub use watchkeeper_client::{
        Cache, Client, Condition, DynamicKind, DynamicObject, Kind, condition, not_ready, ready,
    };
    pub use watchkeeper_core::Key;
    #[cfg(feature = "events")]
    pub use watchkeeper_events::Event;
    pub use watchkeeper_runtime::{
        Action, Context, Controller, Error, Every, Manager, Predicate, Reconciler, Request, Result, Verbs,
        Watch,
    };
    #[cfg(all(feature = "webhooks", unix))]
    pub use watchkeeper_webhook::{AdmissionRequest, Verdict, Webhook};

    pub use crate::{Connection, named, named_after};
}
