use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderValue};
use http::{Method, StatusCode, Version};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper_supervision::Supervisor;

use crate::body::Accompanied;
use crate::builder::Proxies;
use crate::connection_state::Run;
use crate::connections::{Connection, Connections};
use crate::framing::Framing;
use crate::service::plain;
use crate::unread::Unread;
use crate::{Body, BodyError, Deadlines, Peer, Response, Service, Shutdown, Upgrade};

/// The target of the access log: one event of level `DEBUG` for each request, with its method, path, code and duration.
pub const ACCESS_LOG: &str = "watchkeeper_front::access";

/// Among the extensions of a response: who asked, for the access log.
#[derive(Clone, Debug)]
pub struct LogUser(pub String);

/// What all connections of a front have in common.
pub(crate) struct Shared {
    pub(crate) service: Box<dyn Service>,
    pub(crate) shutdown: Shutdown,
    /// No more connections are accepted, and clients are told to go elsewhere.
    pub(crate) leaving: CancellationToken,
    /// No more connections are accepted; those that are open stay.
    pub(crate) retired: CancellationToken,
    pub(crate) connections: Arc<Connections>,
    pub(crate) deadlines: Deadlines,
    pub(crate) supervisor: Supervisor,
    /// What the tasks are called that take connections.
    pub(crate) task: String,
    /// Who has to say where clients are.
    pub(crate) proxies: Option<Proxies>,
}

/// What the requests of one connection have in common.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) peer: Peer,
    pub(crate) connection: Connection,
    /// Where its requests begin and end; of HTTP/1.
    pub(crate) framing: Arc<Framing>,
    /// What is not read of requests, where that matters to the next one.
    pub(crate) unread: Arc<Unread>,
    /// What takes over the connection when the answer was sent.
    pub(crate) upgrade: Mutex<Option<Upgrade>>,
}

/// One request and its answer: ask the service, count, write the access log.
pub(crate) async fn exchange(
    client: Arc<Client>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Delivery>, Infallible> {
    let running = client.connection.begin();
    let (is_head, version) = (*request.method() == Method::HEAD, request.version());
    let begin = Instant::now();
    // Only what the log needs, and only if there is one. Of the query nothing: it may hold what is nobody's business.
    let logged = tracing::enabled!(target: ACCESS_LOG, tracing::Level::DEBUG)
        .then(|| (request.method().clone(), request.uri().path().to_owned()));

    let mut ambiguous = None;
    if version < Version::HTTP_2 {
        client.unread.begin();
        ambiguous = client.framing.next();
    }
    let mut response = match ambiguous {
        Some(why) => refused(&client, request, why),
        None => call(&client, request).await,
    };
    let code = response.status().as_u16();
    client.shared.connections.metrics.answered(code);
    let is_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if is_switched && version < Version::HTTP_2 {
        *client.upgrade.lock() = response.extensions_mut().remove();
    }
    if let Some((method, path)) = logged {
        let user = response.extensions_mut().remove::<LogUser>().map(|user| user.0);
        tracing::debug!(target: ACCESS_LOG, %method, path, code, user, duration = ?begin.elapsed(), "answered");
    }
    let is_drained = version >= Version::HTTP_2 || is_switched || client.unread.drained().await;
    // HTTP/2 says it for all requests of the connection at once.
    if !is_drained || (version < Version::HTTP_2 && client.shared.leaving.is_cancelled()) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let response = if is_head { headers_only(response) } else { response };
    Ok(response.map(|body| Delivery { body, _companion: running }))
}

/// The answer to a HEAD: as long as that to a GET would be, if that is known, but without its content. HTTP/2 clients end
/// a connection on which they get content they did not ask for.
fn headers_only(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
    Response::from_parts(head, Body::empty())
}

/// The answer to a request that others could cut off elsewhere. What is behind it on its connection is not read.
fn refused(client: &Client, request: http::Request<Incoming>, why: &'static str) -> Response {
    client.shared.connections.metrics.malformed();
    client.unread.leave(request.into_body(), false);
    plain(StatusCode::BAD_REQUEST, why)
}

async fn call(client: &Client, mut request: http::Request<Incoming>) -> Response {
    request.extensions_mut().insert(client.peer.clone());
    let limit = client.shared.connections.limits().body_bytes;
    let is_too_large = request.body().size_hint().lower() > limit;
    let mut unread = (request.version() < Version::HTTP_2).then(|| Arc::clone(&client.unread));
    let is_coming = !request.headers().contains_key(EXPECT);
    let request = request.map(|incoming| match incoming.is_end_stream() {
        true => Body::empty(),
        false => Body::boxed(Upload {
            incoming: Some(incoming),
            left: limit,
            limit,
            stall: (client.shared.deadlines.body_stall, None),
            unread: unread.take(),
            is_coming,
            shared: Arc::clone(&client.shared),
        }),
    });
    if is_too_large {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large\n");
    }
    let answer = async { client.shared.service.call(request).await };
    // A panic is the end of this request, not of the others on its connection.
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
        client.shared.supervisor.panicked("request", None);
        client.shared.service.panicked()
    })
}

/// The body of a request, on its way in.
struct Upload {
    /// There until this is dropped.
    incoming: Option<Incoming>,
    /// How many bytes may come, and how many more.
    limit: u64,
    left: u64,
    /// How long we wait for the client, and the timer that runs while we do.
    stall: (Duration, Option<Pin<Box<Sleep>>>),
    /// Who is told what was not read; of HTTP/1.
    unread: Option<Arc<Unread>>,
    /// Whether the client sends it: unasked, or because it was asked for it.
    is_coming: bool,
    shared: Arc<Shared>,
}

impl Upload {
    /// Takes what came next, or the end.
    fn next(
        &mut self,
        frame: Option<hyper::Result<Frame<Bytes>>>,
    ) -> Option<Result<Frame<Bytes>, BodyError>> {
        match frame {
            Some(Ok(frame)) => Some(self.within_limit(frame)),
            Some(Err(error)) => {
                let failed = self.failed(&error);
                self.forget_stream();
                Some(Err(failed))
            }
            // hyper takes a stream that its client resets without an error for one that is complete.
            None if self.unread.is_none() && !self.is_end_stream() => {
                self.forget_stream();
                Some(Err(BodyError::Interrupted("the client reset the stream".to_owned())))
            }
            None => None,
        }
    }

    /// What became of it, which is counted if it is the client's fault.
    fn failed(&self, error: &hyper::Error) -> BodyError {
        if !is_malformed(error) {
            return BodyError::Interrupted(error.to_string());
        }
        self.shared.connections.metrics.malformed();
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        BodyError::Malformed(reason)
    }

    /// A stream of HTTP/2 that failed fails whenever it is read.
    fn forget_stream(&mut self) {
        if self.unread.is_none() {
            self.incoming = None;
        }
    }

    fn within_limit(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(length) {
            Some(left) => self.left = left,
            None => {
                return Err(BodyError::TooLarge { limit: usize::try_from(self.limit).unwrap_or(usize::MAX) });
            }
        }
        Ok(frame)
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.is_coming = true;
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(incoming).poll_frame(cx) {
            self.stall.1 = None;
            return Poll::Ready(self.next(frame));
        }
        let (timeout, timer) = &mut self.stall;
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(*timeout)));
        timer.as_mut().poll(cx).map(|()| Some(Err(BodyError::Stalled)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let incoming = self.incoming.take().filter(|incoming| !incoming.is_end_stream());
        let Some(mut incoming) = incoming else { return };
        if let Some(unread) = &self.unread {
            return unread.leave(incoming, self.is_coming);
        }
        // hyper gives up a request of HTTP/2 as soon as its stream is reset: maybe before anybody has read why.
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(frame)) = Pin::new(&mut incoming).poll_frame(&mut context) {
            if let Err(error) = frame {
                self.failed(&error);
                return;
            }
        }
    }
}

/// Whether what a client sent is no body. What it did not finish may have become one.
fn is_malformed(error: &hyper::Error) -> bool {
    let Some(cause) = error.source() else { return false };
    #[cfg(feature = "http2")]
    if let Some(cause) = cause.downcast_ref::<h2::Error>() {
        // We reset it, not the client; and not with all others of its connection, which is counted as one.
        return cause.is_reset() && cause.is_library();
    }
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// The body of a response, on its way out: as long as it is, the request counts as running.
pub(crate) type Delivery = Accompanied<Body, Run>;
