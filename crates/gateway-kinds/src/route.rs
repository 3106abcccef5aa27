use std::collections::BTreeMap;

use super::GatewayStatus;

/// Which requests go where.
///
/// # Which rule serves a request
///
/// Of all rules that match, the one with: the most specific host (a name, then the longest wildcard, then none), the most specific path
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
    /// What is done with requests.
    #[schemars(length(max = 64))]
    pub rules: Vec<RouteRule>,
}

/// What is done with the requests that match.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteRule {
    /// Which requests: those that one of these matches. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub matches: Vec<RouteMatch>,
    /// What is done with a request on its way, and with its response.
    #[serde(default)]
    pub filters: RouteFilters,
    /// Where requests go: each backend gets its share of them by weight. None are needed if a filter answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub backends: Vec<WeightedBackend>,
    /// How long things may take.
    #[serde(default)]
    pub timeouts: RouteTimeouts,
    /// When to try another time. Default: once more if the connection to the backend could not be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RouteRetry>,
    /// Bytes that a request may carry; 413 for more. Default: that of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_body_bytes: Option<i64>,
}

/// Which requests: those that all of this is true for.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteMatch {
    /// The path. Default: every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,
    /// The method, such as `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers that have to be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub headers: Vec<FieldMatch>,
    /// Parameters of the query that have to be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub query: Vec<FieldMatch>,
}

/// A path: one of `prefix`, `exact` and `regex`.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct PathMatch {
    /// This path and all paths below it: `/shop` is for `/shop`, `/shop/` and `/shop/cart`, and not for `/shopping`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// This path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// All paths that this regular expression matches as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// A header or a parameter, with `value`, or matching `regex`, or with any value if there is neither.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct FieldMatch {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// A regular expression that matches its value as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// What is done with requests on their way, and with their responses, in the order of these fields.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteFilters {
    /// Answers requests of browsers that ask whether they may send others (CORS), and says in responses who may read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<Cors>,
    /// Answers with this, without any backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respond: Option<Respond>,
    /// Answers with a redirect, without any backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Changes host and path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Changes headers of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<HeaderChanges>,
    /// Sends a copy of the request to another backend, whose response is ignored. Only requests whose body is at most
    /// 64 KiB, and only to backends that speak HTTP/1.1.
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

/// A redirect. What is not given stays as the client asked.
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

/// Another host and path for a request.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Rewrite {
    /// The `Host` that the backend gets. Default: that of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChange>,
}

/// Another path: one of `full` and `prefix`.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct PathChange {
    /// This path instead of that of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<String>,
    /// This instead of the prefix that matched. Only for rules whose paths are all prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// Changes of headers: removed first, then set, then added.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HeaderChanges {
    /// Headers with the only value that they are to have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Headers with a value that they are to have besides others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Headers that are to be gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Who may read responses in a browser, and send what.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Cors {
    /// Origins such as `https://example.com`; `https://*.example.com` are all below it, `*` is everybody.
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
    /// How long a browser may remember this. Default: `5s`, as browsers do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
}

/// Where copies of requests go.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct Mirror {
    /// The backend.
    pub backend: String,
    /// How many of a hundred requests. Default: all.
    #[serde(default = "all")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: i32,
}

fn all() -> i32 {
    100
}

/// Which responses are compressed.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Compress {
    /// Types of content. Default: text, JSON, JavaScript, XML and SVG. Streams of events are never compressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Responses that are known to be smaller are not compressed. Default: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_bytes: Option<i64>,
}

/// A backend and its share.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct WeightedBackend {
    /// The GatewayBackend.
    pub name: String,
    /// Its share, compared to that of the others. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000000))]
    pub weight: i32,
}

fn one() -> i32 {
    1
}

/// How long things may take. `0s` is for ever.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteTimeouts {
    /// From the head of the request to the head of the response, over all tries; 504 after it. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The same for one try. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// How long a response, or a connection after an upgrade, may be silent before it is cut. Default: `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
}

/// When to try another time.
///
/// A request is sent again if its method is idempotent, and as long as nothing of its body was sent or all of it is at most 64 KiB. Of
/// all requests to a backend, no more than a fifth (and ten a second) are repeated, so that a backend in trouble is left alone.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct RouteRetry {
    /// How often to try again.
    #[schemars(range(min = 0, max = 10))]
    pub attempts: i32,
    /// Codes of responses that are tried again. Default: 502, 503, 504. Broken connections and time-outs of a try always are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<i32>,
    /// Whether to repeat requests whose method is not idempotent, such as `POST`.
    #[serde(default)]
    pub non_idempotent: bool,
    /// How long to wait before the first repetition; it doubles each time. Default: `25ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}
