use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::time::timeout;
use watchkeeper_front::Body;

use super::EndpointState;
use super::connect::Transport;

/// How many connections of one server may be free. Those of a burst beyond it are closed as soon as they are free.
const MOST_IDLE: usize = 1_024;
/// How long a connection whose response was read may take until it is ready for the next request.
const READY_WITHIN: Duration = Duration::from_millis(100);
/// Requests at a time on one HTTP/2 connection, before another one is opened.
const STREAMS: u32 = 100;
/// HTTP/2: how often, and for how long, a server is asked whether it is there.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));
/// HTTP/2: how much a server may send ahead of what is read, for one request and for all of a connection.
const WINDOWS: (u32, u32) = (1 << 20, 4 << 20);

/// The connections to one server.
#[derive(Default)]
pub(super) struct Pool {
    /// The last to be given back is the first to be used, so that those that are too many grow old.
    free: Mutex<Vec<Free>>,
    shared: Mutex<Vec<Shared>>,
    /// Held while an HTTP/2 connection is opened, which others wait for.
    opening: tokio::sync::Mutex<()>,
}

struct Free {
    sender: http1::SendRequest<Body>,
    epoch: u64,
    since: Instant,
}

#[derive(Clone)]
struct Shared {
    sender: http2::SendRequest<Body>,
    epoch: u64,
    streams: Arc<AtomicU32>,
}

/// The connection that a response comes over. It is given back when the response [ended](Self::finish), and closed otherwise.
pub(crate) enum Lease {
    /// For this response alone.
    Alone { sender: http1::SendRequest<Body>, epoch: u64, endpoint: Arc<EndpointState> },
    /// Among others.
    Among { _stream: Stream },
}

/// One request of an HTTP/2 connection.
pub(crate) struct Stream(Arc<AtomicU32>);

/// Why there is no response.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// The request, if the server has not seen anything of it.
    pub(crate) request: Option<Request<Body>>,
    pub(crate) reason: Reason,
}

/// Why a request was not sent, or not answered.
#[derive(Debug)]
pub(crate) enum Reason {
    /// There are as many connections to the server as may be. Nothing is wrong with the server.
    Full(u32),
    /// The server cannot be reached, or broke off.
    Failed(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(most) => write!(f, "there are {most} connections to the server already"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// Whether a connection for a request counts against the limit of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connections {
    /// It does: those for requests of clients.
    Limited,
    /// It does not: those for the question how a server is.
    Unlimited,
}

impl EndpointState {
    /// Sends a request and waits for the head of the response. Dropping the future cancels the request.
    pub(crate) async fn send(
        self: &Arc<Self>,
        transport: &Transport,
        request: Request<Body>,
    ) -> Result<(Response<Incoming>, Lease), Unsent> {
        self.send_with(transport, request, Connections::Limited).await
    }

    /// The same, over a connection that may be one more than the limit of the backend.
    pub(crate) async fn send_with(
        self: &Arc<Self>,
        transport: &Transport,
        request: Request<Body>,
        limit: Connections,
    ) -> Result<(Response<Incoming>, Lease), Unsent> {
        self.requests.fetch_add(1, Relaxed);
        match transport.http2 {
            true => self.send_among(transport, request, limit).await,
            false => self.send_alone(transport, request, limit).await,
        }
    }

    async fn send_alone(
        self: &Arc<Self>,
        transport: &Transport,
        mut request: Request<Body>,
        limit: Connections,
    ) -> Result<(Response<Incoming>, Lease), Unsent> {
        loop {
            let (mut sender, is_fresh) = match self.pool.take(transport) {
                Some(sender) => (sender, false),
                None => match self.open_alone(transport, limit).await {
                    Ok(sender) => (sender, true),
                    Err(reason) => return Err(Unsent { request: Some(request), reason }),
                },
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let lease = Lease::Alone { sender, epoch: transport.epoch, endpoint: Arc::clone(self) };
                    return Ok((response, lease));
                }
                Err(mut failed) => {
                    let unsent = failed.take_message();
                    match unsent {
                        // It was closed while nobody looked: that is nobody's failure.
                        Some(unsent) if !is_fresh => request = unsent,
                        unsent => {
                            return Err(Unsent {
                                request: unsent,
                                reason: Reason::Failed(failed.into_error().to_string()),
                            });
                        }
                    }
                }
            }
        }
    }

    async fn open_alone(
        self: &Arc<Self>,
        transport: &Transport,
        limit: Connections,
    ) -> Result<http1::SendRequest<Body>, Reason> {
        let count = self.count(transport, limit)?;
        let stream = transport.connect(&self.address).await.map_err(Reason::Failed)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Reason::Failed(error.to_string()))?;
        let connection = connection.with_upgrades();
        // Ends when the sender is dropped, or the server closes.
        tokio::spawn(async move {
            let _count = count;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a backend failed");
            }
        });
        Ok(sender)
    }

    async fn send_among(
        self: &Arc<Self>,
        transport: &Transport,
        mut request: Request<Body>,
        limit: Connections,
    ) -> Result<(Response<Incoming>, Lease), Unsent> {
        loop {
            let shared = match self.pool.share(transport.epoch) {
                Some(shared) => shared,
                None => {
                    let _opening = self.pool.opening.lock().await;
                    match self.pool.share(transport.epoch) {
                        Some(shared) => shared,
                        None => match self.open_among(transport, limit).await {
                            Ok(shared) => shared,
                            Err(reason) => return Err(Unsent { request: Some(request), reason }),
                        },
                    }
                }
            };
            let (Shared { mut sender, .. }, stream) = shared;
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, Lease::Among { _stream: stream })),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if sender.is_closed() => request = unsent,
                    unsent => {
                        return Err(Unsent {
                            request: unsent,
                            reason: Reason::Failed(failed.into_error().to_string()),
                        });
                    }
                },
            }
        }
    }

    async fn open_among(
        self: &Arc<Self>,
        transport: &Transport,
        limit: Connections,
    ) -> Result<(Shared, Stream), Reason> {
        let count = self.count(transport, limit)?;
        let stream = transport.connect(&self.address).await.map_err(Reason::Failed)?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Reason::Failed(error.to_string()))?;
        tokio::spawn(async move {
            let _count = count;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a backend failed");
            }
        });
        let shared = Shared { sender, epoch: transport.epoch, streams: Arc::new(AtomicU32::new(1)) };
        self.pool.shared.lock().push(shared.clone());
        let stream = Stream(Arc::clone(&shared.streams));
        Ok((shared, stream))
    }

    /// Counts a connection, if there may be one more.
    fn count(self: &Arc<Self>, transport: &Transport, limit: Connections) -> Result<Connected, Reason> {
        let before = self.connections.fetch_add(1, Relaxed);
        let count = Connected(Arc::clone(self));
        match transport.max_connections {
            Some(most) if before >= most && limit == Connections::Limited => Err(Reason::Full(most)),
            _ => Ok(count),
        }
    }
}

/// A connection that is open until this is dropped.
struct Connected(Arc<EndpointState>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Pool {
    fn take(&self, transport: &Transport) -> Option<http1::SendRequest<Body>> {
        let mut free = self.free.lock();
        while let Some(last) = free.pop() {
            let usable = last.epoch == transport.epoch && last.since.elapsed() < transport.idle_timeout;
            if usable && last.sender.is_ready() {
                return Some(last.sender);
            }
        }
        None
    }

    fn put(&self, sender: http1::SendRequest<Body>, epoch: u64) {
        let mut free = self.free.lock();
        if free.len() < MOST_IDLE {
            free.push(Free { sender, epoch, since: Instant::now() });
        }
    }

    /// A connection that has room for one more request.
    fn share(&self, epoch: u64) -> Option<(Shared, Stream)> {
        let mut shared = self.shared.lock();
        shared.retain(|shared| shared.epoch == epoch && !shared.sender.is_closed());
        let found = shared.iter().find(|shared| shared.streams.load(Relaxed) < STREAMS)?;
        found.streams.fetch_add(1, Relaxed);
        Some((found.clone(), Stream(Arc::clone(&found.streams))))
    }

    pub(super) fn sweep(&self, idle: Duration) {
        self.free.lock().retain(|free| free.since.elapsed() < idle && !free.sender.is_closed());
        self.shared.lock().retain(|shared| !shared.sender.is_closed());
    }

    pub(super) fn idle(&self) -> usize {
        self.free.lock().len() + self.shared.lock().len()
    }
}

impl Lease {
    /// The response has ended: the connection is free for another.
    pub(crate) fn finish(self) {
        let Self::Alone { mut sender, epoch, endpoint } = self else { return };
        if sender.is_ready() {
            return endpoint.pool.put(sender, epoch);
        }
        if sender.is_closed() {
            return;
        }
        tokio::spawn(async move {
            if let Ok(Ok(())) = timeout(READY_WITHIN, sender.ready()).await {
                endpoint.pool.put(sender, epoch);
            }
        });
    }
}
