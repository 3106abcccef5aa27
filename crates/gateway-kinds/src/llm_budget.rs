/// The leases of gateways on the budgets of a policy or a tenant. Gateways with `--share-budgets` write this object; it is not meant to be edited.
///
/// A gateway spends no more of a limit than it has leased here, and all gateways together lease no more than the limit. If this object is deleted, the limits
/// start anew.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "LLMBudget",
    plural = "llmbudgets",
    category = "gateway",
    namespaced,
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct LLMBudgetSpec {
    /// The leases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<BudgetLease>,
}

/// A lease on one budget.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BudgetLease {
    /// The name of the key; empty for all keys together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The length of the period: Minute, Hour, Day or Month.
    pub per: String,
    /// The number of the period, counted from 1970; months are counted from the year 0.
    pub period: i64,
    /// The unit: Requests, Tokens or Money.
    pub unit: String,
    /// The amount; of money, in billionths.
    pub leased: i64,
}
