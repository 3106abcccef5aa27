use super::GatewayStatus;

/// Who may send requests, and how many.
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
    /// What it is for.
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
    /// How many requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RatePolicy>,
    /// What requests may be, by an OpenAPI document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openapi: Option<OpenApiPolicy>,
}

/// Requests have to be as an OpenAPI document (3.0 or 3.1) says: one of `document` and `documentFile`.
///
/// Paths, methods, parameters of path, query and header, types of content, and bodies of JSON are checked; formats, cookies, parameters that
/// are lists or objects, and responses are not. 404, 405, 415 or 400 says what is wrong.
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
    /// What paths of requests have before those of the document, such as `/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Whether paths and methods that the document does not have are let through. Default: no.
    #[serde(default)]
    pub allow_unknown: bool,
    /// Bytes of bodies that are checked, and so read before they are sent on; 413 for more. Default: 1048576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16777216))]
    pub max_body_bytes: Option<i64>,
}

/// What a policy is for: objects of its namespace.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct PolicyTarget {
    /// What kind of thing.
    pub kind: PolicyTargetKind,
    /// The name of the listener or of the route. Not for `Namespace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a policy can be for.
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

/// Addresses of clients: 403 for others.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct AddressPolicy {
    /// Addresses or networks that may send requests. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Addresses or networks that may not, even if they are among those that may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// Keys of clients: 401 without one of them.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ApiKeyPolicy {
    /// The header that has the key. Default: `x-api-key`. Backends do not get it.
    #[serde(default = "key_header")]
    pub header: String,
    /// The keys.
    #[schemars(length(max = 10000))]
    pub keys: Vec<ApiKey>,
}

fn key_header() -> String {
    "x-api-key".to_owned()
}

/// A key.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ApiKey {
    /// Whose key it is. Backends get it as `x-consumer`.
    pub name: String,
    /// The SHA-256 of the key, as 64 hexadecimal digits.
    pub sha256: String,
}

/// Users with passwords: 401 for others.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BasicPolicy {
    /// What browsers show. Default: `gateway`.
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
    /// The name. Backends get it as `x-consumer`.
    pub name: String,
    /// The password, as `watchkeeper gateway password` prints it: `pbkdf2-sha256$ITERATIONS$SALT$HASH`.
    pub password: String,
}

/// Tokens of an issuer, in `Authorization: Bearer`: 401 for others.
///
/// Signatures are RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA. `exp` and `nbf` are looked at, with a minute of tolerance.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct JwtPolicy {
    /// What `iss` has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// One of these has to be in `aud`. Default: anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// The keys of the issuer, as a JSON Web Key Set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<String>,
    /// A file with them, read again when it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_file: Option<String>,
    /// A URL with them, read again every five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
}

/// How many requests: 429 for more.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct RatePolicy {
    /// So many requests.
    #[schemars(range(min = 1))]
    pub requests: i64,
    /// In so long. Default: `1s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// So many at once. Default: `requests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst: Option<i64>,
    /// Who shares a limit.
    #[serde(default)]
    pub by: RateKey,
    /// For `Header`: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// Who shares a limit.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum RateKey {
    /// Everybody at one address.
    #[default]
    Address,
    /// Everybody with the same credential; without one, everybody at one address.
    Consumer,
    /// Everybody with the same value of a header.
    Header,
    /// Everybody.
    All,
}
