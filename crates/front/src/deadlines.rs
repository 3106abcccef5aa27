use std::time::Duration;

/// The timeouts of clients. When one has passed, the connection is closed.
///
/// The service is responsible for the timeouts of its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// The timeout from connecting to the end of the TLS handshake. Default: 10 s.
    pub handshake: Duration,
    /// The timeout from there to the end of the headers of the first request; for later requests of an HTTP/1 connection, from the first byte to the end of
    /// the headers. Default: 10 s; kube-apiserver waits 32 s.
    pub first_request: Duration,
    /// The idle timeout of connections that are not authenticated. Default: 30 s. Load balancers check the health of servers
    /// every ten seconds or so.
    pub stranger_idle: Duration,
    /// The idle timeout of authenticated HTTP/1 connections. Default: 100 s. That is longer than most clients keep an idle connection, so that
    /// the client closes it.
    pub http1_idle: Duration,
    /// The idle timeout of authenticated HTTP/2 connections. Default: 90 s. Go clients close theirs after the same time, and
    /// kube-apiserver has the same limit: clients that come back sooner find it open.
    pub http2_idle: Duration,
    /// The time after which a body is given up if the client sends nothing more of it. Default: 60 s.
    pub body_stall: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            stranger_idle: Duration::from_secs(30),
            http1_idle: Duration::from_secs(100),
            http2_idle: Duration::from_secs(90),
            body_stall: Duration::from_secs(60),
        }
    }
}
