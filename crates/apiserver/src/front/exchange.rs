use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;
use watchkeeper_supervision::Supervisor;

use super::authenticator::{Unauthorized, bearer_token, identify};
use super::connection_state::Run;
use super::connections::{Connection, Connections};
use super::{Authenticator, Body, BodyError, ClientCertificate, Identity, Presented, Service, Shutdown};
use crate::Clock;

/// A client that sends nothing of a body for so long is not going to.
const PATIENCE: Duration = Duration::from_secs(60);

/// What all connections of a front have in common.
pub(super) struct Shared {
    pub(super) service: Arc<dyn Service>,
    pub(super) authenticators: Vec<Box<dyn Authenticator>>,
    pub(super) shutdown: Shutdown,
    pub(super) connections: Arc<Connections>,
    /// By which certificates expire.
    pub(super) clock: Clock,
    pub(super) supervisor: Supervisor,
}

/// What the requests of one connection have in common.
pub(super) struct Peer {
    pub(super) shared: Arc<Shared>,
    pub(super) certificate: Option<ClientCertificate>,
    pub(super) connection: Connection,
    /// Whether a request was answered without its body being read to the end.
    pub(super) left_unread: Arc<AtomicBool>,
}

/// One request and its answer: find out who asks, ask the service, write the access log.
pub(super) async fn exchange(
    peer: Arc<Peer>,
    request: http::Request<Incoming>,
) -> Result<Response<Delivery>, Infallible> {
    let running = peer.connection.begin();
    let is_head = *request.method() == Method::HEAD;
    let begin = Instant::now();
    // Only what the log needs, and only if there is one. Of the query nothing: it may hold what is nobody's business.
    let logged = tracing::enabled!(tracing::Level::DEBUG)
        .then(|| (request.method().clone(), request.uri().path().to_owned()));

    let certificate = peer.certificate.as_ref();
    let is_expired = certificate.is_some_and(|certificate| certificate.is_expired(peer.shared.clock.now()));
    let certificate = certificate.filter(|_| !is_expired);
    let presented = Presented { token: bearer_token(request.headers()), certificate };
    let identity = identify(&peer.shared.authenticators, presented, is_expired).await;
    if let Ok(identity) = &identity {
        peer.connection.identified(identity);
    }
    let user = identity.as_ref().map(|identity| identity.user.clone()).ok().filter(|_| logged.is_some());
    let response = match identity {
        Ok(identity) => call(&peer, request, identity).await,
        Err(Unauthorized) => {
            if !request.body().is_end_stream() {
                peer.left_unread.store(true, Ordering::Relaxed);
            }
            status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
        }
    };
    if let Some((method, path)) = logged {
        let code = response.status().as_u16();
        tracing::debug!(%method, path, code, user, duration = ?begin.elapsed(), "answered");
    }
    let response = if is_head { headers_only(response) } else { response };
    Ok(response.map(|body| Delivery { body, _running: running }))
}

/// The answer to a HEAD: as long as that to a GET would be, if that is known, but without its content. HTTP/2 clients end
/// a connection on which they get content they did not ask for.
fn headers_only(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
    Response::from_parts(head, Body::empty())
}

async fn call(peer: &Peer, mut request: http::Request<Incoming>, identity: Identity) -> Response<Body> {
    // It has served its purpose, and nobody behind the front needs to be trusted with it.
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(peer.shared.shutdown.clone());
    let request = request.map(|incoming| match incoming.is_end_stream() {
        true => Body::empty(),
        false => Body::boxed(Upload { incoming, patience: None, left_unread: Arc::clone(&peer.left_unread) }),
    });
    let service = Arc::clone(&peer.shared.service);
    let answer = async move { service.call(request, identity).await };
    // A panic is the end of this request, not of the others on its connection.
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
        peer.shared.supervisor.panicked("request", None);
        status(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "the server failed at this request; see its log",
        )
    })
}

/// An answer of the front itself, as Kubernetes clients understand it. The texts need no escaping.
fn status(code: StatusCode, reason: &str, message: &str) -> Response<Body> {
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{}}}"#,
        code.as_u16(),
    );
    let mut response = Response::new(Body::whole(body + "\n"));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The body of a request, on its way in.
struct Upload {
    incoming: Incoming,
    /// Runs while we wait for the client.
    patience: Option<Pin<Box<Sleep>>>,
    left_unread: Arc<AtomicBool>,
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
            self.patience = None;
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| BodyError::Interrupted(error.to_string()))),
            );
        }
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        patience.as_mut().poll(cx).map(|()| Some(Err(BodyError::Stalled)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.incoming.is_end_stream() {
            self.left_unread.store(true, Ordering::Relaxed);
        }
    }
}

/// The body of a response, on its way out: as long as it is, the request counts as running.
pub(super) struct Delivery {
    body: Body,
    _running: Run,
}

impl http_body::Body for Delivery {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
