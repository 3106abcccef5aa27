//! Answers, on their way to HTTP.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, RETRY_AFTER, VARY, WARNING,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use watchkeeper_kinds::protobuf;
use watchkeeper_schema::yaml;

use crate::documents::Document;
use crate::flow_control::Flow;
use crate::front::{Body, Response, Upgrade, Upgraded};
use crate::gzip::{self, THRESHOLD};
use crate::handlers::indent;
use crate::in_flight::Permit;
use crate::object::order::Order;
use crate::request::media::Format;
use crate::status_error::StatusError;

/// How much text all warnings of an answer may have, and how much each of them if that is too little, as in kube-apiserver. Clients
/// give up on an answer whose headers are too large: with HTTP/2, many at 16 KiB.
const WARNINGS: (usize, usize) = (4096, 256);
/// How many warnings an answer may have. Clients in Rust and Python give up on an HTTP/1 answer of more than a hundred headers.
const MOST_WARNINGS: usize = 64;

/// An answer.
pub(crate) struct Reply {
    code: StatusCode,
    headers: HeaderMap,
    /// What the client is told although all went well.
    warnings: Vec<String>,
    content: Content,
    /// Whether the content goes on as things happen.
    is_live: bool,
    permit: Permit,
}

enum Content {
    Bytes(Vec<u8>),
    Body(Body),
    /// What is sent as it is kept, never indented.
    Document(Arc<Document>),
    /// The connection is used for something else from now on.
    Upgrade(TakeOver),
}

/// Takes a connection over. The request counts as running as long as the permit is kept.
type TakeOver = Box<dyn FnOnce(Upgraded, Permit) -> BoxFuture<'static, ()> + Send>;

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Arc<Document>> for Content {
    fn from(document: Arc<Document>) -> Self {
        Self::Document(document)
    }
}

impl From<Body> for Content {
    fn from(body: Body) -> Self {
        Self::Body(body)
    }
}

/// As many headers as most replies have, with those that are added on the way.
const HEADERS: usize = 8;

impl Reply {
    /// JSON that has been written already.
    pub(crate) fn new(code: u16, content: impl Into<ReplyContent>) -> Self {
        let mut headers = HeaderMap::with_capacity(HEADERS);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (content, permit) = (content.into().0, Permit::default());
        Self { code, headers, warnings: Vec::new(), content, is_live: false, permit }
    }

    /// The client goes on over a WebSocket.
    pub(crate) fn web_socket<F>(
        accept: &str,
        protocol: Option<&str>,
        take_over: impl FnOnce(Upgraded, Permit) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let take_over: TakeOver = Box::new(|stream, permit| Box::pin(take_over(stream, permit)));
        let mut reply = Self::new(101, Content::Upgrade(take_over));
        reply.headers.remove(CONTENT_TYPE);
        let reply = reply.header("connection", "Upgrade").header("upgrade", "websocket");
        let reply = reply.header("sec-websocket-accept", accept);
        match protocol {
            Some(protocol) => reply.header("sec-websocket-protocol", protocol),
            None => reply,
        }
    }

    /// What another server answered, as it came.
    pub(crate) fn forwarded(code: StatusCode, headers: HeaderMap, body: Body) -> Self {
        let (content, permit) = (Content::Body(body), Permit::default());
        Self { code, headers, warnings: Vec::new(), content, is_live: true, permit }
    }

    /// Nothing, and nothing said about it.
    pub(crate) fn no_content() -> Self {
        let mut reply = Self::new(204, Vec::new());
        reply.headers.remove(CONTENT_TYPE);
        reply
    }

    /// A value as JSON, its fields in an order.
    pub(crate) fn ordered(code: u16, value: &Value, order: &Order) -> Self {
        Self::new(code, ordered_line(value, order))
    }

    /// An object of a custom resource, whose fields are in the order of their names.
    pub(crate) fn custom_object(code: u16, object: &Value, format: Format) -> Self {
        match format {
            Format::Json => Self::json(code, object),
            format => Self::object(code, object, format),
        }
    }

    /// A value as JSON.
    pub(crate) fn json(code: u16, value: &impl serde::Serialize) -> Self {
        Self::new(code, json_line(value))
    }

    /// An object, or anything else that has a kind, in a format.
    pub(crate) fn object(code: u16, object: &Value, format: Format) -> Self {
        match Self::encode(object, format) {
            Some(bytes) => Self::new(code, bytes).typed(format.media_type()),
            // What is kept has the types of its kind, and what is made here too.
            None => {
                Self::json(500, &StatusError::internal("the object cannot be written in protobuf").status())
            }
        }
    }

    /// The bytes of an object in a format; `None` if it has none in protobuf.
    pub(crate) fn encode(object: &Value, format: Format) -> Option<Vec<u8>> {
        match format {
            Format::Json => Some(ordered_line(object, Order::of(object))),
            Format::Yaml => Some(yaml::encode(object).into_bytes()),
            Format::Protobuf => protobuf::encode(object),
        }
    }

    /// A text.
    pub(crate) fn text(code: u16, text: impl Into<String>) -> Self {
        Self::plain(code, text).header("x-content-type-options", "nosniff")
    }

    /// A text that browsers may take for anything.
    pub(crate) fn plain(code: u16, text: impl Into<String>) -> Self {
        Self::new(code, text.into().into_bytes()).typed("text/plain; charset=utf-8")
    }

    /// Nothing like that is served here. A text, not a `Status`: clients tell a missing API from a missing object by it.
    pub(crate) fn no_such_page() -> Self {
        Self::text(404, "404 page not found\n")
    }

    /// Too many requests run. A text, as kube-apiserver has it; clients come back after a second by the header.
    pub(crate) fn too_many_requests() -> Self {
        Self::text(429, "Too many requests, please try again later.\n").header(RETRY_AFTER.as_str(), "1")
    }

    /// The server is about to stop. A text, as kube-apiserver has it; clients come back after some seconds, on another connection.
    pub(crate) fn shutting_down() -> Self {
        Self::text(429, "The apiserver is shutting down, please try again later.\n")
            .header(RETRY_AFTER.as_str(), "5")
            .header("connection", "close")
    }

    /// Nothing but a code.
    pub(crate) fn empty(code: u16) -> Self {
        let mut reply = Self::new(code, Vec::new());
        reply.headers.clear();
        reply
    }

    pub(crate) fn failure(failure: &StatusError, format: Format) -> Self {
        let reply = Self::object(failure.code, &failure.status(), format);
        let reply = reply.warnings(failure.warnings());
        match failure.retry_after_seconds() {
            Some(seconds) => reply.header(RETRY_AFTER.as_str(), &seconds.to_string()),
            None => reply,
        }
    }

    pub(crate) fn code(&self) -> u16 {
        self.code.as_u16()
    }

    /// Says of what type the content is.
    #[must_use]
    pub(crate) fn typed(mut self, content_type: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(content_type) {
            self.headers.insert(CONTENT_TYPE, value);
        }
        self
    }

    /// Says that the content goes on as things happen, so that every piece of it must leave at once.
    #[must_use]
    pub(crate) fn live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// Says what the request belonged to.
    #[must_use]
    pub(crate) fn of_flow(mut self, flow: Option<Flow>) -> Self {
        if let Some(Flow { schema, level }) = flow {
            self.headers.insert(HeaderName::from_static("x-kubernetes-pf-flowschema-uid"), schema);
            self.headers.insert(HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid"), level);
        }
        self
    }

    /// Counts the request as running until its answer has been sent.
    #[must_use]
    pub(crate) fn until_sent(mut self, permit: Permit) -> Self {
        self.permit = permit;
        self
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            self.headers.append(name, value);
        }
        self
    }

    /// Tells the client something although all went well.
    #[must_use]
    pub(crate) fn warning(mut self, text: &str) -> Self {
        self.warnings.push(text.to_owned());
        self
    }

    /// Tells the client several things although all went well.
    #[must_use]
    pub(crate) fn warnings(mut self, texts: &[String]) -> Self {
        self.warnings.extend_from_slice(texts);
        self
    }

    /// Tells the client something before everything else it is told.
    #[must_use]
    pub(crate) fn warning_first(mut self, text: &str) -> Self {
        self.warnings.insert(0, text.to_owned());
        self
    }

    /// A document, or word that the client has it already.
    pub(crate) fn document(document: Arc<Document>, request: &HeaderMap) -> Self {
        let tag = document.tag();
        let mut reply = match document.is_known(request) {
            true => Self::new(304, Vec::new()),
            false => Self::new(200, document),
        };
        reply.headers.insert(ETAG, tag);
        reply
    }

    pub(crate) fn into_response(self, audit: Option<HeaderValue>, pretty: bool, gzip: bool) -> Response {
        let Self { code, mut headers, warnings, content, is_live, permit } = self;
        if !warnings.is_empty() {
            headers.extend(sent(&warnings).iter().filter_map(|text| Some((WARNING, warning(text)?))));
        }
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        let mut audit = audit.or_else(|| HeaderValue::from_str(&crate::object::random::uid()).ok());
        if let Some(audit) = &mut audit {
            // No two answers have the same, so that HPACK had better not remember it: it would compare each with all that it remembers.
            audit.set_sensitive(true);
        }
        headers.extend(audit.map(|audit| (HeaderName::from_static("audit-id"), audit)));
        let mut is_compressed = false;
        let (body, is_long) = match content {
            Content::Upgrade(take_over) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = code;
                *response.headers_mut() = headers;
                response.extensions_mut().insert(Upgrade::new(move |stream| take_over(stream, permit)));
                return response;
            }
            Content::Document(document) => {
                let (body, compressed) = document.body(gzip);
                is_compressed = compressed;
                (body, compressed)
            }
            // Only long lists are streams.
            Content::Body(body) => {
                let is_long =
                    http_body::Body::size_hint(&body).exact().is_none_or(|size| size > THRESHOLD as u64);
                let body = if pretty && !is_live && is_json(&headers) { indent::body(body) } else { body };
                (body, is_long)
            }
            Content::Bytes(bytes) => {
                let bytes = if pretty && is_json(&headers) { indent::whole(bytes) } else { bytes };
                let is_long = bytes.len() > THRESHOLD;
                (Body::whole(bytes), is_long)
            }
        };
        let body = if gzip && is_long && !is_live {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            if !headers.get_all(VARY).iter().any(|vary| vary == "Accept-Encoding") {
                headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
            }
            if is_compressed { body } else { gzip::compress(body) }
        } else {
            body
        };
        let body = if permit.counts() { body.with(permit) } else { body };
        let mut response = Response::new(body);
        *response.status_mut() = code;
        *response.headers_mut() = headers;
        response
    }
}

/// What a [`Reply`] is made of.
pub(crate) struct ReplyContent(Content);

impl<T: Into<Content>> From<T> for ReplyContent {
    fn from(content: T) -> Self {
        Self(content.into())
    }
}

fn ordered_line(value: &Value, order: &Order) -> Vec<u8> {
    let mut json = Vec::with_capacity(128);
    order.write(value, &mut json);
    json.push(b'\n');
    json
}

fn json_line(value: &impl serde::Serialize) -> Vec<u8> {
    // Writing to a vector cannot fail: there is no I/O, and all keys are strings.
    let mut json = serde_json::to_vec(value).unwrap_or_default();
    json.push(b'\n');
    json
}

/// The warnings that are sent: each once, the first of many; if they are too long together, each is cut, and as many are sent as fit.
fn sent(warnings: &[String]) -> Vec<String> {
    let mut known = HashSet::from([""]);
    let distinct = warnings.iter().map(String::as_str).filter(|text| known.insert(text));
    let distinct: Vec<&str> = distinct.take(MOST_WARNINGS).collect();
    let length: usize = distinct.iter().map(|text| text.chars().count()).sum();
    if length <= WARNINGS.0 {
        return distinct.into_iter().map(str::to_owned).collect();
    }
    let mut written = 0;
    let cut = distinct.into_iter().map(|text| text.chars().take(WARNINGS.1).collect::<String>());
    cut.take_while(|text| {
        let is_room = written < WARNINGS.0;
        written += text.chars().count();
        is_room
    })
    .collect()
}

/// A warning as a header.
fn warning(text: &str) -> Option<HeaderValue> {
    let quoted: String = text.chars().filter(|char| !char.is_control()).collect();
    let quoted = quoted.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_str(&format!("299 - \"{quoted}\"")).ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}
