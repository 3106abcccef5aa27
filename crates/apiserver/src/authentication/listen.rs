use std::net::SocketAddr;

use watchkeeper_front::{Front, Limits, Listener, Tls};

use super::{Authenticator, Error, Gate, Service};
use crate::Clock;

/// The addresses that a server listens on, and its authenticators.
pub struct Options {
    /// For HTTPS, and how TLS is spoken there: as [`Credentials::tls`](super::Credentials::tls) says, or [`Tls::files`].
    pub https: (Listener, Tls),
    /// For HTTP/1.1 without TLS, if any. Only a loopback address is taken.
    pub http: Option<Listener>,
    /// The ways to find out who asks, in order.
    pub authenticators: Vec<Box<dyn Authenticator>>,
    /// The limits of connections.
    pub limits: Limits,
    /// By which the certificates of clients expire on connections that are open.
    pub clock: Clock,
    /// Whether requests without credentials are served, as those of `system:anonymous`; otherwise they are answered with 401.
    pub anonymous: bool,
}

/// Refuses an address for HTTP without TLS where others could read tokens: any but a loopback address.
pub fn check_plain_http(address: SocketAddr) -> Result<(), Error> {
    if address.ip().is_loopback() { Ok(()) } else { Err(Error::NotLoopback { address }) }
}

/// Puts a service on sockets, behind a [`Gate`]. Needs a tokio runtime with time and I/O.
pub fn listen(options: Options, service: impl Service) -> Result<Front, Error> {
    let Options { https: (https, tls), http, authenticators, limits, clock, anonymous } = options;
    http.as_ref().map_or(Ok(()), |http| check_plain_http(http.address()))?;
    let supervisor = service.supervisor();
    let gate = Gate::new(service, authenticators, clock, anonymous);
    let mut front = Front::builder(gate).https(https, tls).limits(limits).supervisor(supervisor);
    if let Some(http) = http {
        front = front.http(http);
    }
    Ok(front.start()?)
}
