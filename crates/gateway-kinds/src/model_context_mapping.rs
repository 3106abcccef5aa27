use super::GatewayStatus;

/// A model as clients know it, and who serves it.
///
/// It maps requests and responses between clients and providers. It is not about the Model Context Protocol (MCP) that agents and tools speak.
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
    /// Who serves it.
    #[schemars(length(min = 1, max = 32))]
    pub targets: Vec<ModelTarget>,
    /// Which target of a priority gets a request.
    #[serde(default)]
    pub split: ModelSplit,
    /// What it costs. Without prices, calls of keys whose cost is limited are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
    /// An expression of jq that changes requests after they were translated, as the provider gets them: `.temperature = 0 | del(.user)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub request: Option<String>,
    /// An expression of jq that changes answers as the provider gives them, before they are translated. Not for streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub response: Option<String>,
    /// How much the model writes at most if a request does not say: this much is reserved of budgets. Default: 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000000))]
    pub max_output_tokens: Option<i64>,
}

/// Who serves a model.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ModelTarget {
    /// A provider of the AIGatewayConfig.
    pub provider: String,
    /// The name of the model there. Default: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its share among the targets of the same priority. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000000))]
    pub weight: i32,
    /// Targets with a larger number are asked when those with smaller ones fail. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub priority: i32,
}

fn one() -> i32 {
    1
}

/// Which target of a priority gets a request.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct ModelSplit {
    /// How it is chosen.
    #[serde(default)]
    pub by: ModelSplitBy,
    /// For `Header`: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// How a target is chosen.
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

/// What a million tokens cost, as decimal numbers such as `"2.50"`, all in one currency.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ModelPrices {
    /// Of the prompt.
    pub input: String,
    /// Of what the model writes.
    pub output: String,
    /// Of the prompt, from a cache of the provider. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<String>,
    /// Of the prompt, written to a cache of the provider. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<String>,
}
