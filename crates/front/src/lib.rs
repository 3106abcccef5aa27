//! The front of a server: bytes on sockets become requests, and answers become bytes again.
//!
//! The API server, the probes and metrics of operators, webhooks and gateways stand behind the same front. It knows nothing of
//! what they serve, nor of who may ask: a [`Service`] answers, and tells the front whom it has recognised.
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddr};
//! use std::time::Duration;
//!
//! use watchkeeper_front::{Body, Front, Listener, Request, Response};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), watchkeeper_front::Error> {
//! let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
//! let address = listener.address();
//! let answer = |request: Request| async move { Response::new(Body::whole(request.uri().path().to_owned())) };
//! let front = Front::builder(answer).http(listener).start()?;
//! println!("http://{address}");
//! front.shutdown(Duration::from_secs(10)).await;
//! # Ok(())
//! # }
//! ```
//!
//! - A [`Listener`] is a socket that was bound here, or by somebody else: systemd, or the process that this one replaces.
//! - [`Tls`] is how a listener speaks TLS: its certificate, and those of clients. It can be replaced while connections run, and
//!   follows its files when it comes from files. An [`Authority`] issues certificates where nobody else does.
//! - [`Front`] listens, within [`Limits`] and [`Deadlines`], and counts in [`AccessMetrics`]. It ends
//!   [gracefully](Front::shutdown), or [hands over](Front::hand_over) to another process without losing a request.
//! - A [`Service`] answers a [`Request`]. The [`Peer`] of a request says where it came from and with which certificate;
//!   [`Shutdown`] tells streams to end. [`Body`] is what requests and answers carry, trailers included. An [`Upgrade`] takes over
//!   the connection of a request that asked for another protocol.
//!
//! The way of a request: `front` accepts within the limits of `connections`, `connection` speaks TLS and HTTP, `exchange`
//! calls, counts and logs.
//!
//! # Features
//!
//! `tls`, `http2` on top of it, and `handover` of listeners from process to process; all on by default. A server of probes needs
//! none of them.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod account;
#[cfg(feature = "tls")]
mod authority;
mod body;
mod builder;
mod connection;
mod connection_state;
mod connections;
mod deadlines;
mod error;
mod exchange;
mod fair_socket;
mod framing;
mod front;
mod gate;
mod head_timeout;
#[cfg(feature = "handover")]
mod inheritance;
mod limits;
mod listener;
mod metrics;
mod open_files;
mod peer;
#[cfg(feature = "tls")]
pub mod pem;
pub mod private_file;
mod proxy_protocol;
mod service;
mod shutdown;
mod stall;
#[cfg(test)]
#[cfg(feature = "http2")]
mod tests;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_files;
mod unread;
mod upgrade;

#[cfg(feature = "tls")]
pub use authority::{AUTHORITY_LIFE, Authority, Key, LEAF_LIFE, Purpose};
pub use body::{Body, BodyError};
pub use builder::FrontBuilder;
pub use deadlines::Deadlines;
pub use error::Error;
pub use exchange::{ACCESS_LOG, LogUser};
pub use front::{Drained, Front};
pub use limits::Limits;
pub use listener::Listener;
pub use metrics::AccessMetrics;
pub use open_files::raise_open_files;
pub use peer::Peer;
pub use service::{Request, Response, Service};
pub use shutdown::Shutdown;
#[cfg(feature = "tls")]
pub use tls::{CertificateSource, ClientAuth, ServerCertificate, Tls};
#[cfg(feature = "tls")]
pub use tls_files::TlsFiles;
pub use upgrade::{Upgrade, Upgraded};
