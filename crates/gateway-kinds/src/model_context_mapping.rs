use super::GatewayStatus;

/// A model that clients can call, and the providers that serve it.
///
/// It maps requests and responses between clients and providers. It has nothing to do with the Model Context Protocol (MCP) of agents and tools.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "ModelContextMapping",
    plural = "modelcontextmappings",
    shortname = "mcm",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Model", ".spec.model"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct ModelContextMappingSpec {
    /// The name by which clients call the model.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// The targets that serve the model.
    #[schemars(length(min = 1, max = 32))]
    pub targets: Vec<ModelTarget>,
    /// The choice among targets of the same priority.
    #[serde(default)]
    pub split: ModelSplit,
    /// The prices of the model. Without prices, calls of keys whose cost is limited are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
    /// A jq expression that changes requests after their translation for the provider: `.temperature = 0 | del(.user)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub request: Option<String>,
    /// A jq expression that changes answers of the provider before their translation. It does not apply to streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub response: Option<String>,
    /// The maximum number of tokens of an answer, for requests that set none: this many are reserved of budgets. Default: 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000000))]
    pub max_output_tokens: Option<i64>,
}

/// A provider that serves a model.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ModelTarget {
    /// A provider of the AIGatewayConfig.
    pub provider: String,
    /// The name of the model at the provider. Default: the name in `spec.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The weight among the targets of the same priority. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000000))]
    pub weight: i32,
    /// The priority. Targets with a larger number are asked when those with smaller ones fail. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub priority: i32,
}

fn one() -> i32 {
    1
}

/// The choice among targets of the same priority.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct ModelSplit {
    /// The way in which the target is chosen.
    #[serde(default)]
    pub by: ModelSplitBy,
    /// For `Header`: the name of the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// The way in which a target is chosen.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ModelSplitBy {
    /// At random, by weight.
    #[default]
    Random,
    /// Always the same for the same key of a client, by weight over all keys.
    Key,
    /// Always the same for the same value of a header, by weight over all values.
    Header,
}

/// The prices of a million tokens, as decimal numbers such as `"2.50"`, all in one currency.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ModelPrices {
    /// The price of tokens of the prompt.
    pub input: String,
    /// The price of tokens of the answer.
    pub output: String,
    /// The price of tokens of the prompt that are read from a cache of the provider. Default: that of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<String>,
    /// The price of tokens of the prompt that are written to a cache of the provider. Default: that of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<String>,
}
