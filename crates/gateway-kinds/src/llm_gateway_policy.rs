use super::GatewayStatus;

/// Who may call which models, and how much.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "LLMGatewayPolicy",
    plural = "llmgatewaypolicies",
    shortname = "llmp",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct LLMGatewayPolicySpec {
    /// The AIGatewayConfigs of its namespace that it is for. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// The keys of clients. `watchkeeper gateway key` makes one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub keys: Vec<VirtualKey>,
    /// The models that its keys may call; `gpt-*` are all whose names begin so. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub models: Vec<String>,
    /// How much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub limits: Vec<LlmLimit>,
    /// What is looked for in requests and answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub guardrails: Vec<Guardrail>,
    /// Whether the answer to a request is kept for those who ask the same, byte by byte. Default: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<LlmCache>,
    /// Whether streams that run are cut when their key is revoked. New requests are refused at once in any case.
    #[serde(default)]
    pub cut_streams: bool,
}

/// Which answers are kept, in the memory of each gateway. All keys of the policy share them, and nobody else gets them. An edit of the policy or of the model
/// forgets them. A client that sends `cache-control: no-cache` gets none of them.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct LlmCache {
    /// For how long.
    pub ttl: String,
    /// How many bytes all of them may have; the oldest go first, and an answer of more than an eighth of it is not kept. Default: 16 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 1073741824))]
    pub max_bytes: Option<i64>,
}

/// A key of a client.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct VirtualKey {
    /// Whose key it is, as records and metrics tell it.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The SHA-256 of the key, as 64 hexadecimal digits. The key itself is nowhere.
    pub sha256: String,
    /// The models that it may call, of those that the policy allows. Default: all of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub models: Vec<String>,
    /// Until when it can be used: `2027-01-01T00:00:00Z`. Default: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Whether it is suspended: refused, but kept.
    #[serde(default)]
    pub suspended: bool,
}

/// So much in so long: 429 for more. Before a call, the prompt and the largest answer are reserved; after it, what was really used takes the place of that.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct LlmLimit {
    /// In how long. Periods are those of the calendar, in UTC.
    pub per: LlmPeriod,
    /// Who shares it. Default: `Key`.
    #[serde(default)]
    pub by: LlmLimitBy,
    /// So many requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub requests: Option<i64>,
    /// So many tokens, of prompts and answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub tokens: Option<i64>,
    /// So much money, in the currency of prices: `"25.00"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// In how long.
#[watchkeeper::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum LlmPeriod {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A month.
    Month,
}

/// Who shares a limit.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum LlmLimitBy {
    /// Each key has its own.
    #[default]
    Key,
    /// All keys of the policy together.
    Policy,
}

/// Something that is looked for.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct Guardrail {
    /// What clients are told that met it.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Where it is looked for. Default: `Request`.
    #[serde(default)]
    pub on: GuardrailOn,
    /// A regular expression that is found anywhere in a text.
    pub pattern: String,
}

/// Where something is looked for.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum GuardrailOn {
    /// In the texts of requests: 400 if it is found.
    #[default]
    Request,
    /// In the texts of answers: 400 if it is found; a stream ends with an error before the text is sent.
    Response,
}
