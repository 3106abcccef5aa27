use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection whose errors say what failed between which addresses: they hold a [`SocketError`].
pub(crate) struct Socket {
    stream: TcpStream,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
}

/// A TCP connection broke off. It is within the [`io::Error`] of a request that was not answered, and prints as the system's error does.
#[derive(Debug)]
pub struct SocketError {
    /// What was being done: `read` or `write`.
    pub operation: &'static str,
    /// The own address.
    pub local: Option<SocketAddr>,
    /// That of the server, or of the proxy.
    pub remote: Option<SocketAddr>,
    /// The error of the system.
    pub error: io::Error,
}

impl SocketError {
    /// The error of a socket that an error is about, however deep within it.
    pub fn within<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            // The source of an error of the system is that of what it holds, and not what it holds.
            let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = match held {
                Some(held) => Some(held),
                None => error.source(),
            };
        }
        None
    }
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for SocketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (local, remote) = (stream.local_addr().ok(), stream.peer_addr().ok());
        Self { stream, local, remote }
    }

    fn told<T>(&self, operation: &'static str, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let (local, remote) = (self.local, self.remote);
        done.map_err(|error| io::Error::new(error.kind(), SocketError { operation, local, remote, error }))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.told("read", done)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.told("write", done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        self.told("write", done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.told("write", done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.told("write", done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
