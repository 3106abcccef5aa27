use super::{GatewayStatus, LlmLimit};

/// What all of a namespace may use together.
///
/// A namespace is a tenant: keys, models, prompts, subscriptions and records of one are nothing to another. This object adds what they share.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "Tenant",
    plural = "tenants",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Suspended", ".spec.suspended", "boolean"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct TenantSpec {
    /// How much all keys of the namespace may use together. `by` has no meaning here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub limits: Vec<LlmLimit>,
    /// Whether all calls of models of the namespace are refused: 403.
    #[serde(default)]
    pub suspended: bool,
    /// Whether streams that run are cut when it is suspended. New requests are refused at once in any case.
    #[serde(default)]
    pub cut_streams: bool,
}
