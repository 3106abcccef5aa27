use std::time::Duration;

/// How long clients may take for something before their connection is closed.
///
/// How long an answer may take is up to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From connecting to the end of the TLS handshake. Default: 10 s.
    pub handshake: Duration,
    /// From there to the end of the headers of the first request. For later requests of an HTTP/1 connection, from the first byte to the end of
    /// the headers. Default: 10 s; kube-apiserver waits 32 s.
    pub first_request: Duration,
    /// How long a stranger may keep a connection without a request. Default: 30 s. Load balancers ask for the health of servers
    /// every ten seconds or so.
    pub stranger_idle: Duration,
    /// HTTP/1: how long somebody who was authenticated may keep a connection without a request. Default: 100 s. That is longer than most clients keep a connection that they do not use, so that it is
    /// them who close it.
    pub http1_idle: Duration,
    /// HTTP/2: how long somebody who was authenticated may keep a connection without a request. Default: 90 s. Go clients close
    /// theirs after as long, and kube-apiserver has the same limit: clients that come back sooner find it open.
    pub http2_idle: Duration,
    /// How long a client may send nothing of a body that has begun. Default: 60 s.
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
