//! Who sends a request: between the [front](crate::front), which makes requests of bytes, and the server, which answers them.
//!
//! - A [`Gate`] finds out the [`Identity`] of whoever asks and has a [`Service`] answer; [`listen`] puts it on sockets.
//! - [`Authenticator`]s find the identity: [`Tokens`], [`ClientCertificates`].
//! - [`Credentials`] are the certificate authority, the key of the server and the token of the administrator;
//!   [`Kubeconfig`] hands them to clients.

mod authenticator;
mod client_certificate;
mod credentials;
mod csv;
mod error;
mod gate;
mod identity;
mod kubeconfig;
mod listen;
mod server_certificate;
mod service;
#[cfg(test)]
mod tests;
mod tokens;
mod web_socket_token;

pub use authenticator::{Authentication, Authenticator, Presented, Unavailable};
pub use client_certificate::{ClientCertificate, ClientCertificates};
pub use credentials::{Credentials, IssuedCertificate};
pub use error::Error;
pub use gate::Gate;
pub use identity::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, UNAUTHENTICATED};
pub use kubeconfig::Kubeconfig;
pub use listen::{Options, check_plain_http, listen};
pub use service::Service;
pub use tokens::Tokens;
