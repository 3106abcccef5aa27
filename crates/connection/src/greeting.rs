use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Stream;

/// How much tells what a server speaks: the head of a record of TLS.
const LENGTH: usize = 5;

/// A stream that remembers the first bytes of the other side.
pub(crate) struct Greeted {
    stream: Stream,
    first: Vec<u8>,
}

impl Greeted {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, first: Vec::with_capacity(LENGTH) }
    }

    /// The first bytes, if they are not what a server begins a handshake of TLS with.
    pub(crate) fn is_no_tls(&self) -> Option<&[u8]> {
        const ALERT: u8 = 21;
        const HANDSHAKE: u8 = 22;
        match self.first.as_slice() {
            [ALERT | HANDSHAKE, 0..0x10, ..] => None,
            first => (first.len() == LENGTH).then_some(first),
        }
    }
}

impl AsyncRead for Greeted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let missing = LENGTH.saturating_sub(self.first.len());
        if missing > 0 {
            let came = buffer.filled().get(before..).unwrap_or_default();
            self.first.extend(came.iter().take(missing));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Greeted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
