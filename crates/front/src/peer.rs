use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::Extensions;
#[cfg(feature = "tls")]
use rustls_pki_types::CertificateDer;

use crate::Shutdown;
use crate::connections::Place;

/// The other end of a connection. Every request that came in over a socket has it among its extensions.
///
/// A `Peer` does not keep its connection open.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    #[cfg(feature = "tls")]
    certificates: Vec<CertificateDer<'static>>,
    extensions: OnceLock<Extensions>,
    place: Arc<Place>,
    shutdown: Shutdown,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, place: Arc<Place>, shutdown: Shutdown) -> Self {
        Self(Arc::new(Inner {
            address,
            #[cfg(feature = "tls")]
            certificates: Vec::new(),
            extensions: OnceLock::new(),
            place,
            shutdown,
        }))
    }

    /// The same with the certificates of the client. Nobody else has it yet.
    #[cfg(feature = "tls")]
    pub(crate) fn with_certificates(mut self, certificates: Vec<CertificateDer<'static>>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.certificates = certificates;
        }
        self
    }

    /// Adds what the service has to say about it.
    pub(crate) fn extend(&self, extensions: Extensions) {
        let _ = self.0.extensions.set(extensions); // the service is asked once
    }

    /// The peer that sent a request; `None` if it did not come in over a socket.
    pub fn of<B>(request: &http::Request<B>) -> Option<&Self> {
        request.extensions().get()
    }

    /// The address of the client. Behind a proxy, it is that of the proxy, unless the proxy tells the client's with the PROXY protocol.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The certificate of the client, and those between it and its authority; none if it showed none, or was not asked for any.
    /// It was good when the connection was opened, and the client has its key. *It may have expired since*.
    #[cfg(feature = "tls")]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0.certificates
    }

    /// The value that [`Service::connected`](crate::Service::connected) stored.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.extensions.get()?.get()
    }

    /// Says that this connection is a user's. From then on it counts as that of somebody authenticated, and is never closed
    /// to make room for another; unless the user has [too many](crate::Limits::connections_per_user) of those already.
    ///
    /// A connection belongs to the user who is told first. Costs next to nothing when it is told again.
    pub fn authenticated(&self, user: &str) {
        self.0.place.authenticated(user);
    }

    pub(crate) fn shutdown(&self) -> &Shutdown {
        &self.0.shutdown
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("address", &self.0.address).finish_non_exhaustive()
    }
}
