//! A request to a backend, and its response.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderValue, RETRY_AFTER, UPGRADE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use watchkeeper_front::{Body, BodyError, Response};

use super::answer::{CrossOrigin, plain, tell_origin};
use super::relay::{Exchange, Relay, Sent};
use super::upload::{Upload, UploadEnd};
use super::{compress, ended, hop, tunnel};
use crate::table::{Action, Listener, Rule};
use crate::upstream::{Backend, Counted, EndpointState, Hashed, Lease, NoEndpoint, Reason};

/// Bodies up to this size are kept for repetitions and copies, if there may be any.
const KEPT: u64 = 64 << 10;
/// How many copies of requests may be under way.
const MIRRORS: usize = 256;
/// How long a copy may take.
const MIRROR_TIMEOUT: Duration = Duration::from_secs(10);
/// The answers to clients whose requests are not read to their ends.
const GIVEN_UP: [StatusCode; 4] = [
    StatusCode::BAD_REQUEST,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// What is to be done with a request.
pub(super) struct Order {
    pub(super) rule: Arc<Rule>,
    pub(super) listener: Arc<Listener>,
    /// The host as the client wrote it.
    pub(super) host: HeaderValue,
    /// The path that the backend gets, if it is another than the client's.
    pub(super) path: Option<String>,
    pub(super) client: IpAddr,
    pub(super) cross: Option<CrossOrigin>,
    /// The protocol that the client asks to switch to.
    pub(super) upgrade: Option<HeaderValue>,
    pub(super) accepts_gzip: bool,
    /// Since when it is worked on.
    pub(super) begin: Instant,
    /// When the whole of it has to be answered.
    pub(super) deadline: Option<Instant>,
}

/// The copies of requests that are under way.
pub(crate) struct Mirrors(Arc<Semaphore>);

impl Default for Mirrors {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MIRRORS)))
    }
}

/// What a request carries.
enum Payload {
    /// All of it is here.
    Whole { bytes: Bytes, since: Instant },
    /// It comes as it is sent on; there once.
    Stream { body: Option<Body>, end: UploadEnd },
}

impl Payload {
    /// What the client is to blame for.
    fn fault(&self) -> Option<&BodyError> {
        match self {
            Self::Whole { .. } => None,
            Self::Stream { end, .. } => end.fault(),
        }
    }

    /// Since when all of it is there.
    fn complete_since(&self) -> Option<Instant> {
        match self {
            Self::Whole { since, .. } => Some(*since),
            Self::Stream { end, .. } => end.complete_since(),
        }
    }
}

/// Sends a request to a backend, and its response to the client.
pub(super) async fn forward(mut exchange: Exchange, order: Order, mut parts: Parts, body: Body) -> Response {
    let rule = Arc::clone(&order.rule);
    let action = &*rule.action;
    let table = Arc::clone(&exchange.table);
    let Some(key) = action.backends.choose() else {
        return ended(
            exchange,
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the route has no backend with a weight"),
        );
    };
    let Some(backend) = table.backend(key) else {
        return ended(
            exchange,
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the backend of the route does not exist"),
        );
    };
    if let Some(line) = &mut exchange.line {
        line.backend = Some(key.clone());
    }
    let Some(active) = backend.state.begin(backend.max_requests) else {
        let mut response =
            plain(StatusCode::SERVICE_UNAVAILABLE, "too many requests are under way to the backend");
        response.headers_mut().insert(RETRY_AFTER, 1.into());
        return ended(exchange, response);
    };
    let version = parts.version;
    if let Some(edits) = &action.request_headers {
        edits.apply(&mut parts.headers);
    }
    // With the path and the host of the client: the backend that gets the copy may want others.
    let copied = mirrored(&exchange, action).map(|backend| (backend, parts.clone()));
    if address(&mut parts, &order, action, backend).is_none() {
        return ended(exchange, plain(StatusCode::BAD_REQUEST, "the path cannot be sent to the backend"));
    }
    let payload = match payload(&order, &parts.method, body).await {
        Ok(payload) => payload,
        Err(mut response) => {
            // Who sends what cannot be read, or too slowly, is not listened to any more.
            if response.status() != StatusCode::PAYLOAD_TOO_LARGE {
                close(&mut response, version);
            }
            return ended(exchange, response);
        }
    };
    if let Some((mirrored, parts)) = copied {
        mirror(&exchange, &order, mirrored, parts, &payload);
    }
    if let Some(protocol) = &order.upgrade {
        parts.headers.insert(UPGRADE, protocol.clone());
        parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    let upload = match &payload {
        Payload::Whole { .. } => None,
        Payload::Stream { end, .. } => Some(end.clone()),
    };
    let (response, lease, counted) = match attempt_all(&order, backend, parts, payload).await {
        Ok(answered) => answered,
        Err(mut response) => {
            // Who was not done sending, and is not waited for, has to connect anew.
            if upload.is_some() && GIVEN_UP.contains(&response.status()) {
                close(&mut response, version);
            }
            return ended(exchange, response);
        }
    };
    if let Some(line) = &mut exchange.line {
        line.endpoint = Some(Arc::clone(&counted.endpoint().address));
    }
    let sent = Sent { _backend: active, _endpoint: counted, upload };
    deliver(exchange, &order, response, lease, sent)
}

/// Sets the target and the host that the backend gets. `None` if these cannot be sent.
fn address(parts: &mut Parts, order: &Order, action: &Action, backend: &Backend) -> Option<()> {
    let query = parts.uri.query();
    let target = match (&order.path, &*backend.path) {
        (None, "") => parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")),
        (path, prefix) => {
            let path = path.as_deref().unwrap_or(parts.uri.path());
            let text = match query {
                Some(query) => format!("{prefix}{path}?{query}"),
                None => format!("{prefix}{path}"),
            };
            PathAndQuery::try_from(text).ok()?
        }
    };
    let host = action.host.as_deref().or(backend.host.as_ref()).unwrap_or(&order.host);
    let transport = &backend.transport;
    if transport.http2 {
        let authority = Authority::try_from(host.as_bytes()).ok()?;
        let scheme = if transport.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(target).build();
        parts.uri = uri.ok()?;
        parts.headers.remove(HOST);
        parts.version = Version::HTTP_2;
    } else {
        parts.uri = Uri::from(target);
        parts.headers.insert(HOST, host.clone());
        parts.version = Version::HTTP_11;
    }
    Some(())
}

/// Has the connection of a client of HTTP/1 end with a response.
fn close(response: &mut Response, version: Version) {
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// What a request carries, within the limits of its route.
async fn payload(order: &Order, method: &Method, body: Body) -> Result<Payload, Response> {
    if body.is_end_stream() {
        return Ok(Payload::Whole { bytes: Bytes::new(), since: order.begin });
    }
    let (action, listener) = (&*order.rule.action, &order.listener);
    let hint = body.size_hint();
    let limit = action.max_body.or(listener.max_body);
    if limit.is_some_and(|limit| hint.lower() > limit) {
        return Err(too_large());
    }
    let is_kept = action.retry.allows(method) || action.mirror.is_some();
    if !is_kept || hint.exact().is_none_or(|length| length > KEPT) {
        let end = UploadEnd::default();
        let body = Body::wrap(Upload::new(body, limit, end.clone()));
        return Ok(Payload::Stream { body: Some(body), end });
    }
    // Its length is known, and is not too much.
    let read = in_time(order.deadline, body.read(KEPT as usize)).await.unwrap_or(Err(BodyError::Stalled));
    match read {
        Ok(bytes) => Ok(Payload::Whole { bytes, since: Instant::now() }),
        Err(error) => Err(unreadable(&error)),
    }
}

/// What comes of something until a deadline, if there is one.
pub(super) async fn in_time<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(end) => timeout_at(end, future).await.ok(),
        None => Some(future.await),
    }
}

/// The answer to a client whose body could not be read.
pub(super) fn unreadable(error: &BodyError) -> Response {
    match error {
        BodyError::TooLarge { .. } => too_large(),
        BodyError::Stalled => {
            plain(StatusCode::REQUEST_TIMEOUT, "the rest of the request did not come in time")
        }
        BodyError::Malformed(_) => plain(StatusCode::BAD_REQUEST, "the body of the request is malformed"),
        BodyError::Interrupted(_) => plain(StatusCode::BAD_REQUEST, "the request broke off"),
    }
}

fn too_large() -> Response {
    plain(StatusCode::PAYLOAD_TOO_LARGE, "the body of the request is too large")
}

type Answered = (http::Response<Incoming>, Lease, Counted);

/// Tries until there is a response, as often and as long as the route allows. Otherwise, what the client is told instead.
async fn attempt_all(
    order: &Order,
    backend: &Backend,
    parts: Parts,
    mut payload: Payload,
) -> Result<Answered, Response> {
    let (action, client, deadline) = (&*order.rule.action, order.client, order.deadline);
    let retry = &action.retry;
    let is_whole = matches!(payload, Payload::Whole { .. });
    let may_repeat = retry.allows(&parts.method) && is_whole;
    let mut tried: Vec<Arc<EndpointState>> = Vec::new();
    let mut parts = Some(parts);
    loop {
        let Some(head) = parts.take() else { return Err(broken()) };
        let chosen = backend.choose(Hashed { headers: &head.headers, address: client }, &tried);
        let endpoint = match chosen {
            Ok(endpoint) => Arc::clone(endpoint),
            Err(none) => return Err(nowhere(none)),
        };
        let is_last = tried.len() as u32 >= retry.attempts;
        // Only those who may send it again need it again.
        let again = (may_repeat && !is_last).then(|| head.clone());
        let body = match &mut payload {
            Payload::Whole { bytes, .. } => Body::whole(bytes.clone()),
            Payload::Stream { body, .. } => body.take().unwrap_or_default(),
        };
        // From now on: a server that does not answer has it, too.
        let counted = Counted::begin(&endpoint);
        let sending = endpoint.send(&backend.transport, Request::from_parts(head, body));
        let asked = Instant::now();
        let attempt = action.timeouts.attempt.map(|limit| asked + limit);
        let sent = in_time([attempt, deadline].into_iter().flatten().min(), sending).await;
        if !matches!(sent, Some(Ok(_)))
            && let Some(fault) = payload.fault()
        {
            tracing::debug!(backend = %backend.key, reason = %fault, "a request could not be read to its end");
            return Err(unreadable(fault));
        }
        let (failure, unsent) = match sent {
            Some(Ok((response, lease))) => {
                let code = response.status().as_u16();
                backend.note(&endpoint, code < 500);
                if !(again.is_some() && retry.statuses.contains(&code) && backend.state.may_retry()) {
                    return Ok((response, lease, counted));
                }
                (None, None)
            }
            Some(Err(failed)) => {
                tracing::debug!(backend = %backend.key, endpoint = %endpoint.address, reason = %failed.reason, "a request failed");
                match failed.reason {
                    Reason::Full(_) => (Some(full()), failed.request),
                    Reason::Failed(_) => {
                        backend.note(&endpoint, false);
                        (Some(broken()), failed.request)
                    }
                }
            }
            None => {
                if is_server_slow(order, &payload, asked) {
                    backend.note(&endpoint, false);
                }
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(late());
                }
                (Some(late()), None)
            }
        };
        drop(counted);
        // What the server has not seen may be sent anew, whatever it is.
        let next = match unsent {
            Some(unsent) if !is_last => {
                let (head, body) = unsent.into_parts();
                if let Payload::Stream { body: stream, .. } = &mut payload {
                    *stream = Some(body);
                }
                Some(head)
            }
            _ => again,
        };
        if let Some(failure) = failure
            && (next.is_none() || !backend.state.may_retry())
        {
            return Err(failure);
        }
        parts = next;
        let wait = retry.backoff * 2_u32.saturating_pow(tried.len() as u32).min(64);
        tried.push(endpoint);
        // Another server need not be waited for.
        if tried.len() >= backend.endpoints.len() {
            let again = Instant::now() + wait.mul_f64(0.5 + fastrand::f64() / 2.0);
            if let Some(deadline) = deadline.filter(|deadline| *deadline <= again) {
                sleep_until(deadline).await;
                return Err(late());
            }
            sleep_until(again).await;
        }
    }
}

/// Whether it is the server that did not answer in time which is to blame, and not its client: it had as long as the client took to send the request,
/// or as long as an attempt may take.
fn is_server_slow(order: &Order, payload: &Payload, asked: Instant) -> bool {
    let Some(complete) = payload.complete_since() else { return false };
    let (client, server) = (complete - order.begin, complete.max(asked).elapsed());
    server >= order.rule.action.timeouts.attempt.map_or(client, |limit| client.min(limit))
}

fn late() -> Response {
    plain(StatusCode::GATEWAY_TIMEOUT, "the backend did not answer in time")
}

fn full() -> Response {
    let mut response =
        plain(StatusCode::SERVICE_UNAVAILABLE, "there are as many connections to the backend as may be");
    response.headers_mut().insert(RETRY_AFTER, 1.into());
    response
}

fn broken() -> Response {
    plain(StatusCode::BAD_GATEWAY, "the backend cannot be reached, or broke off")
}

fn nowhere(none: NoEndpoint) -> Response {
    let text = match none {
        NoEndpoint::None => "the backend has no endpoints",
        NoEndpoint::Unhealthy => "no endpoint of the backend is healthy",
    };
    plain(StatusCode::SERVICE_UNAVAILABLE, text)
}

/// The backend that gets a copy of a request, if it is the turn of this one.
fn mirrored(exchange: &Exchange, action: &Action) -> Option<Arc<Backend>> {
    let (key, percent) = action.mirror.as_deref()?;
    if fastrand::u8(..100) >= *percent {
        return None;
    }
    exchange.table.backend(key).cloned()
}

/// Sends a copy of a request to another backend, with the path and the host that this one wants, and forgets about it.
fn mirror(exchange: &Exchange, order: &Order, backend: Arc<Backend>, mut parts: Parts, payload: &Payload) {
    let Payload::Whole { bytes, .. } = payload else { return };
    let Ok(permit) = Arc::clone(&exchange.shared.mirrors.0).try_acquire_owned() else { return };
    if address(&mut parts, order, &order.rule.action, &backend).is_none() {
        return;
    }
    parts.extensions = http::Extensions::new();
    let (body, client) = (Body::whole(bytes.clone()), order.client);
    tokio::spawn(async move {
        let _permit = permit;
        let Ok(endpoint) = backend.choose(Hashed { headers: &parts.headers, address: client }, &[]) else {
            return;
        };
        let _counted = Counted::begin(endpoint);
        let sent = endpoint.send(&backend.transport, Request::from_parts(parts, body));
        if let Ok(Ok((response, lease))) = timeout(MIRROR_TIMEOUT, sent).await {
            use http_body_util::BodyExt as _;
            let mut body = response.into_body();
            while let Ok(Some(Ok(_))) = timeout(MIRROR_TIMEOUT, body.frame()).await {}
            if body.is_end_stream() {
                lease.finish();
            }
        }
    });
}

/// Makes of the response of a backend that for the client.
fn deliver(
    mut exchange: Exchange,
    order: &Order,
    response: http::Response<Incoming>,
    lease: Lease,
    sent: Sent,
) -> Response {
    let action = &order.rule.action;
    exchange.code = response.status().as_u16();
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return match &order.upgrade {
            Some(protocol) => tunnel::open(exchange, response, sent, protocol, action.timeouts.idle),
            None => ended(
                exchange,
                plain(StatusCode::BAD_GATEWAY, "the backend switched protocols without being asked"),
            ),
        };
    }
    let (mut head, incoming) = response.into_parts();
    hop::remove(&mut head.headers);
    if let Some(edits) = &action.response_headers {
        edits.apply(&mut head.headers);
    }
    if let Some(rules) = &action.cors {
        tell_origin(rules, order.cross.as_ref(), &mut head.headers);
    }
    head.version = Version::HTTP_11;
    // What the connection to the backend left there is nobody's business.
    head.extensions = http::Extensions::new();
    let is_over = incoming.is_end_stream();
    let mut relay =
        Relay { incoming, lease: Some(lease), idle: action.timeouts.idle, timer: None, exchange, sent };
    if is_over && let Some(lease) = relay.lease.take() {
        lease.finish();
    }
    if let Some(rules) = action.compress.as_ref().filter(|_| order.accepts_gzip && !is_over)
        && compress::wants(rules, &mut head)
    {
        return Response::from_parts(head, Body::wrap(compress::Gzip::new(relay)));
    }
    Response::from_parts(head, Body::wrap(relay))
}
