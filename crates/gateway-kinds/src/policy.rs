use super::GatewayStatus;

/// The conditions for requests: addresses, credentials, rates, and an OpenAPI document.
///
/// A request has to satisfy all policies of its listener, its namespace and its route, in this order, and within one policy everything
/// that is given: addresses first, then credentials, then rates.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "GatewayPolicy",
    plural = "gatewaypolicies",
    shortname = "gwp",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct GatewayPolicySpec {
    /// The listeners, routes or namespaces that the policy applies to.
    #[schemars(length(min = 1, max = 64))]
    pub targets: Vec<PolicyTarget>,
    /// Addresses of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressPolicy>,
    /// Keys of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_keys: Option<ApiKeyPolicy>,
    /// Users with passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicPolicy>,
    /// Tokens of an issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<JwtPolicy>,
    /// The rate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RatePolicy>,
    /// The validation of requests against an OpenAPI document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openapi: Option<OpenApiPolicy>,
}

/// The validation of requests against an OpenAPI document (3.0 or 3.1): one of `document` and `documentFile`.
///
/// Paths, methods, parameters in path, query and headers, content types, and JSON bodies are checked; formats, cookies, parameters that
/// are lists or objects, and responses are not. A request that is invalid is answered with 404, 405, 415 or 400.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct OpenApiPolicy {
    /// The document, as YAML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1048576))]
    pub document: Option<String>,
    /// A file with the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_file: Option<String>,
    /// The prefix of request paths that is not in the document, such as `/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Whether requests for paths and methods that are not in the document are allowed. Default: false.
    #[serde(default)]
    pub allow_unknown: bool,
    /// The maximum size in bytes of a body that is checked: it is read before the request is sent on. Larger ones are answered with 413. Default: 1048576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16777216))]
    pub max_body_bytes: Option<i64>,
}

/// A target of a policy, in the namespace of the policy.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct PolicyTarget {
    /// The kind of the target.
    pub kind: PolicyTargetKind,
    /// The name of the listener or of the route. Not for `Namespace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The kind of a policy's target.
#[watchkeeper::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum PolicyTargetKind {
    /// All requests that a listener serves.
    Listener,
    /// All requests that a route serves.
    Route,
    /// All requests that routes of the policy's namespace serve.
    Namespace,
}

/// Addresses of clients; requests from others are answered with 403.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct AddressPolicy {
    /// The addresses or networks that may send requests. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The addresses or networks that may not send requests, even if they are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// Keys of clients; requests without one of them are answered with 401.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ApiKeyPolicy {
    /// The header with the key. It is not passed on to backends. Default: `x-api-key`.
    #[serde(default = "key_header")]
    pub header: String,
    /// The keys.
    #[schemars(length(max = 10000))]
    pub keys: Vec<ApiKey>,
}

fn key_header() -> String {
    "x-api-key".to_owned()
}

/// A key of a client.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ApiKey {
    /// The name of the key's owner. Backends get it in the header `x-consumer`.
    pub name: String,
    /// The SHA-256 of the key, as 64 hexadecimal digits.
    pub sha256: String,
}

/// Users with passwords (HTTP basic authentication); others are answered with 401.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BasicPolicy {
    /// The realm, which browsers may show. Default: `gateway`.
    #[serde(default = "realm")]
    pub realm: String,
    /// The users.
    #[schemars(length(max = 10000))]
    pub users: Vec<BasicUser>,
}

fn realm() -> String {
    "gateway".to_owned()
}

/// A user.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BasicUser {
    /// The name. Backends get it in the header `x-consumer`.
    pub name: String,
    /// The password, as `watchkeeper gateway password` prints it: `pbkdf2-sha256$ITERATIONS$SALT$HASH`.
    pub password: String,
}

/// JSON Web Tokens of an issuer, in `Authorization: Bearer`; requests without a valid one are answered with 401.
///
/// Signatures are RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA. `exp` and `nbf` are checked with a tolerance of a minute.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct JwtPolicy {
    /// The value that `iss` must have. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The audiences, one of which must be in `aud`. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// The keys of the issuer, as a JSON Web Key Set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<String>,
    /// A file with the JSON Web Key Set, read again when it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_file: Option<String>,
    /// The URL of the JSON Web Key Set, read again every five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
}

/// A rate limit; requests above it are answered with 429.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct RatePolicy {
    /// The number of requests in the time of `per`.
    #[schemars(range(min = 1))]
    pub requests: i64,
    /// The time in which `requests` are allowed. Default: `1s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The maximum number of requests at once. Default: `requests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst: Option<i64>,
    /// The requests that share a limit.
    #[serde(default)]
    pub by: RateKey,
    /// For `Header`: the name of the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// The requests that share a limit.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum RateKey {
    /// Requests from the same address.
    #[default]
    Address,
    /// Requests with the same credential; requests without one share a limit by address.
    Consumer,
    /// Requests with the same value of a header.
    Header,
    /// All requests.
    All,
}
