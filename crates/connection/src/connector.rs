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

use crate::Error;
use crate::proxy::Proxy;
use crate::server::Server;
use crate::stream::Stream;
use crate::tls::Tls;

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
    let failed = |reason: String| Error::Connect { server: server.address(), reason };
    let connecting = async {
        let stream: Stream = match proxy {
            None => Box::new(tcp(&server.host, server.port).await.map_err(|error| error.to_string())?),
            Some(proxy) => {
                let (host, port) = proxy.address();
                let unreachable = |error: io::Error| format!("the proxy {proxy} is not reached: {error}");
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
        Err(_) => Err(failed(format!("no connection within {} s", within.as_secs()))),
    }
}

/// Connects to the address of a host that answers first. They are tried in order, each with a head start on the next.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    let mut addresses = addresses.into_iter();
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    let mut trying = FuturesUnordered::new();
    trying.extend(addresses.next().map(TcpStream::connect));
    while !trying.is_empty() {
        tokio::select! {
            tried = trying.next() => match tried {
                Some(Ok(stream)) => return prepared(stream),
                Some(Err(error)) => {
                    last = error;
                    trying.extend(addresses.next().map(TcpStream::connect));
                }
                None => {}
            },
            () = sleep(ATTEMPT_DELAY), if addresses.len() > 0 => {
                trying.extend(addresses.next().map(TcpStream::connect));
            }
        }
    }
    Err(last)
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}
