//! An API server that any Kubernetes client takes for the real one.
//!
//! [`ApiServer`] answers requests over a [`Storage`](watchkeeper_storage::Storage); [`authentication::listen`] puts it on the
//! sockets of a [`front`], with certificates and tokens. The way of a request through this crate:
//!
//! 1. `authentication`: who sent it;
//! 2. `request`: what the path, the query and the headers ask for;
//! 3. `access`: whether that is allowed, and why not;
//! 4. `handlers`: which resource of the `registry`, which operation, and the answer to it;
//! 5. `read` lists and watches, `write` changes: through the rules of the `resource`, which come from the table of built-in kinds
//!    or from a `crd`;
//! 6. `object`: objects are stored as the bytes that are served, so lists are concatenations and a change is encoded once for all
//!    watchers.
//!
//! `server` holds the handles that handlers and background tasks share, `startup` starts it: `bootstrap` creates the objects that
//! every cluster has, `lifecycle` is what happens without a request. `service_accounts` are their tokens. No module depends on one
//! that depends on it; `scripts/layers` checks that.

mod access;
mod advertise;
mod aggregation;
mod api_server;
mod api_services;
mod aside;
mod audit;
pub mod authentication;
mod bootstrap;
mod budget;
mod conversion;
mod crd;
mod documents;
mod flow_control;
mod gzip;
mod handlers;
mod in_flight;
mod lifecycle;
mod metrics;
mod object;
mod read;
mod registry;
mod remote;
mod request;
mod resource;
mod server;
mod service_accounts;
mod startup;
mod status_error;
mod stopping;
mod upstream_layout;
mod webhook_client;
mod write;

pub use access::Authorization;
pub use api_server::{ApiServer, is_about_servers};
pub use handlers::health::release as version;
pub use in_flight::InFlightLimits;
pub use metrics::METRICS;
pub use object::time::Clock;
pub use request::MAX_REQUEST_BYTES;
pub use server::{Error, Options};
pub use service_accounts::{AccountAuthenticator, AccountTokens, KeyError};
pub use upstream_layout::UpstreamLayout;
/// Listeners, TLS and HTTP, which the server is served with.
pub use watchkeeper_front as front;
pub use write::admission::built_in as admission_plugins;
pub use write::admission::is_on_by_default as admission_plugin_is_on_by_default;
pub use write::admission::{PodSecurityConfiguration, PodSecurityExemptions};
