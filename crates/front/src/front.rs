use std::fmt;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[cfg(feature = "tls")]
use crate::Tls;
use crate::connections::Connections;
use crate::exchange::Shared;
use crate::{AccessMetrics, Error, FrontBuilder, Listener, Service, Shutdown, connection};

/// After an accept that failed because something ran out: how long to wait for it to come back, if a connection was closed
/// for that, and if there was none to be closed.
const ACCEPT_DELAY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// How often that is logged at most.
const ACCEPT_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// How often files with certificates are read again. Kubernetes takes a minute to bring new ones.
#[cfg(feature = "tls")]
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
/// After the listeners were handed over, how long requests of connections that were accepted here may be on their way.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The listeners of a server: takes bytes from sockets, makes requests of them, has a [`Service`] answer, and sends the
/// answers back.
///
/// # What it promises
///
/// - HTTPS with HTTP/2 and HTTP/1.1, HTTP/1.1 without TLS, and HTTP/2 without TLS where that is [asked for](FrontBuilder::http_and_h2c).
/// - Bytes of a streamed answer leave as soon as there are no more to be had.
/// - A connection cannot harm others: garbage, a handshake or a request that never ends, a client that vanishes or stops
///   reading all end in that connection being closed, in bounded time and with bounded memory. A panic of the service
///   is an answer with code 500.
/// - There are no more connections than its [`Limits`](crate::Limits) allow, and strangers cannot keep the authenticated out: a
///   place taken by a stranger is given to whoever comes next.
/// - Certificates that are replaced are shown to whoever connects next; connections that are open stay as they are.
/// - The answer to a HEAD has no content, whatever the service says.
/// - After [`shutdown`](Self::shutdown), nothing of it runs any more. Dropping it closes everything at once.
///
/// # What it does not promise
///
/// - A limit to the time that the service takes.
pub struct Front {
    /// What it listens on, once more: to be handed over.
    pub(crate) listeners: Vec<Listener>,
    pub(crate) shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
    streams: TaskTracker,
}

/// Something to listen on, and what is spoken there.
pub(crate) struct Endpoint {
    pub(crate) listener: Listener,
    pub(crate) protocol: Protocol,
}

/// What is spoken on a connection.
#[derive(Clone)]
pub(crate) enum Protocol {
    Http,
    #[cfg(feature = "http2")]
    HttpAndH2c,
    #[cfg(feature = "tls")]
    Https(Tls),
}

/// The result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All requests were answered to the end.
    Clean,
    /// Some requests were still running when the time was over, and were cut off.
    CutOff,
}

impl Front {
    /// Begins to build a front for a service.
    pub fn builder(service: impl Service) -> FrontBuilder {
        FrontBuilder::new(Box::new(service))
    }

    pub(crate) fn start(builder: FrontBuilder) -> Result<Self, Error> {
        let FrontBuilder { service, endpoints, limits, deadlines, metrics, supervisor, task, proxies } =
            builder;
        let shared = Arc::new(Shared {
            service,
            shutdown: Shutdown::new(),
            leaving: CancellationToken::new(),
            retired: CancellationToken::new(),
            connections: Connections::new(limits, metrics),
            deadlines,
            supervisor,
            task,
            proxies,
        });
        let mut front = Self { listeners: vec![], shared, tasks: vec![], streams: TaskTracker::new() };
        let mut sockets = Vec::new();
        for Endpoint { listener, protocol } in endpoints {
            front.listeners.push(listener.try_clone()?);
            sockets.push((listener.into_socket()?, protocol));
        }
        for (socket, protocol) in sockets {
            #[cfg(feature = "tls")]
            if let Protocol::Https(tls) = &protocol
                && tls.has_files()
            {
                front.tasks.push(tokio::spawn(follow_files(tls.clone(), Arc::clone(&front.shared))));
            }
            let (shared, streams) = (Arc::clone(&front.shared), front.streams.clone());
            front.tasks.push(tokio::spawn(accept(socket, protocol, shared, streams)));
        }
        Ok(front)
    }

    /// The addresses that the front listens on, in the order in which they were given to the builder, with the ports that were chosen.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().map(Listener::address)
    }

    /// The metrics of the front.
    pub fn metrics(&self) -> &AccessMetrics {
        &self.shared.connections.metrics
    }

    /// Takes no more connections, in favour of another front that listens on the same socket. Connections that are open are served as ever until they
    /// end by themselves, or until a [shutdown](Self::shutdown).
    pub fn retire(&mut self) {
        self.listeners.clear();
        self.shared.retired.cancel();
    }

    /// Whether it has [retired](Self::retire) and its last connection has ended.
    pub fn is_finished(&self) -> bool {
        self.tasks.iter().all(JoinHandle::is_finished)
    }

    /// Stops in favour of another process that listens on the same sockets, so that no request is lost and no connection
    /// refused. To be called when the other process accepts; it inherited the listeners from this one (`pass_listeners`), or from whoever this
    /// one had them from.
    ///
    /// No connection is accepted any more. For two seconds, those that were accepted before are served as ever, their requests
    /// may be on their way; but clients are told to connect anew for the next one (`GOAWAY`, `Connection: close`). After
    /// that it [shuts down](Self::shutdown). All of it takes no longer than `grace`.
    ///
    /// # What it does not promise
    ///
    /// A client that keeps an HTTP/1.1 connection without using it may send a request at the moment in which it is closed. As
    /// with every server, such a client has to try again on another.
    pub async fn hand_over(mut self, grace: Duration) -> Drained {
        let deadline = Instant::now() + grace;
        self.listeners.clear();
        self.shared.leaving.cancel();
        let shared = Arc::clone(&self.shared);
        let served = async {
            for task in &mut self.tasks {
                report(&shared, task.await);
            }
        };
        let _ = timeout(SETTLE_TIMEOUT.min(grace), served).await; // either way, what has not ended is told to
        self.tasks.retain(|task| !task.is_finished());
        self.shutdown(deadline.saturating_duration_since(Instant::now())).await
    }

    /// Stops: takes no more connections, tells clients to send no more requests, and has streams end; then waits for the
    /// requests that run, at most for `grace`. What is left is cut off.
    pub async fn shutdown(mut self, grace: Duration) -> Drained {
        let deadline = Instant::now() + grace;
        self.listeners.clear();
        self.shared.leaving.cancel();
        self.shared.shutdown.begin();
        self.streams.close();
        let mut drained = Drained::Clean;
        for mut task in std::mem::take(&mut self.tasks) {
            match timeout_at(deadline, &mut task).await {
                Ok(ended) => report(&self.shared, ended),
                Err(_) => {
                    drained = Drained::CutOff;
                    task.abort();
                    let _ = task.await; // was told to end, and has
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
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Reads files with certificates again from time to time.
#[cfg(feature = "tls")]
async fn follow_files(tls: Tls, shared: Arc<Shared>) {
    let follow = || async {
        loop {
            tokio::select! {
                () = shared.leaving.cancelled() => return,
                () = shared.retired.cancelled() => return,
                () = sleep(RELOAD_INTERVAL) => {}
            }
            let tls = tls.clone();
            match tokio::task::spawn_blocking(move || tls.refresh()).await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => tracing::info!("certificates reloaded"),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "new certificates are invalid; the old ones stay in use");
                }
                Err(_) => shared.supervisor.panicked("certificates", None),
            }
        }
    };
    shared.supervisor.run("certificates", follow).await;
}

/// Takes connections until it is time to leave, then waits for them to end. It owns them: when it is aborted, so are
/// they.
async fn accept(socket: TcpListener, protocol: Protocol, shared: Arc<Shared>, streams: TaskTracker) {
    let mut connections = JoinSet::new();
    // A panic while one connection is taken costs none of the others.
    let taken = shared.supervisor.run_with(&shared.task, &mut connections, |connections| {
        Box::pin(take(&socket, &protocol, &shared, &streams, connections))
    });
    taken.await;
    drop(socket);
    while let Some(ended) = connections.join_next().await {
        report(&shared, ended);
    }
}

/// Takes connections until it is time to leave.
async fn take(
    socket: &TcpListener,
    protocol: &Protocol,
    shared: &Arc<Shared>,
    streams: &TaskTracker,
    connections: &mut JoinSet<()>,
) {
    let mut logged = None;
    loop {
        let accepted = tokio::select! {
            () = shared.leaving.cancelled() => return,
            () = shared.retired.cancelled() => return,
            Some(ended) = connections.join_next() => {
                report(shared, ended);
                continue;
            }
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let local = stream.local_addr().ok().map(|address| address.ip());
                let stream = Arc::new(stream);
                let has_sent = {
                    let stream = Arc::downgrade(&stream);
                    move || stream.upgrade().is_some_and(|stream| has_bytes(&stream))
                };
                let entry = tokio::select! {
                    () = shared.shutdown.begun() => return,
                    entry = shared.connections.enter(peer, local, has_sent) => entry,
                };
                // Without a place it is closed here.
                let Some(entry) = entry else { continue };
                let (protocol, shared, streams) = (protocol.clone(), Arc::clone(shared), streams.clone());
                connections.spawn(async move {
                    let connection = tokio::select! {
                        () = shared.shutdown.begun() => return,
                        connection = entry.admitted() => connection,
                    };
                    // Once it is admitted nobody else looks at it.
                    if let (Some(connection), Some(stream)) = (connection, Arc::into_inner(stream)) {
                        connection::serve(stream, peer, connection, protocol, shared, streams).await;
                    }
                });
            }
            // The client was gone before it was accepted.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => {}
            // Files or memory have run out: neither is a reason to stop.
            Err(error) => {
                if logged.is_none_or(|logged: Instant| logged.elapsed() >= ACCEPT_LOG_INTERVAL) {
                    logged = Some(Instant::now());
                    tracing::warn!(%error, "connections cannot be accepted");
                }
                let closed = shared.connections.make_room();
                sleep(if closed { ACCEPT_DELAY.0 } else { ACCEPT_DELAY.1 }).await;
            }
        }
    }
}

/// Whether the client of a connection has sent something that is still to be read.
fn has_bytes(stream: &TcpStream) -> bool {
    SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]).is_ok_and(|count| count > 0)
}

fn report(shared: &Shared, ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        shared.supervisor.panicked("connection", None);
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}
