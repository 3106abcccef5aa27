//! Bodies on their way, and what ends with them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use watchkeeper_front::BodyError;

use super::Shared;
use super::access_log::Line;
use super::upload::UploadEnd;
use crate::spans::{Ended, Span};
use crate::table::{RouteHead, Table};
use crate::upstream::{Active, Counted, Lease};

/// A request from its head to the last byte of its response. When it ends, it is counted and logged.
pub(crate) struct Exchange {
    pub(crate) shared: Arc<Shared>,
    /// The table that the request began with: it stays until the last byte.
    pub(crate) table: Arc<Table>,
    pub(crate) begin: Instant,
    pub(crate) route: Option<Arc<RouteHead>>,
    /// 0 as long as there is no response.
    pub(crate) code: u16,
    pub(crate) bytes: u64,
    pub(crate) line: Option<Box<Line>>,
    pub(crate) span: Option<Box<Span>>,
}

impl Exchange {
    /// Notes which route serves the request.
    pub(crate) fn routed(&mut self, route: &Arc<RouteHead>) {
        route.stats.active.fetch_add(1, Relaxed);
        self.route = Some(Arc::clone(route));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let duration = self.begin.elapsed();
        if let Some(route) = &self.route {
            route.stats.active.fetch_sub(1, Relaxed);
            route.stats.ended(self.code, duration);
        }
        if let Some((span, tracer)) = self.span.take().zip(self.shared.tracer.as_ref()) {
            let route = self.route.as_ref().map(|route| route.key.to_string());
            tracer.end(&span, &Ended { code: self.code, route, duration });
        }
        if let Some(line) = self.line.take() {
            self.shared.log.write(*line, self.route.as_deref(), self.code, self.bytes, duration);
        }
    }
}

/// A request to a backend, until its response has ended.
pub(crate) struct Sent {
    pub(crate) _backend: Active,
    pub(crate) _endpoint: Counted,
    /// How its body ends, if it may go on while the response comes.
    pub(crate) upload: Option<UploadEnd>,
}

/// The body of a response, from a backend to a client. Pieces leave as they come.
pub(crate) struct Relay {
    pub(crate) incoming: Incoming,
    /// Given back when the response has ended.
    pub(crate) lease: Option<Lease>,
    pub(crate) idle: Option<Duration>,
    pub(crate) timer: Option<Pin<Box<Sleep>>>,
    pub(crate) exchange: Exchange,
    pub(crate) sent: Sent,
}

impl Relay {
    fn finish(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.finish();
        }
    }

    fn cut(&mut self, reason: impl Into<String>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.lease = None;
        // A client whose own body breaks off ends the exchange on both sides.
        if self.sent.upload.as_ref().is_none_or(|upload| upload.fault().is_none()) {
            self.exchange.shared.counters.cut.fetch_add(1, Relaxed);
        }
        Poll::Ready(Some(Err(BodyError::Interrupted(reason.into()))))
    }
}

impl http_body::Body for Relay {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.timer = None;
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.exchange.bytes = self.exchange.bytes.saturating_add(length as u64);
                if self.incoming.is_end_stream() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => self.cut(error.to_string()),
            Poll::Ready(None) => {
                self.finish();
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(idle) = self.idle else { return Poll::Pending };
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(idle)));
                match timer.as_mut().poll(cx) {
                    Poll::Ready(()) => self.cut("the backend was silent for too long"),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
