use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::ClientCertificate;
use super::connection_counts::Dropped;
use super::connection_state::{Idle, Over};
use super::connections::Connection;
use super::exchange::{Peer, Shared, exchange};
use super::fair_socket::FairSocket;
use super::stall::StallTimeout;

/// From connecting to the end of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// From there to the end of the headers of the first request. kube-apiserver waits 32 s.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// How long a stranger may keep a connection without a request. Load balancers ask for the health of servers every ten
/// seconds or so.
const STRANGER_IDLE: Duration = Duration::from_secs(30);
/// HTTP/1: how long somebody who was authenticated may keep a connection without a request, and how long the headers of
/// a request may take. Longer than most clients keep a connection that they do not use, so that it is them who close it.
const HTTP1_IDLE: Duration = Duration::from_secs(100);
/// HTTP/2: how long somebody who was authenticated may keep a connection without a request. Go clients close theirs after
/// as long, and kube-apiserver has the same limit: clients that come back sooner find it open.
const HTTP2_IDLE: Duration = Duration::from_secs(90);
/// HTTP/2: how often, and for how long, a client is asked whether it is there.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// After an answer that came before the end of its request, how long and how much the client may go on sending.
/// Closing on unread bytes makes a reset, and clients that get one may never see the answer.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 8 << 20);
/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// All headers of a request. What fits is decided by the path: the longest that can be parsed has 64 KiB.
const HEADER_BYTES: usize = 128 << 10;
/// How much a client may send ahead of what is read, for one request and for all of a connection. One whole body, and
/// a few of them. What we send is limited by the windows of the client.
const WINDOWS: (u32, u32) = (1 << 20, 8 << 20);
/// How many requests of an HTTP/2 connection take their first step at a time.
const STARTING: usize = 4;
/// How much of a response waits in memory for a client that does not read, per stream.
const SEND_BUFFER: usize = 256 << 10;

/// Serves one connection until it ends: by the client, by a failure, or because of the shutdown.
pub(super) async fn serve(
    socket: TcpStream,
    connection: Connection,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    streams: TaskTracker,
) {
    if let Err(error) = tune(&socket) {
        tracing::debug!(%error, "the client is gone before it was served");
        return;
    }
    let socket = StallTimeout::new(socket);
    let peer = |certificate, connection| {
        let left_unread = Arc::new(AtomicBool::new(false));
        Arc::new(Peer { shared: Arc::clone(&shared), certificate, connection, left_unread })
    };
    let socket = FairSocket(socket);
    let Some(tls) = tls else { return http1(socket, peer(None, connection)).await };
    let handshake = tokio::select! {
        handshake = timeout(HANDSHAKE, tls.accept(socket)) => handshake,
        () = shared.shutdown.begun() => return,
        () = connection.evicted() => return,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => {
            connection.dropped(Dropped::Handshake);
            return tracing::debug!("a TLS handshake took too long");
        }
    };
    connection.touch();
    let session = stream.get_ref().1;
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let certificate = certificate.map(|certificate| ClientCertificate::read(certificate));
    if let Some(identity) = certificate.as_ref().and_then(ClientCertificate::identity) {
        connection.identified(identity);
    }
    let peer = peer(certificate, connection);
    match session.alpn_protocol() {
        Some(b"h2") => http2(stream, peer, streams).await,
        _ => http1(stream, peer).await,
    }
}

/// How long a connection may be idle, if that of somebody who was authenticated may be so for this long.
fn idle(authenticated: Duration) -> Idle {
    Idle { first: FIRST_REQUEST, stranger: STRANGER_IDLE, authenticated }
}

/// Small writes leave at once; a client whose machine vanished is noticed within two minutes.
fn tune(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));
    socket.set_tcp_keepalive(&keepalive)?;
    // Also for one that is there but has stopped reading: what it holds up is memory.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(Duration::from_secs(120)))?;
    Ok(())
}

async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, peer: Arc<Peer>) {
    let service = service_fn({
        let peer = Arc::clone(&peer);
        move |request| Box::pin(exchange(Arc::clone(&peer), request))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP1_IDLE)
        .max_header_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut closing = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
            over = peer.connection.over(idle(HTTP1_IDLE)) => match over {
                Over::Evicted => return,
                Over::Idle => {
                    peer.connection.dropped(Dropped::Idle);
                    break Ok(());
                }
            },
            () = peer.shared.shutdown.begun(), if !closing => {
                closing = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
    let mut stream = connection.into_parts().io.into_inner();
    let goodbye = timeout(GOODBYE, stream.shutdown()).await;
    if matches!(goodbye, Ok(Ok(()))) && peer.left_unread.load(Ordering::Relaxed) {
        let _ = timeout(LINGER.0, discard(&mut stream)).await; // either way it is closed now
    }
}

async fn discard(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    let mut left = LINGER.1;
    while left > 0 {
        match stream.read(&mut buffer).await? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Arc<Peer>,
    streams: TaskTracker,
) {
    let service = service_fn({
        let peer = Arc::clone(&peer);
        move |request| exchange(Arc::clone(&peer), request)
    });
    let connection =
        http2::Builder::new(Streams { tasks: streams, starting: Arc::new(Semaphore::new(STARTING)) })
            .timer(TokioTimer::new())
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .max_concurrent_streams(peer.shared.connections.limits().streams)
            .max_header_list_size(HEADER_BYTES as u32)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1)
            .max_send_buf_size(SEND_BUFFER)
            .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let (mut closing, mut leaving) = (false, false);
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = peer.shared.shutdown.begun(), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            over = peer.connection.over(idle(HTTP2_IDLE)), if !leaving => match over {
                Over::Evicted => return,
                Over::Idle => {
                    peer.connection.dropped(Dropped::Idle);
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            },
            // Who was told to go and does not go, because it never said it was there, is left.
            () = tokio::time::sleep(GOODBYE), if leaving => {
                if peer.connection.is_idle() {
                    return;
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Runs the requests of an HTTP/2 connection as tasks that can be waited for.
///
/// The first step of a request, up to where it waits for something, is who sends it and whether they may. A client can
/// send a hundred at once on each of its connections, and their first steps take milliseconds: a few of them at a time, so that
/// others come in between.
#[derive(Clone)]
struct Streams {
    tasks: TaskTracker,
    starting: Arc<Semaphore>,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let starting = Arc::clone(&self.starting);
        self.tasks.spawn(async move {
            let mut stream = pin!(stream);
            let turn = starting.acquire().await;
            let first = poll_fn(|cx| Poll::Ready(stream.as_mut().poll(cx))).await;
            drop(turn);
            if first.is_pending() {
                stream.await;
            }
        });
    }
}
