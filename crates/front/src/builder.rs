use std::net::IpAddr;

use watchkeeper_supervision::Supervisor;

#[cfg(feature = "tls")]
use crate::Tls;
use crate::front::{Endpoint, Protocol};
use crate::{AccessMetrics, Deadlines, Error, Front, Limits, Listener, Service};

/// Builds a [`Front`]; from [`Front::builder`].
#[must_use = "it does nothing until it is started"]
pub struct FrontBuilder {
    pub(crate) service: Box<dyn Service>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) limits: Limits,
    pub(crate) deadlines: Deadlines,
    pub(crate) metrics: AccessMetrics,
    pub(crate) supervisor: Supervisor,
    pub(crate) task: String,
    pub(crate) proxies: Option<Proxies>,
}

/// Whether whoever is at an address is a proxy.
pub(crate) type Proxies = Box<dyn Fn(IpAddr) -> bool + Send + Sync>;

impl FrontBuilder {
    pub(crate) fn new(service: Box<dyn Service>) -> Self {
        Self {
            service,
            endpoints: Vec::new(),
            limits: Limits::default(),
            deadlines: Deadlines::default(),
            metrics: AccessMetrics::default(),
            supervisor: Supervisor::default(),
            task: "listener".into(),
            proxies: None,
        }
    }

    /// Serves HTTPS on a listener: HTTP/2 and HTTP/1.1.
    #[cfg(feature = "tls")]
    pub fn https(mut self, listener: Listener, tls: Tls) -> Self {
        self.endpoints
            .push(Endpoint { listener: listener.or_named("https"), protocol: Protocol::Https(tls) });
        self
    }

    /// Serves HTTP/1.1 without TLS on a listener. What is sent can be read on the way.
    pub fn http(mut self, listener: Listener) -> Self {
        self.endpoints.push(Endpoint { listener: listener.or_named("http"), protocol: Protocol::Http });
        self
    }

    /// Serves HTTP/1.1 and, to clients that begin with it, HTTP/2 without TLS on a listener (h2c with prior knowledge, as gRPC
    /// speaks it). What is sent can be read on the way.
    #[cfg(feature = "http2")]
    pub fn http_and_h2c(mut self, listener: Listener) -> Self {
        self.endpoints.push(Endpoint { listener: listener.or_named("http"), protocol: Protocol::HttpAndH2c });
        self
    }

    /// Sets the limits of connections. Default: as many as this process can have.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the timeouts of clients.
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Sets the metrics. Default: metrics that are not served.
    pub fn metrics(mut self, metrics: &AccessMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Sets the supervisor of the tasks of the front. A service that reports its health passes its own.
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Sets the name of the task that accepts connections, for the supervisor. Default: `listener`.
    pub fn task(mut self, name: impl Into<String>) -> Self {
        self.task = name.into();
        self
    }

    /// Expects connections to begin with a header of the PROXY protocol, version 1 or 2, which says where the client is: that is then the
    /// [address](crate::Peer::address) of the peer. Connections without one are closed, and so are those that this is not true for: whoever can
    /// connect could claim to be anybody. Limits by address count the proxy.
    pub fn proxy_protocol(mut self, is_proxy: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.proxies = Some(Box::new(is_proxy));
        self
    }

    /// Listens. To be called in a tokio runtime with time and I/O.
    pub fn start(self) -> Result<Front, Error> {
        Front::start(self)
    }
}
