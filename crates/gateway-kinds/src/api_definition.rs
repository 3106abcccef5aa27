use super::GatewayStatus;

/// An API in its life: who may find it, who may use it, and until when.
///
/// It is about routes that exist. A route that no ApiDefinition names is served as ever.
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
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The GatewayRoutes of the same namespace that serve it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub routes: Vec<String>,
    /// The AIGatewayConfigs of the same namespace that serve it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub gateways: Vec<String>,
    /// Where it is in its life. Default: `Draft`.
    #[serde(default)]
    pub state: ApiState,
    /// For `Deprecated`: since when, as `2027-01-01T00:00:00Z`; told in the header `Deprecation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// For `Deprecated`: until when it is served; told in the header `Sunset`. It is not retired by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<String>,
    /// For `Deprecated` and `Retired`: the URL of what takes its place; told in the header `Link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// Who may use it. Default: `Open`.
    #[serde(default)]
    pub subscription: ApiSubscriptions,
    /// Whether streams of models that run are cut when their subscription is revoked. New requests are refused at once in any case.
    #[serde(default)]
    pub cut_streams: bool,
}

/// Where an API is in its life.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ApiState {
    /// Nobody is served: 404.
    #[default]
    Draft,
    /// It is served.
    Published,
    /// It is served, and responses say that it will not be for long.
    Deprecated,
    /// Nobody is served any more: 410.
    Retired,
}

/// Who may use an API.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ApiSubscriptions {
    /// Everybody, as far as policies allow it.
    #[default]
    Open,
    /// Those with a key of an ApiSubscription. All subscriptions are good at once.
    Automatic,
    /// Those with a key of an ApiSubscription whose status has the condition `Approved`.
    Approved,
}
