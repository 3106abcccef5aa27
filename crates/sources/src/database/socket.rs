//! Connections to a database server: TCP, TLS over TCP, Unix sockets.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::Address;
use super::tls;

pub(crate) enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// What keeps a socket from being used.
#[derive(Debug)]
pub(crate) enum SocketError {
    Connection(String),
    Settings(String),
}

impl From<std::io::Error> for SocketError {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl Socket {
    /// Connects to a socket of this machine.
    #[cfg(unix)]
    pub(crate) async fn unix(path: &str) -> Result<Self, SocketError> {
        let stream = UnixStream::connect(path).await;
        stream.map(Self::Unix).map_err(|error| SocketError::Connection(format!("{path}: {error}")))
    }

    /// Connects to a port, without TLS as yet.
    pub(crate) async fn tcp(address: &Address) -> Result<Self, SocketError> {
        let stream = TcpStream::connect((&*address.host, address.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    /// Begins TLS on a connection whose both ends have agreed on it.
    pub(crate) async fn secure(self, address: &Address) -> Result<Self, SocketError> {
        let Self::Tcp(stream) = self else { return Ok(self) };
        let config = tls::config(address).map_err(SocketError::Settings)?;
        let name = ServerName::try_from(address.host.clone()).map_err(|_| {
            SocketError::Settings("the host is no name that a certificate could be for".into())
        })?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = stream.map_err(|error| SocketError::Connection(format!("TLS: {error}")))?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// Whether nobody on the way can read what is sent.
    #[cfg(feature = "mysql")]
    pub(crate) fn is_private(&self) -> bool {
        !matches!(self, Self::Tcp(_))
    }
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
