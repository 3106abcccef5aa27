//! The front of the server: bytes on sockets become requests with an identity, and answers become bytes again. It knows
//! nothing about the resources of Kubernetes.
//!
//! - [`Service`] is what answers; it can also be called without any socket. [`Body`] is what requests and answers carry.
//! - [`Front`] listens, with TLS and without, for HTTP/1.1 and HTTP/2, and stops gracefully.
//! - [`Credentials`] are the certificate authority, the key of the server and the token of the administrator;
//!   [`Kubeconfig`] hands them to clients. [`Certificates`] are those, or the ones that others issued.
//! - [`Authenticator`]s find the [`Identity`] of who asks: [`Tokens`], [`ClientCertificates`].
//! - [`Shutdown`] tells streams to end.
//! - [`Limits`] say how many connections there may be, and of whom; [`raise_open_files`] makes room for them.
//!
//! The way of a request: `front` accepts within the limits of `connections`, `connection` speaks TLS and HTTP,
//! `exchange` authenticates, calls and logs.

mod authenticator;
mod authority;
mod body;
mod certificates;
mod client_certificate;
mod connection;
mod connection_counts;
mod connection_state;
mod connections;
mod credentials;
mod csv;
mod error;
mod exchange;
#[expect(clippy::module_inception, reason = "the module is named for what it defines, as all others")]
mod front;
mod identity;
mod kubeconfig;
mod limits;
mod open_files;
pub(crate) mod pem;
pub mod private_file;
mod service;
mod shutdown;
#[cfg(test)]
mod tests;
mod tls;
mod tokens;

pub use authenticator::{Authenticator, Presented};
pub use body::{Body, BodyError, MAX_REQUEST_BYTES};
pub use certificates::Certificates;
pub use client_certificate::{ClientCertificate, ClientCertificates};
pub use connection_counts::ConnectionCounts;
pub use credentials::{Credentials, IssuedCertificate};
pub use error::Error;
pub use front::{Drained, Front, Options};
pub use identity::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, UNAUTHENTICATED};
pub use kubeconfig::Kubeconfig;
pub use limits::Limits;
pub use open_files::raise_open_files;
pub use service::{Request, Response, Service};
pub use shutdown::Shutdown;
pub use tokens::Tokens;
