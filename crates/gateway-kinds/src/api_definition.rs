use super::GatewayStatus;

/// An API and its lifecycle: the routes that serve it, its state, and the clients that may use it.
///
/// A route that no ApiDefinition names is served without these rules.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "ApiDefinition",
    plural = "apidefinitions",
    shortname = "apidef",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("State", ".spec.state"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct ApiDefinitionSpec {
    /// The title of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The GatewayRoutes of the same namespace that serve the API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub routes: Vec<String>,
    /// The AIGatewayConfigs of the same namespace that serve the API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub gateways: Vec<String>,
    /// The state of the API in its lifecycle. Default: `Draft`.
    #[serde(default)]
    pub state: ApiState,
    /// For `Deprecated`: the time of the deprecation, as `2027-01-01T00:00:00Z`; sent to clients in the header `Deprecation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// For `Deprecated`: the time until which the API is served; sent to clients in the header `Sunset`. The API is not retired automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<String>,
    /// For `Deprecated` and `Retired`: the URL of the successor; sent to clients in the header `Link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The clients that may use the API. Default: `Open`.
    #[serde(default)]
    pub subscription: ApiSubscriptions,
    /// Whether running streams of models are cut when their subscription is revoked. New requests are refused at once in any case.
    #[serde(default)]
    pub cut_streams: bool,
}

/// The state of an API in its lifecycle.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ApiState {
    /// Not served yet: requests are answered with 404.
    #[default]
    Draft,
    /// Served.
    Published,
    /// Served; responses say that the API is deprecated.
    Deprecated,
    /// Not served any more: requests are answered with 410.
    Retired,
}

/// The clients that may use an API.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ApiSubscriptions {
    /// All clients, as far as policies allow it.
    #[default]
    Open,
    /// Clients with a key of an ApiSubscription. Subscriptions need no approval.
    Automatic,
    /// Clients with a key of an ApiSubscription whose status has the condition `Approved`.
    Approved,
}
