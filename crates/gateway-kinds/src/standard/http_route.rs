use watchkeeper::prelude::Condition;

/// Which requests go where.
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
    /// What is done with requests. Default: one rule for all of them, without a backend.
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

/// What is done with the requests that match.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteRule {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which requests: those that one of these matches. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub matches: Vec<HTTPRouteMatch>,
    /// What is done with requests on their way, and with their responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub filters: Vec<HTTPRouteFilter>,
    /// Where requests go, by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub backend_refs: Vec<HTTPBackendRef>,
    /// How long things may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<HTTPRouteTimeouts>,
    /// When to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<HTTPRouteRetry>,
}

/// Which requests: those that all of this is true for.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteMatch {
    /// The path. Default: every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<HTTPPathMatch>,
    /// Headers that have to be there. Of two with one name, the first counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub headers: Vec<HTTPValueMatch>,
    /// Parameters of the query that have to be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub query_params: Vec<HTTPValueMatch>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// A path.
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

/// A header or a parameter.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPValueMatch {
    /// `Exact` or `RegularExpression`. Default: `Exact`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
    /// Its value, or an expression that matches it.
    pub value: String,
}

/// Something that is done with requests, or their responses: the field that `type` names.
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
    /// Sends copies of requests elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_mirror: Option<HTTPRequestMirrorFilter>,
    /// Says who may read responses in a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<HTTPCORSFilter>,
}

/// Changes of headers.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPHeaderFilter {
    /// Headers with the only value that they are to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub set: Vec<HTTPHeader>,
    /// Headers with a value that they are to have besides others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub add: Vec<HTTPHeader>,
    /// Headers that are to be gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub remove: Vec<String>,
}

/// A header.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A redirect. What is not given stays as the client asked.
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

/// Another host and path for a request.
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

/// Another path.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPPathModifier {
    /// `ReplaceFullPath` or `ReplacePrefixMatch`.
    #[serde(rename = "type")]
    pub kind: String,
    /// This path instead of that of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_full_path: Option<String>,
    /// This instead of the prefix that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_prefix_match: Option<String>,
}

/// Where copies of requests go.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct HTTPRequestMirrorFilter {
    /// The Service.
    pub backend_ref: BackendRef,
    /// How many of a hundred requests. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i32>,
    /// How many of so many requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<Fraction>,
}

/// So many of so many.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct Fraction {
    /// How many.
    #[schemars(range(min = 0))]
    pub numerator: i32,
    /// Of how many. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub denominator: Option<i32>,
}

/// Who may read responses in a browser, and send what.
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
    /// How many seconds a browser may remember this. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_age: Option<i32>,
}

/// A Service and its share.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct HTTPBackendRef {
    /// The Service.
    #[serde(flatten)]
    pub backend: BackendRef,
    /// Its share, compared to that of the others. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000))]
    pub weight: Option<i32>,
    /// What is done with requests for this backend only. Not supported.
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

/// How long things may take. `0s` is for ever.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPRouteTimeouts {
    /// All of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// One try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_request: Option<String>,
}

/// When to try again.
#[watchkeeper::schema]
#[derive(Default, PartialEq, Eq)]
pub struct HTTPRouteRetry {
    /// Codes of responses that are tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<i32>,
    /// How often. Default: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// How long to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}

/// What became of a route.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct HTTPRouteStatus {
    /// What the gateways say that it names.
    #[serde(default)]
    pub parents: Vec<RouteParentStatus>,
}

/// What a gateway says of a route.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct RouteParentStatus {
    /// The gateway, as the route names it.
    pub parent_ref: ParentRef,
    /// Who says it.
    pub controller_name: String,
    /// `Accepted`: the gateway serves the route. `ResolvedRefs`: everything that it refers to is there.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
