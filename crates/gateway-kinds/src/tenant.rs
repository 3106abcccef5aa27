use super::{GatewayStatus, LlmLimit};

/// The limits that all keys of a namespace share.
///
/// A namespace is a tenant: its keys, models, prompts, subscriptions and records are separate from those of others. This object adds limits for the whole namespace.
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
    /// The limits that all keys of the namespace share. `by` has no meaning here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub limits: Vec<LlmLimit>,
    /// Whether all calls of models of the namespace are refused with 403.
    #[serde(default)]
    pub suspended: bool,
    /// Whether running streams are cut when the tenant is suspended. New requests are refused at once in any case.
    #[serde(default)]
    pub cut_streams: bool,
}
