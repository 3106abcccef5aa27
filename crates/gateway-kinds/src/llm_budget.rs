/// What gateways have leased of the budgets of a policy or a tenant. They write it themselves, with `--share-budgets`; there is nothing in it to edit.
///
/// A gateway spends no more of a limit than it has leased here, and all together lease no more than the limit. Who deletes it, forgets what was spent.
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
    /// What is leased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<BudgetLease>,
}

/// What is leased of one budget.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BudgetLease {
    /// The name of the key; none for all keys together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// In how long: Minute, Hour, Day or Month.
    pub per: String,
    /// In which period of this length, counted from 1970; months from the year 0.
    pub period: i64,
    /// Of what: Requests, Tokens or Money.
    pub unit: String,
    /// How much; of money, in billionths.
    pub leased: i64,
}
