use std::future::poll_fn;
use std::net::SocketAddr;
#[cfg(feature = "http2")]
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http2")]
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::Extensions;
use hyper::server::conn::http1;
#[cfg(feature = "http2")]
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

#[cfg(feature = "tls")]
use crate::Tls;
use crate::connection_state::{Idle, Over};
use crate::connections::Connection;
use crate::exchange::{Client, Shared, exchange};
use crate::fair_socket::FairSocket;
use crate::framing::Framed;
use crate::front::Protocol;
#[cfg(feature = "http2")]
use crate::gate::Payer;
use crate::head_timeout::HeadTimeout;
use crate::metrics::Dropped;
use crate::proxy_protocol;
use crate::stall::StallTimeout;
#[cfg(feature = "http2")]
use crate::upgrade::Rewound;
use crate::{Deadlines, Peer};

/// HTTP/2: how often, and for how long, a client is asked whether it is there.
#[cfg(feature = "http2")]
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// After an answer that came before the end of its request, how long and how much the client may go on sending.
/// Closing on unread bytes makes a reset, and clients that get one may never see the answer.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 8 << 20);
/// How long saying goodbye may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// All headers of a request. What fits is decided by the path: the longest that can be parsed has 64 KiB.
const HEADER_BYTES: usize = 128 << 10;
/// How much a client may send ahead of what is read, for one request and for all of a connection. One whole body, and
/// a few of them. What we send is limited by the windows of the client.
#[cfg(feature = "http2")]
const WINDOWS: (u32, u32) = (1 << 20, 8 << 20);
/// How much of a response waits in memory for a client that does not read, per stream.
#[cfg(feature = "http2")]
const SEND_BUFFER: usize = 256 << 10;

/// Serves one connection until it ends: by the client, by a failure, or because of the shutdown. Its client pays for it.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    connection: Connection,
    protocol: Protocol,
    shared: Arc<Shared>,
    streams: TaskTracker,
) {
    let payer = Arc::clone(connection.payer());
    payer.run(speak(stream, peer, connection, protocol, shared, streams)).await;
}

async fn speak(
    mut stream: TcpStream,
    peer: SocketAddr,
    connection: Connection,
    protocol: Protocol,
    shared: Arc<Shared>,
    streams: TaskTracker,
) {
    if let Err(error) = tune(&stream) {
        tracing::debug!(%error, "client disconnected before it was served");
        return;
    }
    let Some(peer) = behind_proxy(&mut stream, peer, &connection, &shared).await else { return };
    let stream = FairSocket(StallTimeout::new(stream));
    let peer = Peer::new(peer, Arc::clone(connection.place()), shared.shutdown.clone());
    match protocol {
        Protocol::Http => {
            drop(streams); // only HTTP/2 has any
            http1(stream, client(shared, connection, peer)).await;
        }
        #[cfg(feature = "http2")]
        Protocol::HttpAndH2c => serve_plain(stream, client(shared, connection, peer), streams).await,
        #[cfg(feature = "tls")]
        Protocol::Https(tls) => serve_tls(stream, peer, connection, &tls, shared, streams).await,
    }
}

/// The address of the client, as a proxy tells it if there has to be one. `None` if the connection is not to be served.
async fn behind_proxy(
    stream: &mut TcpStream,
    peer: SocketAddr,
    connection: &Connection,
    shared: &Shared,
) -> Option<SocketAddr> {
    let Some(is_proxy) = &shared.proxies else { return Some(peer) };
    if !is_proxy(peer.ip()) {
        tracing::debug!("a connection that is not from a proxy");
        return None;
    }
    let told = tokio::select! {
        told = timeout(shared.deadlines.handshake, proxy_protocol::read(stream)) => told,
        () = shared.shutdown.begun() => return None,
        () = connection.evicted() => return None,
    };
    match told {
        Ok(Ok(client)) => Some(client.unwrap_or(peer)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection failed");
            None
        }
        Err(_) => {
            connection.dropped(Dropped::Handshake);
            None
        }
    }
}

/// What clients send first that speak HTTP/2 without having agreed on it.
#[cfg(feature = "http2")]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Speaks whichever version of HTTP the client begins with.
#[cfg(feature = "http2")]
async fn serve_plain(
    mut stream: FairSocket<StallTimeout<TcpStream>>,
    client: Arc<Client>,
    streams: TaskTracker,
) {
    let begun = tokio::select! {
        begun = timeout(client.shared.deadlines.first_request, beginning(&mut stream)) => begun,
        () = client.shared.shutdown.begun() => return,
        () = client.connection.evicted() => return,
    };
    let read = match begun {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return tracing::debug!(%error, "a connection failed"),
        Err(_) => return client.connection.dropped(Dropped::Idle),
    };
    let is_http2 = read.starts_with(PREFACE);
    let stream = Rewound::new(read, stream);
    match is_http2 {
        true => http2(stream, client, streams).await,
        false => {
            drop(streams);
            http1(stream, client).await;
        }
    }
}

/// Reads until it is clear which version of HTTP the client speaks.
#[cfg(feature = "http2")]
async fn beginning(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Bytes> {
    let mut read = BytesMut::with_capacity(1 << 10);
    while read.len() < PREFACE.len() && PREFACE.starts_with(&read) {
        if stream.read_buf(&mut read).await? == 0 {
            break;
        }
    }
    Ok(read.freeze())
}

#[cfg(feature = "tls")]
async fn serve_tls(
    stream: FairSocket<StallTimeout<TcpStream>>,
    peer: Peer,
    connection: Connection,
    tls: &Tls,
    shared: Arc<Shared>,
    streams: TaskTracker,
) {
    let handshake = tokio::select! {
        handshake = timeout(shared.deadlines.handshake, tls.acceptor().accept(stream)) => handshake,
        () = shared.shutdown.begun() => return,
        () = connection.evicted() => return,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            shared.connections.metrics.handshake_failed();
            return tracing::debug!(%error, "a TLS handshake failed");
        }
        Err(_) => {
            connection.dropped(Dropped::Handshake);
            return tracing::debug!("a TLS handshake took too long");
        }
    };
    connection.touch();
    let session = stream.get_ref().1;
    let certificates = session.peer_certificates().unwrap_or_default().to_vec();
    let peer = peer.with_certificates(certificates);
    match session.alpn_protocol() {
        #[cfg(feature = "http2")]
        Some(b"h2") => http2(stream, client(shared, connection, peer), streams).await,
        _ => {
            drop(streams);
            http1(stream, client(shared, connection, peer)).await;
        }
    }
}

/// The client of a connection, which the service hears of.
fn client(shared: Arc<Shared>, connection: Connection, peer: Peer) -> Arc<Client> {
    let mut extensions = Extensions::new();
    shared.service.connected(&peer, &mut extensions);
    peer.extend(extensions);
    Arc::new(Client {
        shared,
        peer,
        connection,
        framing: Arc::default(),
        unread: Arc::default(),
        upgrade: Mutex::default(),
    })
}

/// How long a connection may be idle, if that of somebody who was authenticated may be so for this long.
fn idle(deadlines: &Deadlines, authenticated: Duration) -> Idle {
    Idle { first: deadlines.first_request, stranger: deadlines.stranger_idle, authenticated }
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

async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, client: Arc<Client>) {
    let deadlines = &client.shared.deadlines;
    let service = service_fn({
        let client = Arc::clone(&client);
        move |request| Box::pin(exchange(Arc::clone(&client), request))
    });
    let stream = Framed::new(stream, Arc::clone(&client.framing));
    let stream = HeadTimeout::new(stream, Arc::clone(client.connection.place()), deadlines.first_request);
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(deadlines.http1_idle)
        .max_header_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut closing = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
            over = client.connection.over(idle(deadlines, deadlines.http1_idle)) => match over {
                Over::Evicted => return,
                Over::Idle => {
                    client.connection.dropped(Dropped::Idle);
                    break Ok(());
                }
            },
            () = client.shared.shutdown.begun(), if !closing => {
                closing = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let upgrade = client.upgrade.lock().take().filter(|_| ended.is_ok());
    if let Err(error) = ended {
        if error.is_parse() {
            client.shared.connections.metrics.malformed();
        }
        tracing::debug!(%error, "a connection failed");
    }
    let parts = connection.into_parts();
    let (stream, is_late) = parts.io.into_inner().into_inner();
    let mut stream = stream.into_inner();
    if let Some(upgrade) = upgrade {
        return upgraded(&client, upgrade.take_over(parts.read_buf, stream)).await;
    }
    if is_late {
        client.connection.dropped(Dropped::Idle);
    }
    let goodbye = timeout(CLOSE_TIMEOUT, stream.shutdown()).await;
    if matches!(goodbye, Ok(Ok(()))) && client.unread.is_left() {
        let _ = timeout(LINGER.0, discard(&mut stream)).await; // either way it is closed now
    }
}

/// Lets who takes over a connection have it until it ends or has to make room.
async fn upgraded(client: &Client, taken_over: Option<BoxFuture<'static, ()>>) {
    let _running = client.connection.begin();
    let Some(taken_over) = taken_over else { return };
    tokio::select! {
        () = taken_over => {}
        () = client.connection.evicted() => {}
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

#[cfg(feature = "http2")]
async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    client: Arc<Client>,
    streams: TaskTracker,
) {
    let deadlines = &client.shared.deadlines;
    let service = service_fn({
        let client = Arc::clone(&client);
        // On the heap from the start: the task of a stream is moved several times before it runs.
        move |request| Box::pin(exchange(Arc::clone(&client), request))
    });
    let payer = Arc::clone(client.connection.payer());
    let connection = http2::Builder::new(Streams { tasks: streams, payer })
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .max_concurrent_streams(client.shared.connections.limits().streams)
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
            () = farewell(&client), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
            over = client.connection.over(idle(deadlines, deadlines.http2_idle)), if !leaving => match over {
                Over::Evicted => return,
                Over::Idle => {
                    client.connection.dropped(Dropped::Idle);
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            },
            // Who was told to go and does not go, because it never said it was there, is left.
            () = tokio::time::sleep(CLOSE_TIMEOUT), if leaving => {
                if client.connection.is_idle() {
                    return;
                }
            }
        }
    };
    if let Err(error) = ended {
        if is_refused(&error) {
            client.shared.connections.metrics.malformed();
        }
        tracing::debug!(%error, "a connection failed");
    }
}

/// Whether a connection was ended because its client does not keep to HTTP/2, or asks too much by it: floods of headers, of resets.
#[cfg(feature = "http2")]
fn is_refused(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(h2::Error::is_library)
}

/// Waits until a client is to be told that it should connect anew for its next request. One that has not asked for anything yet when
/// the front begins to leave may be about to, and is told later.
#[cfg(feature = "http2")]
async fn farewell(client: &Client) {
    client.shared.leaving.cancelled().await;
    if client.connection.is_fresh() {
        client.shared.shutdown.begun().await;
    }
}

/// Runs the requests of an HTTP/2 connection as tasks that can be waited for, and that the client pays for.
#[cfg(feature = "http2")]
#[derive(Clone)]
struct Streams {
    tasks: TaskTracker,
    payer: Arc<Payer>,
}

#[cfg(feature = "http2")]
impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let payer = Arc::clone(&self.payer);
        self.tasks.spawn(async move { payer.run(stream).await });
    }
}
