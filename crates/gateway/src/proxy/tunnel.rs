//! Connections after an upgrade: bytes both ways.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{StatusCode, Version};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::timeout;
use watchkeeper_front::{Body, Response, Upgrade};

use super::relay::{Exchange, Sent};

/// How much is read at a time.
const BUFFER: usize = 16 << 10;

/// Answers with 101, and then carries bytes both ways until one side ends or both are silent for too long.
pub(super) fn open(
    exchange: Exchange,
    response: http::Response<Incoming>,
    sent: Sent,
    protocol: &HeaderValue,
    idle: Option<Duration>,
) -> Response {
    let (head, backend) = {
        let mut response = response;
        let backend = hyper::upgrade::on(&mut response);
        (response.into_parts().0, backend)
    };
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *answer.version_mut() = Version::HTTP_11;
    let protocol = head.headers.get(UPGRADE).unwrap_or(protocol).clone();
    *answer.headers_mut() = head.headers;
    super::hop::remove(answer.headers_mut());
    answer.headers_mut().insert(UPGRADE, protocol);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.extensions_mut().insert(Upgrade::new(move |client| async move {
        let mut exchange = exchange;
        let _sent = sent;
        let backend = match backend.await {
            Ok(backend) => TokioIo::new(backend),
            Err(error) => return tracing::debug!(%error, "an upgrade failed"),
        };
        exchange.bytes = carry(client, backend, idle, &exchange.shared).await;
    }));
    answer
}

/// Carries bytes both ways; says how many went to the client.
async fn carry<C, B>(client: C, backend: B, idle: Option<Duration>, shared: &Arc<super::Shared>) -> u64
where
    C: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (client_read, client_write) = split(client);
    let (backend_read, backend_write) = split(backend);
    let moved = std::sync::atomic::AtomicU64::new(0);
    let up = copy(client_read, backend_write, &moved);
    let down = copy(backend_read, client_write, &moved);
    let both = async { tokio::join!(up, down).1 };
    tokio::pin!(both);
    let Some(idle) = idle else { return both.await };
    let mut seen = 0;
    loop {
        match timeout(idle, &mut both).await {
            Ok(bytes) => return bytes,
            Err(_) if moved.load(Relaxed) == seen => {
                shared.counters.cut.fetch_add(1, Relaxed);
                return 0;
            }
            Err(_) => seen = moved.load(Relaxed),
        }
    }
}

/// Copies until the end, and passes the end on.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: &std::sync::atomic::AtomicU64,
) -> u64 {
    let mut buffer = vec![0; BUFFER];
    let mut copied = 0_u64;
    loop {
        match from.read(&mut buffer).await {
            Ok(count) if count > 0 => {
                if to.write_all(&buffer[..count]).await.is_err() || to.flush().await.is_err() {
                    return copied;
                }
                copied = copied.saturating_add(count as u64);
                moved.fetch_add(count as u64, Relaxed);
            }
            _ => {
                // Whoever is gone already misses nothing.
                let _ = to.shutdown().await;
                return copied;
            }
        }
    }
}
