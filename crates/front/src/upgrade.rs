use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Takes over an HTTP/1.1 connection after an answer with code 101 (Switching Protocols): WebSocket, for example.
///
/// A [`Service`](crate::Service) that answers an upgrade puts one among the extensions of its response. After the head of the
/// response was sent, the function gets the bytes of the connection, and no more requests are read from it. The connection is
/// closed when the future of the function ends; the future is dropped when the front is [shut down](crate::Front::shutdown) and its
/// time is over, or when the connection has to make room for another. HTTP/2 knows no upgrades: there the extension is ignored.
#[derive(Clone)]
pub struct Upgrade(Arc<Mutex<Option<TakeOver>>>);

type TakeOver = Box<dyn FnOnce(Upgraded) -> BoxFuture<'static, ()> + Send>;

/// The bytes of a connection that was [upgraded](Upgrade).
pub struct Upgraded(Box<dyn Stream>);

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Upgrade {
    /// Hands the connection to this function.
    pub fn new<F, T>(take_over: F) -> Self
    where
        F: FnOnce(Upgraded) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let take_over: TakeOver = Box::new(move |stream| Box::pin(take_over(stream)));
        Self(Arc::new(Mutex::new(Some(take_over))))
    }

    /// What is to be done with the connection; `None` if it was asked for before.
    pub(crate) fn take_over<S: Stream + 'static>(
        &self,
        read: Bytes,
        stream: S,
    ) -> Option<BoxFuture<'static, ()>> {
        let take_over = self.0.lock().take()?;
        Some(take_over(Upgraded(Box::new(Rewound::new(read, stream)))))
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgraded")
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

/// A stream of which some bytes were read already.
pub(crate) struct Rewound<S> {
    read: Bytes,
    stream: S,
}

impl<S> Rewound<S> {
    pub(crate) fn new(read: Bytes, stream: S) -> Self {
        Self { read, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let count = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
