use std::collections::BTreeMap;

use super::GatewayStatus;

/// A route: the backends that requests are sent to, and the changes that are made to them.
///
/// # Which rule serves a request
///
/// Of all rules that match, the one with the most specific host (a name, then the longest wildcard, then none), the most specific path
/// (exact, then regular expression, then the longest prefix), a method, the most headers, the most query parameters; then the rule of
/// the oldest route, of the first route by namespace and name, and the first rule of that route.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "GatewayRoute",
    plural = "gatewayroutes",
    shortname = "gwr",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Hosts", ".spec.hosts"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct GatewayRouteSpec {
    /// The listeners that serve this route, as `name` or `namespace/name`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<String>,
    /// The hosts of requests: names, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The rules for requests.
    #[schemars(length(max = 64))]
    pub rules: Vec<RouteRule>,
}

/// A rule: the requests that match, and what is done with them.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteRule {
    /// The conditions for requests, one of which must be met. Default: all requests match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub matches: Vec<RouteMatch>,
    /// The changes to requests and responses.
    #[serde(default)]
    pub filters: RouteFilters,
    /// The backends, each of which gets its share of the requests by weight. None are needed if a filter answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub backends: Vec<WeightedBackend>,
    /// The timeouts of requests.
    #[serde(default)]
    pub timeouts: RouteTimeouts,
    /// The retries of requests that fail. Default: one, if the connection to the backend could not be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RouteRetry>,
    /// The maximum size of a request body in bytes; larger ones are answered with 413. Default: that of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_body_bytes: Option<i64>,
}

/// A condition for requests: all fields must match.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteMatch {
    /// The path. Default: every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,
    /// The method, such as `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The headers that a request must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub headers: Vec<FieldMatch>,
    /// The query parameters that a request must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub query: Vec<FieldMatch>,
}

/// A condition for the path: one of `prefix`, `exact` and `regex`.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct PathMatch {
    /// This path and all paths below it: `/shop` matches `/shop`, `/shop/` and `/shop/cart`, but not `/shopping`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// This path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// A regular expression that must match the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// A condition for a header or a query parameter: `value`, or `regex`, or that it is present if neither is set.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct FieldMatch {
    /// The name.
    pub name: String,
    /// The exact value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// A regular expression that must match the whole value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// The changes to requests and responses, in the order of these fields.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteFilters {
    /// Cross-origin resource sharing (CORS): answers preflight requests of browsers, and adds the headers of CORS to responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<Cors>,
    /// Answers with a fixed response, without a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respond: Option<Respond>,
    /// Answers with a redirect, without a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Changes host and path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Changes headers of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<HeaderChanges>,
    /// Sends a copy of the request to another backend, whose response is ignored. Only requests with bodies of at most
    /// 64 KiB are copied, and only to backends with HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
    /// Changes headers of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_headers: Option<HeaderChanges>,
    /// Compresses responses for clients that accept gzip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compress>,
}

/// A fixed response.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct Respond {
    /// The status code. Default: 200.
    #[serde(default = "ok")]
    #[schemars(range(min = 200, max = 599))]
    pub status: i32,
    /// The body.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    pub body: String,
    /// The type of the body. Default: `text/plain; charset=utf-8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

fn ok() -> i32 {
    200
}

/// A redirect. Parts of the URL that are not set stay as in the request.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct Redirect {
    /// `http` or `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port. Default: that of the scheme, if a scheme is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChange>,
    /// 301, 302, 303, 307 or 308. Default: 302.
    #[serde(default = "found")]
    #[schemars(range(min = 301, max = 308))]
    pub status: i32,
}

fn found() -> i32 {
    302
}

/// A change of host and path.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Rewrite {
    /// The `Host` header for the backend. Default: that of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChange>,
}

/// A change of the path: one of `full` and `prefix`.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct PathChange {
    /// The path that replaces the path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<String>,
    /// The path that replaces the prefix that matched. Only for rules whose paths are all prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// Changes of headers: removed first, then set, then added.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HeaderChanges {
    /// Headers that are set: the value replaces all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Headers that are added: the value is sent with the existing ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Headers that are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// The cross-origin requests that browsers may send (CORS).
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Cors {
    /// Origins such as `https://example.com`; `https://*.example.com` are all hosts below it, `*` are all origins.
    pub origins: Vec<String>,
    /// Methods besides `GET`, `HEAD` and `POST`; `*` are all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Headers that may be sent; `*` are all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Headers of responses that may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose_headers: Vec<String>,
    /// Whether cookies and other credentials may be sent. Not with the origin `*`.
    #[serde(default)]
    pub credentials: bool,
    /// The time for which browsers may cache the answer to a preflight request. Default: `5s`, as in browsers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
}

/// The backend that gets copies of requests.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct Mirror {
    /// The backend.
    pub backend: String,
    /// The percentage of requests that are copied. Default: 100.
    #[serde(default = "all")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: i32,
}

fn all() -> i32 {
    100
}

/// The responses that are compressed.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Compress {
    /// The content types to compress. Default: text, JSON, JavaScript, XML and SVG. Event streams are never compressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The minimum size in bytes. Responses that are known to be smaller are not compressed. Default: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_bytes: Option<i64>,
}

/// A backend and its weight.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct WeightedBackend {
    /// The name of the GatewayBackend.
    pub name: String,
    /// The weight, relative to the other backends. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000000))]
    pub weight: i32,
}

fn one() -> i32 {
    1
}

/// The timeouts of requests. `0s` is no timeout.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteTimeouts {
    /// The timeout from the headers of the request to the headers of the response, over all attempts; 504 after it. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The timeout of one attempt, from the headers of the request to the headers of the response. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// The time after which a response, or a connection after an upgrade, is cut if no bytes come. Default: `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
}

/// The retries of requests that fail.
///
/// A request is retried if its method is idempotent, and if nothing of its body was sent or the whole body is at most 64 KiB. Of
/// all requests to a backend, no more than a fifth (and ten per second) are retried, so that retries do not overload a failing backend.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct RouteRetry {
    /// The maximum number of retries.
    #[schemars(range(min = 0, max = 10))]
    pub attempts: i32,
    /// The status codes that are retried. Default: 502, 503, 504. Broken connections and timeouts of an attempt are always retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<i32>,
    /// Whether requests with methods that are not idempotent, such as `POST`, are retried. Default: false.
    #[serde(default)]
    pub non_idempotent: bool,
    /// The delay before the first retry; it doubles with each retry. Default: `25ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}
