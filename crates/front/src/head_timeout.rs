use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::connections::Place;

/// An HTTP/1 connection that fails when the head of a request takes too long, from its first byte on. How long the client may be silent before
/// that is not its business.
///
/// A head whose first bytes come while the request before it is served counts from the bytes after that.
pub(crate) struct HeadTimeout<S> {
    stream: S,
    place: Arc<Place>,
    limit: Duration,
    /// Since when a head is read, and how many requests had begun before it.
    head: Option<(Instant, u64)>,
    /// Runs while a head is waited for: most come in one piece, and need none.
    timer: Option<Pin<Box<Sleep>>>,
    is_late: bool,
}

impl<S> HeadTimeout<S> {
    pub(crate) fn new(stream: S, place: Arc<Place>, limit: Duration) -> Self {
        Self { stream, place, limit, head: None, timer: None, is_late: false }
    }

    /// The stream, and whether a head took too long.
    pub(crate) fn into_inner(self) -> (S, bool) {
        (self.stream, self.is_late)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let begun = self.place.begun();
        if self.head.is_some_and(|(_, at)| at != begun) {
            (self.head, self.timer) = (None, None);
        }
        if read.is_ready() && buffer.filled().len() > before && self.head.is_none() && self.place.is_idle() {
            self.head = Some((Instant::now(), begun));
        }
        let Some((since, _)) = self.head else { return read };
        let end = since + self.limit;
        let is_late = match read.is_ready() {
            true => Instant::now() >= end,
            false => {
                self.timer.get_or_insert_with(|| Box::pin(sleep_until(end))).as_mut().poll(cx).is_ready()
            }
        };
        if is_late {
            self.is_late = true;
            let error = io::Error::new(io::ErrorKind::TimedOut, "the head of a request took too long");
            return Poll::Ready(Err(error));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
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
