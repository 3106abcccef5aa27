use super::GatewayStatus;

/// A request to use an API, and the keys to use it with.
///
/// Where the ApiDefinition wants it, the keys work as soon as the status has the condition `Approved`, which whoever approves writes, and stop working
/// as soon as it is gone or `False`.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "ApiSubscription",
    plural = "apisubscriptions",
    shortname = "apisub",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Api", ".spec.api"),
    printcolumn("Consumer", ".spec.consumer"),
    printcolumn("Approved", ".status.conditions[?(@.type=='Approved')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct ApiSubscriptionSpec {
    /// The ApiDefinition of the same namespace.
    pub api: String,
    /// Who asks. Backends get it as `x-consumer`.
    #[schemars(length(min = 1, max = 128))]
    pub consumer: String,
    /// The SHA-256 of each key, as 64 hexadecimal digits. `watchkeeper gateway key` makes one. Clients send the key as `Authorization: Bearer KEY` or `x-api-key: KEY`.
    #[schemars(length(min = 1, max = 32))]
    pub keys: Vec<String>,
    /// Whether it is suspended: refused, but kept.
    #[serde(default)]
    pub suspended: bool,
}
