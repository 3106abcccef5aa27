//! An API server that any Kubernetes client takes for the real one.
//!
//! [`ApiServer`] answers requests over a [`Storage`](watchkeeper_storage::Storage); [`authentication::listen`] puts it on the
//! sockets of a [`front`], with certificates and tokens. The way of a request through this crate:
//!
//! 1. `authentication`: who sent it;
//! 2. `request`: what the path, the query and the headers ask for;
//! 3. `access`: whether that is allowed;
//! 4. `dispatch`: which resource (`registry`, `discovery`), and what is to be done;
//! 5. `list` and `watch` read, `write` changes: through the rules of the `resource`, which come from the table of built-in
//!    kinds or from a `definition`;
//! 6. `record`: objects are stored as the bytes that are served, so lists are concatenations and a change is encoded once
//!    for all watchers;
//! 7. `render`, `reply`: objects, tables or metadata, and back to HTTP.
//!
//! `accounts` are the tokens by which ServiceAccounts say who they are. `lifecycle` is what happens without a request.

mod access;
mod advertise;
mod api_server;
mod api_services;
mod aside;
pub mod authentication;
mod bootstrap;
mod budget;
mod call;
mod crd;
mod denial;
mod discovery;
mod dispatch;
mod documents;
mod failure;
mod filter;
mod following;
mod gzip;
mod health;
mod in_flight;
mod lifecycle;
mod list;
mod listing;
mod meta;
mod metrics;
mod openapi;
mod random;
mod record;
mod registry;
mod render;
mod reply;
mod request;
mod resource;
mod reviews;
mod route;
mod server;
mod service_accounts;
mod startup;
mod stopping;
mod time;
mod watch;
mod write;

pub use access::Authorization;
pub use api_server::ApiServer;
pub use health::release as version;
pub use in_flight::InFlightLimits;
pub use request::MAX_REQUEST_BYTES;
pub use server::{Error, Options};
pub use service_accounts::{AccountAuthenticator, AccountTokens, KeyError};
pub use time::Clock;
/// What puts the server on sockets.
pub use watchkeeper_front as front;
pub use write::admission::built_in as admission_plugins;
