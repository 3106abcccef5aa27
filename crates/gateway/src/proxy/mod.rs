//! The way of a request: listener, match, policies, filters, backend.

pub(crate) mod access_log;
mod answer;
mod compress;
mod forward;
mod head;
mod hop;
pub(crate) mod path;
mod relay;
mod tunnel;
mod upload;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use futures_util::future::BoxFuture;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{Extensions, StatusCode, Version};
use parking_lot::RwLock;
use watchkeeper_front::{
    Body, BodyError, CertificateSource, Peer, Request, Response, ServerCertificate, Service,
};

use access_log::AccessLog;
use answer::{CrossOrigin, plain};
use hop::ClientAddress;
use relay::Exchange;

use crate::ai;
use crate::api::Api;
use crate::kinds::ListenerProtocol;
use crate::policy::{CONSUMER, Client, Payload};
use crate::spans::{TRACEPARENT, Tracer};
use crate::stats::Counters;
use crate::table::{Asked, Attachment, Listener, Rule, Table};

/// What all requests share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The current table. Held for as long as it takes to count a reference.
    table: RwLock<Arc<Table>>,
    pub(crate) counters: Counters,
    pub(crate) log: AccessLog,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) mirrors: forward::Mirrors,
    pub(crate) ai: Arc<ai::Shared>,
}

impl Shared {
    pub(crate) fn new(log: AccessLog, tracer: Option<Tracer>, ai: ai::Shared) -> Self {
        Self { log, tracer, ai: Arc::new(ai), ..Self::default() }
    }

    /// The table that a request that comes in now is served by.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }

    /// Has all requests that come in from now on be served by this table.
    pub(crate) fn publish(&self, table: Arc<Table>) {
        // What the one before held alone is freed after the lock is let go.
        let before = std::mem::replace(&mut *self.table.write(), table);
        self.counters.swaps.fetch_add(1, Relaxed);
        drop(before);
    }
}

/// Serves the requests that come in on one address.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
}

impl Service for Gate {
    fn call(&self, request: Request) -> BoxFuture<'static, Response> {
        let (shared, address) = (Arc::clone(&self.shared), self.address);
        Box::pin(serve(shared, address, request))
    }

    fn connected(&self, peer: &Peer, extensions: &mut Extensions) {
        extensions.insert(ClientAddress::new(peer.address().ip()));
    }

    fn panicked(&self) -> Response {
        plain(StatusCode::INTERNAL_SERVER_ERROR, "the gateway failed at this request; see its log")
    }
}

/// Shows the certificates of the listeners of one address, whichever those are at the moment.
pub(crate) struct Certificates {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
}

impl CertificateSource for Certificates {
    fn certificate(&self, host: Option<&str>) -> Option<ServerCertificate> {
        let host = host.map(str::to_ascii_lowercase);
        let table = self.shared.table();
        let listeners = table.port(&self.address);
        let named = host.as_ref().and_then(|host| table.listener(&self.address, host));
        named.or(listeners.last())?.certificate(host.as_deref()).cloned()
    }
}

async fn serve(shared: Arc<Shared>, address: SocketAddr, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.remove::<Peer>();
    let ip =
        peer.as_ref().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address().ip().to_canonical());
    let mut exchange = Exchange {
        table: shared.table(),
        shared,
        begin: Instant::now(),
        route: None,
        code: 0,
        bytes: 0,
        line: None,
        span: None,
    };
    let response = match route(&mut exchange, address, &mut parts, ip).await {
        Ok(way) => {
            let Way { rule, listener, target, path, cross, client, upgrade, accepts_gzip, payloads } = way;
            let begin = tokio::time::Instant::now();
            let deadline = rule.action.timeouts.request.map(|limit| begin + limit);
            let body = match checked(&exchange, &payloads, &parts, body, deadline).await {
                Ok(body) => body,
                Err(response) => return ended(exchange, response),
            };
            let told = peer.as_ref().and_then(|peer| peer.get::<ClientAddress>());
            if let Some(key) = &rule.action.ai {
                let mut response = call_model(&exchange, key, path, parts, body).await;
                tell_life(exchange.table.api(&rule.route.key), &mut response);
                return ended(exchange, response);
            }
            if let Some(key) = &rule.action.mcp {
                let response = use_tools(&exchange, key, parts, body).await;
                return ended(exchange, response);
            }
            let is_tls = listener.protocol == ListenerProtocol::HTTPS;
            hop::tell_origin(&mut parts.headers, ip, told, &target, &listener, is_tls);
            let order = forward::Order {
                rule,
                listener,
                host: target,
                path,
                client,
                cross,
                upgrade,
                accepts_gzip,
                begin,
                deadline,
            };
            let api = exchange.table.api(&order.rule.route.key).cloned();
            let mut response = forward::forward(exchange, order, parts, body).await;
            tell_life(api.as_ref(), &mut response);
            return response;
        }
        Err(response) => response,
    };
    ended(exchange, response)
}

/// Says in a response how long its API will be there.
fn tell_life(api: Option<&Arc<Api>>, response: &mut Response) {
    if let Some(api) = api {
        response.headers_mut().extend(api.headers.iter().cloned());
    }
}

/// Calls a model.
async fn call_model(
    exchange: &Exchange,
    key: &watchkeeper_core::Key,
    path: Option<String>,
    parts: Parts,
    body: Body,
) -> Response {
    let table = Arc::clone(&exchange.table.ai);
    let Some(gateway) = table.gateway(key).cloned() else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the gateway of the models does not exist");
    };
    let path = path.unwrap_or_else(|| parts.uri.path().to_owned());
    let shared = Arc::clone(&exchange.shared.ai);
    // Its future is large; requests that need no model do not carry it.
    Box::pin(ai::serve(ai::Asked { table, gateway, shared, path, parts, body })).await
}

/// Uses tools.
async fn use_tools(exchange: &Exchange, key: &watchkeeper_core::Key, parts: Parts, body: Body) -> Response {
    let table = Arc::clone(&exchange.table.ai);
    let Some(gateway) = table.mcp(key).cloned() else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the servers of the tools do not exist");
    };
    let shared = Arc::clone(&exchange.shared.ai);
    Box::pin(ai::serve_tools(ai::AskedTools { table, gateway, shared, parts, body })).await
}

/// Counts a response that is complete.
fn ended(mut exchange: Exchange, response: Response) -> Response {
    exchange.code = response.status().as_u16();
    exchange.bytes = http_body::Body::size_hint(response.body()).exact().unwrap_or(0);
    response.map(|body: Body| body.with(exchange))
}

/// Where a request goes that needs a backend.
struct Way {
    rule: Arc<Rule>,
    listener: Arc<Listener>,
    /// The host as the client wrote it.
    target: HeaderValue,
    /// The path that the backend gets, if it is another.
    path: Option<String>,
    cross: Option<CrossOrigin>,
    client: IpAddr,
    /// The protocol that the client asks to switch to.
    upgrade: Option<HeaderValue>,
    accepts_gzip: bool,
    /// What its body has to be, and how long at most.
    payloads: Vec<(Arc<Payload>, usize)>,
}

/// Finds out what is to be done with a request; an answer if no backend is needed.
async fn route(
    exchange: &mut Exchange,
    address: SocketAddr,
    parts: &mut Parts,
    ip: IpAddr,
) -> Result<Way, Response> {
    let table = Arc::clone(&exchange.table);
    let counters = &exchange.shared.counters;
    let target = head::read(parts).map_err(|reason| {
        counters.malformed.fetch_add(1, Relaxed);
        let mut response = plain(StatusCode::BAD_REQUEST, reason);
        // What comes behind it on the same connection is not to be trusted either.
        if parts.version < Version::HTTP_2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    })?;
    exchange.line = exchange.shared.log.line(ip, &parts.method, &target.host, &target.path);
    let trace = exchange.shared.tracer.as_ref().map(|tracer| {
        let context = tracer.context(&parts.headers);
        exchange.span = tracer.begin(context, &parts.method, &target.host, &target.path, ip);
        context.header()
    });
    let unrouted = |text: &str| {
        counters.unrouted.fetch_add(1, Relaxed);
        plain(StatusCode::NOT_FOUND, text)
    };
    if table.is_withheld {
        return Err(answer::withheld());
    }
    let Some(listener) = table.listener(&address, &target.host) else {
        return Err(unrouted("no listener is for this host"));
    };
    let asked = Asked {
        listener,
        host: &target.host,
        path: &target.path,
        query: parts.uri.query(),
        method: &parts.method,
        headers: &parts.headers,
    };
    let Some(rule) = table.find(&asked) else { return Err(unrouted("no route is for this request")) };
    exchange.routed(&rule.route);
    let api = table.api(&rule.route.key);
    let checked = api.map_or(Ok(None), |api| api.check(&parts.headers, parts.uri.query()));
    let subscriber = checked.map_err(|unserved| {
        let (code, text) = unserved.told();
        let path = answer::new_path(rule.action.path.as_ref(), rule, &target.path);
        let mut response = match rule.action.ai {
            Some(_) => ai::refused(&path, &parts.headers, code, text),
            None => plain(code, text),
        };
        api.into_iter().for_each(|api| response.headers_mut().extend(api.headers.iter().cloned()));
        response
    })?;
    let action = &rule.action;
    let cors = action.cors.as_deref();
    let cross = cors.and_then(|rules| CrossOrigin::of(rules, &parts.method, &parts.headers));
    if let Some((rules, cross)) = cors.zip(cross.as_ref())
        && let Some(answer) = cross.preflight(rules, &parts.headers)
    {
        return Err(answer);
    }
    let answer = action
        .answer
        .as_ref()
        .map(|answer| answer::fixed(answer, rule, &target, parts.uri.query(), listener));
    let changed = answer::new_path(action.path.as_ref(), rule, &target.path);
    let path = (*changed != *parts.uri.path()).then(|| changed.into_owned());
    // Nothing of it is left that a header could not have.
    let host = HeaderValue::from_str(&target.authority).unwrap_or(HeaderValue::from_static(""));
    let client = hop::client(&parts.headers, ip, listener);
    let asked_path = if table.has_policies() { target.path.clone().into_owned() } else { String::new() };
    let (rule, listener) = (Arc::clone(rule), Arc::clone(listener));
    // Before anything is added: a client that lists a header as one of the connection would have it removed.
    let upgrade = hop::upgrade(&parts.headers, parts.version);
    let accepts_gzip = compress::accepts_gzip(&parts.headers);
    hop::remove(&mut parts.headers);
    if let Some(trace) = trace {
        parts.headers.insert(TRACEPARENT, trace);
    }
    parts.headers.remove(CONSUMER);
    if let Some(subscriber) = &subscriber {
        parts.extensions.insert(ai::Revocation(subscriber.revoked.clone()));
    }
    if let Some(consumer) = subscriber.and_then(|subscriber| HeaderValue::from_str(&subscriber.consumer).ok())
    {
        parts.headers.insert(CONSUMER, consumer);
    }
    let mut payloads = Vec::new();
    if table.has_policies() {
        payloads = check(exchange, &table, &listener, &rule, parts, client, &asked_path).await?;
    }
    match answer {
        Some(mut response) => {
            if let Some(edits) = &rule.action.response_headers {
                edits.apply(response.headers_mut());
            }
            tell_life(table.api(&rule.route.key), &mut response);
            if let Some(rules) = &rule.action.cors {
                answer::tell_origin(rules, cross.as_ref(), response.headers_mut());
            }
            Err(response)
        }
        None => Ok(Way {
            rule: Arc::clone(&rule),
            listener,
            target: host,
            path,
            cross,
            client,
            upgrade,
            accepts_gzip,
            payloads,
        }),
    }
}

/// Asks all policies of a request.
async fn check(
    exchange: &Exchange,
    table: &Table,
    listener: &Listener,
    rule: &Rule,
    parts: &mut Parts,
    address: IpAddr,
    path: &str,
) -> Result<Vec<(Arc<Payload>, usize)>, Response> {
    let route = &rule.route.key;
    let attachments = [
        Attachment::Listener(listener.key.clone()),
        Attachment::Namespace(route.namespace().unwrap_or_default().into()),
        Attachment::Route(route.clone()),
    ];
    let mut client = Client { address, headers: &mut parts.headers, consumer: None };
    let refused = |refusal| {
        exchange.shared.counters.refused.fetch_add(1, Relaxed);
        answer::refused(refusal)
    };
    let mut payloads = Vec::new();
    for policy in attachments.iter().flat_map(|attachment| table.policies(attachment)) {
        policy.check(&mut client).await.map_err(refused)?;
        if let Some(api) = &policy.openapi {
            let payload =
                api.check(&parts.method, path, parts.uri.query(), client.headers).map_err(refused)?;
            payloads.extend(payload.map(|payload| (payload, api.max_body)));
        }
    }
    let consumer = client.consumer.and_then(|consumer| HeaderValue::from_str(&consumer).ok());
    if let Some(consumer) = consumer {
        parts.headers.insert(CONSUMER, consumer);
    }
    Ok(payloads)
}

/// The body of a request that is what policies say it has to be. If there are any, all of it is read before any of it is sent on.
async fn checked(
    exchange: &Exchange,
    payloads: &[(Arc<Payload>, usize)],
    parts: &Parts,
    body: Body,
    deadline: Option<tokio::time::Instant>,
) -> Result<Body, Response> {
    let Some(most) = payloads.iter().map(|(_, most)| *most).min() else { return Ok(body) };
    let refused = |response: Response| {
        exchange.shared.counters.refused.fetch_add(1, Relaxed);
        response
    };
    let read = forward::in_time(deadline, body.read(most)).await.unwrap_or(Err(BodyError::Stalled));
    let bytes = read.map_err(|error| {
        refused(match error {
            BodyError::TooLarge { .. } => {
                plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large to be checked")
            }
            error => forward::unreadable(&error),
        })
    })?;
    for (payload, _) in payloads {
        payload.check(&parts.headers, &bytes).map_err(|refusal| refused(answer::refused(refusal)))?;
    }
    Ok(Body::whole(bytes))
}
