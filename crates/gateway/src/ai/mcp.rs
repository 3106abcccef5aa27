//! Tools of several servers behind one endpoint: which a key may see, and how a call of one gets to its server and back.
//!
//! | promise | where |
//! |---|---|
//! | a key sees and calls the tools that its policy allows, and no others | [`AiKey::may_use`], asked for lists and for calls |
//! | a call costs its key a request, and is recorded | [`Call`] |
//! | servers see no key of a client, and clients see no key of a server | `request`, `answered` |
//! | what is asked and answered is passed on as it is, when it comes | `watchkeeper_ai::mcp`, `passed` |

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;
use watchkeeper_ai::mcp::{self, McpAsked, McpError, McpHeaders, McpRequest, ToolPage};
use watchkeeper_ai::sse::Splitter;
use watchkeeper_ai::{ApiError, Dialect, Usage};
use watchkeeper_core::Key;
use watchkeeper_front::{Body, BodyError, Response};
use watchkeeper_go::base64;

use super::call::{Call, Cut, Shared};
use super::clock::now;
use super::guard::{Judge, guard, is_guarded, texts_of};
use super::key::given_key;
use super::provider_key::ProviderKey;
use super::seldom::Seldom;
use super::table::{AiKey, AiTable, fits};
use crate::upstream::{Backend, Lease};

/// How clients know the gateway.
const NAME: &str = "watchkeeper-gateway";
/// For how long clients may keep a list, at most. It is only theirs: what may be called is asked anew for each call.
const TTL: Duration = Duration::from_secs(5);
/// The largest list of a server, in bytes, and how many pages it may have.
const LIST: (usize, usize) = (8 << 20, 100);
/// What headers of arguments begin with.
const PARAMETER: &str = "mcp-param-";
/// The identifier of requests of the gateway's own.
const OWN_ID: &str = "\"watchkeeper\"";

/// A compiled McpRoute.
#[derive(Debug)]
pub struct McpGateway {
    /// Which.
    pub key: Key,
    /// Its servers, in the order in which their tools are listed.
    pub servers: Box<[McpServer]>,
    /// The origins of pages that may ask.
    pub origins: Box<[String]>,
    /// Bytes that a request may carry.
    pub max_body: usize,
}

/// A server with tools.
#[derive(Debug)]
pub struct McpServer {
    /// What the names of its tools begin with.
    pub name: Arc<str>,
    /// Where it is.
    pub backend: Backend,
    /// What it is shown.
    pub key: ProviderKey,
    /// Headers that it gets besides.
    pub headers: HeaderMap,
    /// Those of its tools that are there; none for all.
    pub tools: Box<[String]>,
    /// How long it may take to begin an answer.
    pub timeout: Duration,
    /// That it does not answer.
    pub failed: Seldom,
}

impl McpServer {
    fn has(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|pattern| fits(pattern, tool))
    }
}

/// A request that came in.
pub(crate) struct AskedTools {
    pub(crate) table: Arc<AiTable>,
    pub(crate) gateway: Arc<McpGateway>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
}

/// Why a request is not answered as it was meant: the error, and what headers it has besides.
struct Refused {
    error: McpError,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl From<McpError> for Refused {
    fn from(error: McpError) -> Self {
        Self { error, header: None }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        let header = error.retry_after.map(|wait| Box::new((RETRY_AFTER, HeaderValue::from(wait))));
        Self { error: McpError::new(error.status(), error.status().into(), error.message), header }
    }
}

/// Serves a request.
pub(crate) async fn serve_tools(asked: AskedTools) -> Response {
    let AskedTools { table, gateway, shared, parts, body } = asked;
    let key = match admitted(&table, &gateway, &parts) {
        Ok(key) => key,
        Err(refused) => return told(None, refused),
    };
    let read = body.read(gateway.max_body).await.map_err(|error| match error {
        BodyError::TooLarge { limit } => McpError::new(
            413,
            413,
            format!("the request is larger than {limit} bytes: send less, or have spec.maxBodyBytes of the McpRoute raised"),
        ),
        BodyError::Malformed(_) => McpError::invalid("the body of the request is malformed"),
        _ => McpError::invalid("the request broke off"),
    });
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let headers = McpHeaders {
        version: text("mcp-protocol-version"),
        method: text("mcp-method"),
        name: text("mcp-name"),
    };
    let request = match read.map_err(|error| (None, error)).and_then(|body| McpRequest::read(&headers, &body))
    {
        Ok(Some(request)) => request,
        Ok(None) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        }
        Err((id, error)) => return told(id.as_deref(), error.into()),
    };
    let answered = match &request.asked {
        McpAsked::Discover => {
            let fields = format!(
                "\"supportedVersions\":[\"{}\"],\"capabilities\":{{\"tools\":{{}}}},\"ttlMs\":{},\"cacheScope\":\"private\"",
                mcp::VERSION,
                TTL.as_millis()
            );
            Ok(page(mcp::result(&request.id, NAME, &fields)))
        }
        McpAsked::ListTools => list(&gateway, &key, &request, &parts.headers).await,
        McpAsked::CallTool(name) => {
            let call = tool_call(shared, &gateway, &table, &key, name);
            called(call, &gateway, &key, &request, &parts.headers, name).await
        }
        McpAsked::Other(method) => Err(McpError::new(
            404,
            -32_601,
            format!("method {method:?} is not served here: server/discover, tools/list and tools/call are"),
        )
        .into()),
    };
    answered.unwrap_or_else(|refused| told(Some(&request.id), refused))
}

/// Whose request it is.
fn admitted(table: &AiTable, gateway: &McpGateway, parts: &Parts) -> Result<Arc<AiKey>, Refused> {
    if parts.method != Method::POST {
        let error = McpError::new(405, 405, format!("this endpoint is for POST, not for {}", parts.method));
        return Err(Refused { error, header: Some(Box::new((ALLOW, HeaderValue::from_static("POST")))) });
    }
    if let Some(origin) = parts.headers.get(ORIGIN)
        && !gateway.origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
    {
        let message = "pages of this origin may not ask: see spec.origins of the McpRoute";
        return Err(McpError::new(403, 403, message).into());
    }
    let namespace = gateway.key.namespace().unwrap_or_default();
    let given = given_key(&parts.headers, parts.uri.query());
    let known = given.and_then(|given| table.key(namespace, given));
    let key = known.filter(|key| key.expires.is_none_or(|end| end > now()));
    let Some(key) = key else {
        let message = match given {
            Some(_) => "the key is not known, was revoked, or has expired",
            None => "a key is needed: send it as `Authorization: Bearer KEY`",
        };
        let header = Some(Box::new((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))));
        return Err(Refused { error: McpError::new(401, 401, message), header });
    };
    if table.tenant(namespace).is_some_and(|tenant| tenant.is_suspended) {
        return Err(McpError::new(403, 403, "the tenant is suspended").into());
    }
    Ok(Arc::clone(key))
}

/// Lists the tools that a key may use. Servers that do not answer are left out, if others do.
async fn list(
    gateway: &McpGateway,
    key: &AiKey,
    request: &McpRequest,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    if request.parameter("cursor").is_some_and(|cursor| cursor.get() != "null") {
        return Err(
            McpError::parameters("params.cursor is of no list of this endpoint: it has one page").into()
        );
    }
    // Nobody asks a server of which the key may use nothing.
    let wanted = gateway.servers.iter().filter(|server| key.may_use_some(&server.name));
    let asked =
        join_all(wanted.map(|server| async move { (server, tools_of(server, request, headers).await) }))
            .await;
    let (mut tools, mut ttl, mut failed) = (Vec::new(), TTL.as_millis() as u64, 0);
    let count = asked.len();
    for (server, answer) in asked {
        match answer {
            Ok((listed, kept)) => {
                ttl = ttl.min(kept);
                for (name, tool) in listed {
                    let joined = mcp::joined(&server.name, &name);
                    if server.has(&name) && key.may_use(&joined) {
                        tools.push(mcp::renamed(&tool, &joined));
                    }
                }
            }
            Err(reason) => {
                (failed, ttl) = (failed + 1, 0);
                warn(gateway, server, &reason);
            }
        }
    }
    if failed > 0 && failed == count {
        let message = "no server of this endpoint answers: try again, and see the log of the gateway";
        return Err(McpError::new(502, 502, message).into());
    }
    let fields = format!("\"tools\":[{}],\"ttlMs\":{ttl},\"cacheScope\":\"private\"", tools.join(","));
    Ok(page(mcp::result(&request.id, NAME, &fields)))
}

fn warn(gateway: &McpGateway, server: &McpServer, reason: &str) {
    if server.failed.is_due() {
        tracing::warn!("McpRoute {}: server {}: {reason}", gateway.key, server.name);
    }
}

/// The tools of a server, as it describes them.
type Listed = Vec<(String, std::collections::BTreeMap<String, Box<RawValue>>)>;

/// All tools of a server, and for how long the list may be kept, in milliseconds.
async fn tools_of(
    server: &McpServer,
    request: &McpRequest,
    headers: &HeaderMap,
) -> Result<(Listed, u64), String> {
    let id: Box<RawValue> = RawValue::from_string(OWN_ID.to_owned()).map_err(|error| error.to_string())?;
    let (mut tools, mut ttl, mut cursor) = (Listed::new(), u64::MAX, None::<String>);
    for _ in 0..LIST.1 {
        let body = request.with(&id, "tools/list", &[("cursor", cursor.as_deref()), ("name", None)]);
        let asked = async {
            let (response, lease) = sent(server, headers, "tools/list", None, body).await?;
            let is_stream = is_stream(&response);
            if response.status() != StatusCode::OK {
                return Err(format!("it answered with code {}", response.status().as_u16()));
            }
            let read = Body::wrap(response.into_body()).read(LIST.0).await;
            let body = read.map_err(|_| format!("its list broke off, or is larger than {} bytes", LIST.0))?;
            lease.finish();
            ToolPage::read(&if is_stream { last_event(&body) } else { body })
        };
        let listed = timeout(server.timeout, asked).await;
        let listed = listed.map_err(|_| format!("it did not answer within {:?}", server.timeout))??;
        tools.extend(listed.tools);
        ttl = ttl.min(listed.ttl);
        match listed.next {
            Some(next) => cursor = Some(next),
            None => return Ok((tools, ttl)),
        }
    }
    Err(format!("its list has more than {} pages", LIST.1))
}

/// The response in a stream of events: the last that is one.
fn last_event(body: &Bytes) -> Bytes {
    let (mut splitter, mut last) = (Splitter::default(), String::new());
    let is_answer = |data: &str| {
        serde_json::from_str::<Value>(data)
            .is_ok_and(|value| value["result"].is_object() || value["error"].is_object())
    };
    let mut take = |data: String| {
        if is_answer(&data) {
            last = data;
        }
    };
    // What is too large ends the list with what came before.
    let _ = splitter.push(body, |event| take(event.data));
    splitter.finish().into_iter().for_each(|event| take(event.data));
    last.into()
}

/// A call of a tool, to be charged and recorded.
fn tool_call(
    shared: Arc<Shared>,
    gateway: &McpGateway,
    table: &AiTable,
    key: &Arc<AiKey>,
    name: &str,
) -> Call {
    // Its errors are not told in this dialect.
    let mut call = Call::new(shared, gateway.key.clone(), Dialect::OpenAiChat, Some(Arc::clone(key)));
    call.protocol = "mcp";
    call.tenant = table.tenant(gateway.key.namespace().unwrap_or_default()).cloned();
    call.model = name.into();
    call
}

/// Calls a tool.
async fn called(
    mut call: Call,
    gateway: &McpGateway,
    key: &AiKey,
    request: &McpRequest,
    headers: &HeaderMap,
    name: &str,
) -> Result<Response, Refused> {
    let found = mcp::parted(name).filter(|_| key.may_use(name));
    let found = found.and_then(|(server, tool)| {
        let server = gateway.servers.iter().find(|known| *known.name == *server)?;
        server.has(tool).then_some((server, tool))
    });
    let Some((server, tool)) = found else {
        // Names of tools are made up by clients.
        call.model = "_other".into();
        call.status = 404;
        call.error = Some("not_found");
        let shown: String = name.chars().take(100).collect();
        let message = format!(
            "there is no tool {shown:?}, or this key may not use it; tools/list has those that it may"
        );
        return Err(McpError::new(200, -32_602, message).into());
    };
    call.provider = Some(Arc::clone(&server.name));
    let mut cut = call.cut();
    let answered = async {
        if is_guarded(Some(key), false) {
            let arguments = request.parameter("arguments").map_or("null", RawValue::get);
            let texts = texts_of(&serde_json::from_str(arguments).unwrap_or_default());
            guard(Some(key), false, &texts)?;
            call.reserve(&Usage::default()).await?;
            if let Some(judge) = Judge::of(&call, false) {
                judge.ask(texts).await.inspect_err(|_| call.refused())?;
            }
        } else {
            call.reserve(&Usage::default()).await?;
        }
        // A call is a request, and no tokens.
        call.used(Some(Usage::default()));
        let body = request.with(&request.id, "tools/call", &[("name", Some(tool))]);
        let asked = timeout(server.timeout, sent(server, headers, "tools/call", Some(tool), body)).await;
        let late = |_| Err(format!("it did not answer within {:?}", server.timeout));
        match asked.unwrap_or_else(late) {
            Ok(answered) => Ok::<_, Refused>(answered),
            Err(reason) => {
                warn(gateway, server, &reason);
                Err(unreachable(server).into())
            }
        }
    };
    let answered: Result<_, Refused> = tokio::select! {
        biased;
        error = &mut cut => Err(error.into()),
        answered = answered => answered,
    };
    match answered {
        Ok((response, lease)) => passed(call, cut, gateway, server, response, lease),
        Err(refused) => {
            call.status = refused.error.status;
            call.error = Some(word(refused.error.status));
            Err(refused)
        }
    }
}

fn unreachable(server: &McpServer) -> McpError {
    let message = format!(
        "server {:?} of this endpoint does not answer as it should: try again, and see the log of the gateway",
        server.name
    );
    McpError::new(502, 502, message)
}

fn word(status: u16) -> &'static str {
    match status {
        429 => "limited",
        401 => "unauthenticated",
        403 => "forbidden",
        502 => "provider",
        503 => "guardrail",
        _ => "invalid",
    }
}

fn is_stream(response: &http::Response<Incoming>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Passes an answer on, as it comes. What a server says of the gateway's own key, and what is no answer of the protocol, is not passed on.
fn passed(
    mut call: Call,
    cut: Cut,
    gateway: &McpGateway,
    server: &McpServer,
    response: http::Response<Incoming>,
    lease: Lease,
) -> Result<Response, Refused> {
    let (status, is_stream) = (response.status(), is_stream(&response));
    let kind = response.headers().get(CONTENT_TYPE).cloned();
    let is_json = kind.as_ref().is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let is_ours = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let passes =
        status == StatusCode::OK && (is_json || is_stream) || status.is_client_error() && is_json && !is_ours;
    if !passes {
        warn(gateway, server, &format!("it answered with code {}, or no JSON", status.as_u16()));
        (call.status, call.error) = (502, Some("provider"));
        return Err(unreachable(server).into());
    }
    call.status = status.as_u16();
    call.stream = is_stream;
    let passing = Passing { body: response.into_body(), lease: Some(lease), call, cut };
    let mut passed = Response::new(Body::wrap(http_body_util::StreamBody::new(stream::unfold(
        Some(passing),
        |passing| async move {
            let mut passing = passing?;
            let frame = passing.next().await?;
            let goes_on = frame.is_ok();
            Some((frame, goes_on.then_some(passing)))
        },
    ))));
    *passed.status_mut() = status;
    passed.headers_mut().extend(kind.map(|kind| (CONTENT_TYPE, kind)));
    if is_stream {
        passed
            .headers_mut()
            .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    }
    Ok(passed)
}

/// An answer on its way. When the client leaves, it is dropped, with the connection to the server.
struct Passing {
    body: Incoming,
    lease: Option<Lease>,
    call: Call,
    cut: Cut,
}

impl Passing {
    async fn next(&mut self) -> Option<Result<http_body::Frame<Bytes>, std::io::Error>> {
        let frame = tokio::select! {
            biased;
            error = &mut self.cut => {
                self.call.failed(&error);
                return Some(Err(std::io::Error::other("the key was revoked")));
            }
            frame = self.body.frame() => frame,
        };
        match frame {
            Some(Ok(frame)) => {
                self.call.answering();
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                self.call.error = Some("provider");
                Some(Err(std::io::Error::other(error)))
            }
            None => {
                self.call.is_complete = true;
                if let Some(lease) = self.lease.take() {
                    lease.finish();
                }
                None
            }
        }
    }
}

/// Sends a request to a server.
async fn sent(
    server: &McpServer,
    headers: &HeaderMap,
    method: &'static str,
    tool: Option<&str>,
    body: String,
) -> Result<(http::Response<Incoming>, Lease), String> {
    if matches!(server.key, ProviderKey::Missing) {
        return Err("its key is not there: see spec.servers[].key".to_owned());
    }
    let endpoint = server.backend.endpoints.first().ok_or("it has no address")?;
    let request = request(server, &endpoint.state.address, headers, method, tool, body)
        .ok_or("its URL cannot be asked")?;
    let sent = endpoint.state.send(&server.backend.transport, request).await;
    sent.map_err(|unsent| unsent.reason.to_string())
}

fn request(
    server: &McpServer,
    address: &str,
    asked: &HeaderMap,
    method: &'static str,
    tool: Option<&str>,
    body: String,
) -> Option<Request<Body>> {
    let path = if server.backend.path.is_empty() { "/" } else { &server.backend.path };
    let target: Uri = path.parse().ok()?;
    let mut request = Request::new(Body::whole(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target;
    let usual = if server.backend.transport.tls.is_some() { ":443" } else { ":80" };
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(address.strip_suffix(usual).unwrap_or(address)).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert("mcp-protocol-version", HeaderValue::from_static(mcp::VERSION));
    headers.insert("mcp-method", HeaderValue::from_static(method));
    if let Some(tool) = tool {
        headers.insert("mcp-name", named(tool)?);
        let passed = asked.iter().filter(|(name, _)| name.as_str().starts_with(PARAMETER));
        headers.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
    }
    headers.extend(
        asked.get("traceparent").cloned().map(|trace| (HeaderName::from_static("traceparent"), trace)),
    );
    for (name, value) in &server.headers {
        headers.insert(name, value.clone());
    }
    if let Some(bearer) = server.key.bearer() {
        headers.insert(AUTHORIZATION, bearer);
    }
    Some(request)
}

/// A name as a header has it: in base64 if it is no plain text.
fn named(name: &str) -> Option<HeaderValue> {
    let is_plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && name.trim() == name
        && !(name.starts_with("=?base64?") && name.ends_with("?="));
    match is_plain {
        true => HeaderValue::from_str(name).ok(),
        false => HeaderValue::from_str(&format!("=?base64?{}?=", base64::encode(name.as_bytes()))).ok(),
    }
}

fn page(text: String) -> Response {
    let mut response = Response::new(Body::whole(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn told(id: Option<&RawValue>, refused: Refused) -> Response {
    let Refused { error, header } = refused;
    let mut response = page(error.body(id));
    *response.status_mut() = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().extend(header.map(|header| *header));
    response
}
