use super::GatewayStatus;

/// A subscription to an API, with the keys of the client.
///
/// If the ApiDefinition demands approval, the keys work while the status has the condition `Approved` with the status `True`. The approver writes that
/// condition.
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
    /// The name of the client. Backends get it in the header `x-consumer`.
    #[schemars(length(min = 1, max = 128))]
    pub consumer: String,
    /// The SHA-256 of each key, as 64 hexadecimal digits. `watchkeeper gateway key` makes one. Clients send the key as `Authorization: Bearer KEY` or `x-api-key: KEY`.
    #[schemars(length(min = 1, max = 32))]
    pub keys: Vec<String>,
    /// Whether the subscription is suspended: its keys are refused.
    #[serde(default)]
    pub suspended: bool,
}
