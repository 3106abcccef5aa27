//! Ways to a server: TCP, TLS over it, and the sockets of the same machine.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::{Address, TlsMode};
use super::failure::Failure;
use super::tls;

pub(super) enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Connects, and agrees on TLS.
pub(super) async fn connect(address: &Address) -> Result<Socket, Failure> {
    #[cfg(unix)]
    if address.host.starts_with('/') {
        let path = format!("{}/.s.PGSQL.{}", address.host, address.port);
        let stream = UnixStream::connect(&path).await;
        return stream.map(Socket::Unix).map_err(|error| Failure::Connection(format!("{path}: {error}")));
    }
    let stream = TcpStream::connect((&*address.host, address.port)).await?;
    stream.set_nodelay(true)?;
    if address.tls == TlsMode::Disable {
        return Ok(Socket::Tcp(stream));
    }
    secure(stream, address).await
}

async fn secure(mut stream: TcpStream, address: &Address) -> Result<Socket, Failure> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).await?;
    // One byte and no more: what comes after it is encrypted, or was slipped in by somebody.
    match stream.read_u8().await? {
        b'S' => {}
        b'N' if address.tls == TlsMode::Prefer => return Ok(Socket::Tcp(stream)),
        b'N' => {
            let reason =
                "the server has no TLS, and sslmode asks for it: set ssl = on there, or sslmode=prefer here";
            return Err(Failure::Connection(reason.into()));
        }
        _ => return Err(Failure::Connection("this is no PostgreSQL server".into())),
    }
    let config = tls::config(address).map_err(Failure::Settings)?;
    let name = ServerName::try_from(address.host.clone())
        .map_err(|_| Failure::Settings("the host is no name that a certificate could be for".into()))?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    Ok(Socket::Tls(Box::new(stream.map_err(|error| Failure::Connection(format!("TLS: {error}")))?)))
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
