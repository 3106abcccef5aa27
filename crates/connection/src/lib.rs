//! The way to a Kubernetes API server: where it is, who asks, and how bytes get there.
//!
//! - [`Connection`] is the handle that everything is sent over.
//! - [`Config`] says where a cluster is and who asks. It comes from a [`Kubeconfig`], from the pod that the process runs in, or
//!   from a URL.
//! - [`Transport`] is what carries requests. A program that wants to see, count or refuse requests puts one of its own around
//!   that of a connection.
//! - [`HttpClient`] sends requests to any HTTP server, over the same TLS and the same pools.
//!
//! ```no_run
//! use bytes::Bytes;
//! use watchkeeper_connection::Connection;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::infer().await?;
//! let answer = connection.request(http::Request::get("/version").body(Bytes::new())?).await?;
//! println!("{}", String::from_utf8_lossy(&answer));
//! # Ok(()) }
//! ```
//!
//! # What it promises
//!
//! - HTTP/1.1. An answer has its TCP connection for itself until its body is read to the end, so that any number of watches
//!   leaves the next request as it was. A connection that is free is used again for 90 s.
//! - **Nothing is sent twice.** A request is sent again only if the pooled connection that it was to go over turns out to be
//!   closed before a byte of it was written.
//! - Connecting takes 30 s at most, TLS and proxy included. There is no other time limit: callers have their own.
//! - Tokens, certificates and authorities that are in files are read again when the files change, at most once a minute, and
//!   after an answer of 401. If they cannot be read any more, what was read last stays in use.
//! - Dropping a future or a body cancels the request and closes its TCP connection.
//! - No secret is in an error, in a log line or in what `Debug` prints.
//!
//! # What it does not do
//!
//! - Repeat requests that failed, follow redirects, or wait because a server asks to.
//! - HTTP/2, compression, SOCKS proxies; `$HTTPS_PROXY` is not looked at, `proxy-url` of a kubeconfig is.
//! - `auth-provider` in kubeconfigs, which Kubernetes removed in 1.26. `exec` plugins take its place.

mod body;
mod config;
mod connection;
mod connector;
mod credentials;
mod error;
mod followed;
mod greeting;
mod http_client;
mod in_cluster;
mod kubeconfig;
mod link;
mod pool;
mod proxy;
mod server;
mod socket;
mod stream;
mod tls;
mod transport;

pub use body::Body;
pub use config::Config;
pub use connection::{Connection, Locality};
pub use error::{ConnectError, Error, Obstacle, RequestError};
pub use http_client::HttpClient;
pub use kubeconfig::{Kubeconfig, KubeconfigError};
pub use socket::SocketError;
pub use transport::{Subject, Transport};
