use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::Key;
use watchkeeper_front::ServerCertificate;

use crate::kinds::{ForwardedHeaders, ListenerProtocol};
use crate::net::{HostPattern, Networks};

/// A compiled listener.
#[derive(Debug)]
pub struct Listener {
    /// Which listener.
    pub key: Key,
    /// The Gateway of Gateway API that it is of. Such a listener serves the routes that name it, and no others.
    pub gateway: Option<Key>,
    /// When it was created.
    pub created: Option<Arc<str>>,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it speaks.
    pub protocol: ListenerProtocol,
    /// The hosts that it serves.
    pub hostname: HostPattern,
    /// The certificates that it shows.
    pub certificates: Box<[HostCertificate]>,
    /// The namespaces whose routes it serves; none for all.
    pub namespaces: Box<[String]>,
    /// Who is believed about where requests come from.
    pub trusted: Networks,
    /// What backends are told about that.
    pub forwarded: ForwardedHeaders,
    /// Bytes that a request may carry.
    pub max_body: Option<u64>,
    /// What a socket needs to know.
    pub socket: SocketSettings,
}

/// A certificate, and which hosts it is shown to; none for all.
pub struct HostCertificate {
    /// The hosts.
    pub hosts: Box<[HostPattern]>,
    /// The certificate with its key.
    pub certificate: ServerCertificate,
}

/// What cannot be changed while connections are open: a change makes another front on the same socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketSettings {
    /// What is spoken.
    pub protocol: ListenerProtocol,
    /// Connections at a time.
    pub connections: Option<usize>,
    /// Requests at a time on one HTTP/2 connection.
    pub streams: Option<u32>,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long the headers of a request may take.
    pub headers: Duration,
    /// Whether connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
}

impl Listener {
    /// The certificate for a client that asks for this host.
    pub fn certificate(&self, host: Option<&str>) -> Option<&ServerCertificate> {
        let fits = |certificate: &&HostCertificate| match host {
            Some(host) => certificate.hosts.iter().any(|pattern| pattern.contains(host)),
            None => false,
        };
        let open = |certificate: &&HostCertificate| certificate.hosts.is_empty();
        let found = self.certificates.iter().find(fits).or_else(|| self.certificates.iter().find(open));
        found.or(self.certificates.first()).map(|found| &found.certificate)
    }

    /// Whether it serves the routes of a namespace.
    pub fn allows(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|allowed| allowed == namespace)
    }
}

impl fmt::Debug for HostCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCertificate").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}
