use watchkeeper::prelude::Condition;

/// A route: the backends that requests are sent to, and the changes that are made to them.
#[watchkeeper::kind(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "HTTPRoute",
    plural = "httproutes",
    category = "gateway-api",
    namespaced,
    status = "HTTPRouteStatus",
    printcolumn("Hostnames", ".spec.hostnames"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(Default, PartialEq)]
pub struct HTTPRouteSpec {
    /// The gateways that serve the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub parent_refs: Vec<ParentRef>,
    /// The hosts of requests. Default: those of the listeners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub hostnames: Vec<String>,
    /// The rules for requests. Default: one rule for all of them, without a backend.
    #[serde(default = "one_rule")]
    #[schemars(length(max = 16))]
    pub rules: Vec<HTTPRouteRule>,
}

fn one_rule() -> Vec<HTTPRouteRule> {
    vec![HTTPRouteRule::default()]
}

/// A gateway, or one of its listeners.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct ParentRef {
    /// The API group. Default: that of Gateway API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind. Default: `Gateway`; others are not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace. Default: that of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The listener. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
    /// The port of listeners. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// A rule: the requests that match, and what is done with them.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteRule {
    /// A name for humans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The conditions for requests, one of which must be met. Default: all requests match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub matches: Vec<HTTPRouteMatch>,
    /// The changes to requests and responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub filters: Vec<HTTPRouteFilter>,
    /// The backends, each of which gets its share of the requests by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub backend_refs: Vec<HTTPBackendRef>,
    /// The timeouts of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<HTTPRouteTimeouts>,
    /// The retries of requests that fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<HTTPRouteRetry>,
}

/// A condition for requests: all fields must match.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteMatch {
    /// The path. Default: every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<HTTPPathMatch>,
    /// The headers that a request must have. Of two conditions with the same name, the first counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub headers: Vec<HTTPValueMatch>,
    /// The query parameters that a request must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub query_params: Vec<HTTPValueMatch>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// A condition for the path.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPPathMatch {
    /// `Exact`, `PathPrefix` or `RegularExpression`. Default: `PathPrefix`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The path. Default: `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A condition for a header or a query parameter.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPValueMatch {
    /// `Exact` or `RegularExpression`. Default: `Exact`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name.
    pub name: String,
    /// The value, or a regular expression.
    pub value: String,
}

/// A change to requests or responses: the one that `type` names.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteFilter {
    /// `RequestHeaderModifier`, `ResponseHeaderModifier`, `RequestRedirect`, `URLRewrite`, `RequestMirror` or `CORS`; others are not supported.
    #[serde(rename = "type")]
    pub kind: String,
    /// Changes headers of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_header_modifier: Option<HTTPHeaderFilter>,
    /// Changes headers of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_header_modifier: Option<HTTPHeaderFilter>,
    /// Answers with a redirect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_redirect: Option<HTTPRequestRedirectFilter>,
    /// Changes host and path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_rewrite: Option<HTTPURLRewriteFilter>,
    /// Sends copies of requests to another backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_mirror: Option<HTTPRequestMirrorFilter>,
    /// Cross-origin resource sharing (CORS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<HTTPCORSFilter>,
}

/// Changes of headers.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPHeaderFilter {
    /// Headers that are set: the value replaces all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub set: Vec<HTTPHeader>,
    /// Headers that are added: the value is sent with the existing ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub add: Vec<HTTPHeader>,
    /// Headers that are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub remove: Vec<String>,
}

/// A header.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPHeader {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// A redirect. Parts of the URL that are not set stay as in the request.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPRequestRedirectFilter {
    /// `http` or `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<HTTPPathModifier>,
    /// The port. Default: that of the scheme, or else that of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// 301, 302, 303, 307 or 308. Default: 302.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<i32>,
}

/// A change of host and path.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPURLRewriteFilter {
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<HTTPPathModifier>,
}

/// A change of the path.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPPathModifier {
    /// `ReplaceFullPath` or `ReplacePrefixMatch`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The path that replaces the path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_full_path: Option<String>,
    /// The path that replaces the prefix that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_prefix_match: Option<String>,
}

/// The backend that gets copies of requests.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPRequestMirrorFilter {
    /// The Service.
    pub backend_ref: BackendRef,
    /// The percentage of requests that are copied. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i32>,
    /// The fraction of requests that are copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<Fraction>,
}

/// A fraction.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct Fraction {
    /// The numerator.
    #[schemars(range(min = 0))]
    pub numerator: i32,
    /// The denominator. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub denominator: Option<i32>,
}

/// The cross-origin requests that browsers may send (CORS).
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPCORSFilter {
    /// Origins such as `https://example.com`, `https://*.example.com` or `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub allow_origins: Vec<String>,
    /// Whether credentials may be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_credentials: Option<bool>,
    /// Methods; `*` are all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub allow_methods: Vec<String>,
    /// Headers that may be sent; `*` are all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub allow_headers: Vec<String>,
    /// Headers of responses that may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub expose_headers: Vec<String>,
    /// The seconds for which browsers may cache the answer to a preflight request. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_age: Option<i32>,
}

/// A Service and its weight.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct HTTPBackendRef {
    /// The Service.
    #[serde(flatten)]
    pub backend: BackendRef,
    /// The weight, relative to the other backends. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000))]
    pub weight: Option<i32>,
    /// Changes to requests for this backend only. Not supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub filters: Vec<HTTPRouteFilter>,
}

/// A Service.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct BackendRef {
    /// The API group. Default: the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind. Default: `Service`; others are not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name.
    pub name: String,
    /// The namespace. Default: that of the route; others need a ReferenceGrant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The port of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// The timeouts of requests. `0s` is no timeout.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPRouteTimeouts {
    /// The timeout from the headers of the request to the headers of the response, over all attempts; 504 after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The timeout of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_request: Option<String>,
}

/// The retries of requests that fail.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPRouteRetry {
    /// The status codes that are retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<i32>,
    /// The maximum number of retries. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// The delay before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}

/// The status of a route.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteStatus {
    /// The status of the route at each gateway that it names.
    #[serde(default)]
    pub parents: Vec<RouteParentStatus>,
}

/// The status of a route at one gateway.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct RouteParentStatus {
    /// The gateway, as the route names it.
    pub parent_ref: ParentRef,
    /// The controller of the gateway.
    pub controller_name: String,
    /// `Accepted`: the gateway serves the route. `ResolvedRefs`: all objects that the route refers to exist.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
