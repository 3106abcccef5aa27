//! Opens connections: TCP, a proxy if there is one, TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::ClientConfig;

use crate::proxy::Proxy;
use crate::server::Server;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tls::Tls;
use crate::{Error, Obstacle};

/// How long it may take to connect, unless told otherwise.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an address has to itself before the next one of the same host is tried as well.
const ATTEMPT_DELAY: Duration = Duration::from_millis(300);

/// How long a connection may be silent before the system asks the other side whether it is there: as in client-go.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Opens a connection to a server.
pub(crate) async fn connect(
    server: &Server,
    tls: Option<(&Tls, Arc<ClientConfig>)>,
    proxy: Option<&Proxy>,
    within: Duration,
) -> Result<Stream, Error> {
    let failed = |reason| Error::Connect { server: server.address(), reason };
    let connecting = async {
        let stream: Stream = match proxy {
            None => Box::new(tcp(&server.host, server.port).await?),
            Some(proxy) => {
                let (host, port) = proxy.address();
                let unreachable = |error: Obstacle| format!("the proxy {proxy} is not reached: {error}");
                proxy.tunnel(tcp(host, port).await.map_err(unreachable)?, &server.address()).await?
            }
        };
        match tls {
            Some((tls, config)) => tls.connect(config, stream, &server.host).await,
            None => Ok(stream),
        }
    };
    match timeout(within, connecting).await {
        Ok(connected) => connected.map_err(failed),
        Err(_) => Err(failed(Obstacle::Timeout(within))),
    }
}

/// Connects to the address of a host that answers first. They are tried in order, each with a head start on the next. If none answers,
/// the error is that of the first.
async fn tcp(host: &str, port: u16) -> Result<Socket, Obstacle> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(Obstacle::Lookup)?.collect();
    let mut addresses = addresses.into_iter();
    let dial = |address: SocketAddr| async move {
        let connected = TcpStream::connect(address).await.and_then(prepared);
        connected.map_err(|error| Obstacle::Dial { address, error })
    };
    let Some(first) = addresses.next() else {
        let none = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
        return Err(Obstacle::Lookup(none));
    };
    let (mut failed, mut trying) = (None, FuturesUnordered::new());
    trying.push(dial(first));
    while !trying.is_empty() {
        tokio::select! {
            tried = trying.next() => match tried {
                Some(Ok(socket)) => return Ok(socket),
                Some(Err(obstacle)) => {
                    let is_first = matches!(obstacle, Obstacle::Dial { address, .. } if address == first);
                    if is_first || failed.is_none() {
                        failed = Some(obstacle);
                    }
                    trying.extend(addresses.next().map(dial));
                }
                None => {}
            },
            () = sleep(ATTEMPT_DELAY), if addresses.len() > 0 => {
                trying.extend(addresses.next().map(dial));
            }
        }
    }
    Err(failed.unwrap_or_else(|| Obstacle::Other(format!("{host} was not tried"))))
}

fn prepared(stream: TcpStream) -> io::Result<Socket> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(Socket::new(stream))
}
