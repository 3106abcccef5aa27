use std::fmt;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::connections::Connections;
use super::exchange::Shared;
use super::{
    Authenticator, Certificates, ConnectionCounts, Error, Limits, Service, Shutdown, connection, tls,
};
use crate::Clock;

/// After an accept that failed because something ran out: how long to wait for it to come back, if a connection was closed
/// for that, and if there was none to be closed.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// How often that is logged at most.
const ACCEPT_LOG: Duration = Duration::from_secs(10);

/// What the tasks are called that take connections.
const LISTENER: &str = "listener";

/// Where a front listens, and whom it believes.
pub struct Options {
    /// The address for HTTPS. Port 0 lets the system choose one.
    pub https: SocketAddr,
    /// The address for HTTP/1.1 without TLS, if any. Only a loopback address is taken.
    pub http: Option<SocketAddr>,
    /// Names and addresses that clients may use beyond the usual ones: `localhost`, the loopback addresses, `kubernetes`
    /// with its longer forms, and the address of `https`.
    pub names: Vec<String>,
    /// The ways to find out who asks, in order.
    pub authenticators: Vec<Box<dyn Authenticator>>,
    /// How many connections there may be, and of whom.
    pub limits: Limits,
    /// By which the certificates of clients expire on connections that are open.
    pub clock: Clock,
}

/// The listeners of a server: takes bytes from sockets, makes requests with an identity of them, has a [`Service`] answer,
/// and sends the answers back.
///
/// # What it promises
///
/// - HTTPS with HTTP/2 and HTTP/1.1. Every request reaches the service with the [`Identity`](super::Identity) of whoever
///   sent it; one with a token that nobody knows is answered with 401 here and never does.
/// - Bytes of a streamed answer leave as soon as there are no more to be had.
/// - A connection cannot harm others: garbage, a handshake or a request that never ends, a client that vanishes or stops
///   reading all end in that connection being closed, in bounded time and with bounded memory. A panic of the service
///   is an answer with code 500.
/// - There are no more connections than its [`Limits`] allow, and strangers cannot keep the authenticated out: a place
///   taken by a stranger is given to whoever comes next.
/// - A request with a certificate that has expired is answered with 401, also on a connection that was opened before.
/// - The answer to a HEAD has no content, whatever the service says.
/// - After [`shutdown`](Self::shutdown), nothing of it runs any more. Dropping it closes everything at once.
///
/// # What it does not promise
///
/// - A limit to the time that the service takes.
pub struct Front {
    https: SocketAddr,
    http: Option<SocketAddr>,
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
    streams: TaskTracker,
}

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All requests were answered to the end.
    Clean,
    /// When the time was over, something was still running and was cut off.
    CutOff,
}

impl Front {
    /// Listens, with these [`Certificates`] or those of these [`Credentials`](super::Credentials). Needs a tokio
    /// runtime with time and I/O.
    pub async fn start(
        options: Options,
        certificates: impl Into<Certificates>,
        service: Arc<dyn Service>,
    ) -> Result<Self, Error> {
        if let Some(address) = options.http.filter(|address| !address.ip().is_loopback()) {
            return Err(Error::NotLoopback { address });
        }
        let mut names = options.names;
        if !options.https.ip().is_unspecified() {
            names.push(options.https.ip().to_string());
        }
        let tls = TlsAcceptor::from(Arc::new(tls::server_config(&certificates.into(), &names)?));
        let (https_listener, https) = listen(options.https).await?;
        let http = match options.http {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let supervisor = service.supervisor();
        let shared = Arc::new(Shared {
            service,
            authenticators: options.authenticators,
            shutdown: Shutdown::new(),
            connections: Connections::new(options.limits),
            clock: options.clock,
            supervisor,
        });
        let streams = TaskTracker::new();
        let accept =
            |listener, tls| tokio::spawn(accept(listener, tls, Arc::clone(&shared), streams.clone()));
        let mut listeners = vec![accept(https_listener, Some(tls))];
        let http = http.map(|(listener, address)| {
            listeners.push(accept(listener, None));
            address
        });
        Ok(Self { https, http, shared, listeners, streams })
    }

    /// The address for HTTPS, with the port that was chosen.
    pub fn https_address(&self) -> SocketAddr {
        self.https
    }

    /// The address for plain HTTP, if that was asked for.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// What is counted about its connections.
    pub fn connection_counts(&self) -> ConnectionCounts {
        self.shared.connections.counts.clone()
    }

    /// Stops: takes no more connections, tells clients to send no more requests, and has streams end; then waits for the
    /// requests that run, at most for `patience`. What is left is cut off.
    pub async fn shutdown(mut self, patience: Duration) -> Drained {
        let deadline = Instant::now() + patience;
        self.shared.shutdown.begin();
        self.streams.close();
        let mut drained = Drained::Clean;
        for mut listener in std::mem::take(&mut self.listeners) {
            match timeout_at(deadline, &mut listener).await {
                Ok(ended) => report(&self.shared, ended),
                Err(_) => {
                    drained = Drained::CutOff;
                    listener.abort();
                    let _ = listener.await; // was told to end, and has
                }
            }
        }
        // They end with their connections.
        self.streams.wait().await;
        drained
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        for listener in &self.listeners {
            listener.abort();
        }
    }
}

/// How many connections the kernel keeps that are not accepted yet, if it allows so many. A client whose connection does not fit
/// tries again after a second, and then after longer.
const BACKLOG: u32 = 4096;

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |error: std::io::Error| Error::Listen { address, reason: error.to_string() };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    // So that a new process can listen while connections of the former one are closing.
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Takes connections until the shutdown begins, then waits for them to end. It owns them: when it is aborted, so are
/// they.
async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>, streams: TaskTracker) {
    let mut connections = JoinSet::new();
    // A panic while one connection is taken costs none of the others.
    let taken = shared.supervisor.run_with(LISTENER, &mut connections, |connections| {
        Box::pin(take(&listener, tls.as_ref(), &shared, &streams, connections))
    });
    taken.await;
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report(&shared, ended);
    }
}

/// Takes connections until the shutdown begins.
async fn take(
    listener: &TcpListener,
    tls: Option<&TlsAcceptor>,
    shared: &Arc<Shared>,
    streams: &TaskTracker,
    connections: &mut JoinSet<()>,
) {
    let mut logged = None;
    loop {
        let accepted = tokio::select! {
            () = shared.shutdown.begun() => return,
            Some(ended) = connections.join_next() => {
                report(shared, ended);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, peer)) => {
                let local = socket.local_addr().ok().map(|address| address.ip());
                let entry = tokio::select! {
                    () = shared.shutdown.begun() => return,
                    entry = shared.connections.enter(peer, local) => entry,
                };
                // Without a place it is closed here.
                let Some(entry) = entry else { continue };
                let (tls, shared, streams) = (tls.cloned(), Arc::clone(shared), streams.clone());
                connections.spawn(async move {
                    let connection = tokio::select! {
                        () = shared.shutdown.begun() => return,
                        connection = entry.admitted() => connection,
                    };
                    if let Some(connection) = connection {
                        connection::serve(socket, connection, tls, shared, streams).await;
                    }
                });
            }
            // The client was gone before it was accepted.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => {}
            // Files or memory have run out: neither is a reason to stop.
            Err(error) => {
                if logged.is_none_or(|logged: Instant| logged.elapsed() >= ACCEPT_LOG) {
                    logged = Some(Instant::now());
                    tracing::warn!(%error, "connections cannot be accepted");
                }
                let closed = shared.connections.make_room();
                sleep(if closed { ACCEPT_PAUSE.0 } else { ACCEPT_PAUSE.1 }).await;
            }
        }
    }
}

fn report(shared: &Shared, ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        shared.supervisor.panicked("connection", None);
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("https", &self.https).field("http", &self.http).finish_non_exhaustive()
    }
}
