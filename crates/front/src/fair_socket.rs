use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::poll_proceed;

/// A task has 128 of the runtime's units before others get their turn: 64 KiB of what it reads or writes, which is encrypted
/// and parsed in about a tenth of a millisecond.
const BYTES_PER_UNIT: usize = 512;

/// A socket from which as much is read, and to which as much is written at a time as others can wait for.
///
/// The runtime counts how often a task reads and writes, not how much: a client that sends or takes megabytes as fast as
/// it can would otherwise keep a thread for milliseconds, and with a few connections everybody else for tens of them.
pub(crate) struct FairSocket<S>(pub(crate) S);

impl<S: AsyncRead + Unpin> AsyncRead for FairSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(cx, buffer))?;
        spend(cx, buffer.filled().len().saturating_sub(before));
        Poll::Ready(Ok(()))
    }
}

/// Counts what was read or written. When no unit is left, the next read or write waits for the next turn.
fn spend(cx: &mut Context<'_>, bytes: usize) {
    for _ in 0..bytes / BYTES_PER_UNIT {
        let Poll::Ready(unit) = poll_proceed(cx) else { break };
        unit.made_progress();
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FairSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.0).poll_write(cx, bytes))?;
        spend(cx, written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.0).poll_write_vectored(cx, slices))?;
        spend(cx, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn others_get_their_turn_while_much_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).unwrap();
        tokio::spawn(async move { sender.write_all(&vec![7; 3 << 20]).await });
        let mut socket = FairSocket(socket);
        // Read to the end with pauses only where the runtime asks for them; the most that came at a time is what others wait for.
        let (mut all, mut at_a_time, mut most) = (0, 0, 0);
        let mut bytes = vec![0; 64 << 10];
        while all < 3 << 20 {
            let read = poll_fn(|cx| {
                let mut buffer = ReadBuf::new(&mut bytes);
                Poll::Ready(match Pin::new(&mut socket).poll_read(cx, &mut buffer) {
                    Poll::Ready(read) => read.map(|()| Some(buffer.filled().len())),
                    Poll::Pending => Ok(None),
                })
            });
            match read.await.unwrap() {
                Some(read) => (all, at_a_time) = (all + read, at_a_time + read),
                None => {
                    at_a_time = 0;
                    tokio::task::yield_now().await;
                }
            }
            most = most.max(at_a_time);
        }
        assert!(most <= 128 << 10, "{most} bytes at a time");
    }
}
