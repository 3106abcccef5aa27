use std::collections::BTreeMap;

use super::{AiProviderKey, GatewayStatus};

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
    /// The tools of McpRoutes that its keys may see and call, by the names that clients see; `weather__*` are all of a server. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub tools: Vec<String>,
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
    /// What of requests and answers is kept in the records of calls. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_log: Option<LlmContentLog>,
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
    /// The tools that it may see and call, of those that the policy allows. Default: all of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub tools: Vec<String>,
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
    /// So much money, in the currency of prices: `"25.00"`. Models without prices cannot be called then.
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

/// What of requests and answers is kept in the records of calls, for all keys of the policy: nothing of it is anywhere else. Addresses of e-mail, numbers of
/// cards, accounts and telephones, keys and tokens are replaced by `[email]`, `[number]`, `[phone]`, `[account]` and `[key]`, unless `redaction` is `Off`.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct LlmContentLog {
    /// Which of both. Default: both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub of: Vec<LlmContent>,
    /// Whether what looks private is replaced. Default: `On`.
    #[serde(default)]
    pub redaction: LlmRedaction,
    /// Regular expressions whose matches are replaced by `[redacted]` besides, also where `redaction` is `Off`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub redact: Vec<String>,
    /// How many bytes of a request, and of an answer, are kept. Default: 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 1048576))]
    pub max_bytes: Option<i64>,
}

/// What may be kept of a call.
#[watchkeeper::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum LlmContent {
    /// What the client sent.
    Request,
    /// What the model said.
    Response,
}

/// Whether what looks private is replaced.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum LlmRedaction {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

/// Something that is looked for: by a `pattern`, or by a `webhook` that is asked.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A service that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<GuardrailWebhook>,
}

/// A service that is asked whether a text may pass. It gets a POST with JSON:
/// `{"guardrail": NAME, "on": "Request", "id": ID, "namespace": NAMESPACE, "key": KEY, "model": MODEL, "text": TEXT}`, and has to answer with code 200 and `{"allowed": true}` or
/// `{"allowed": false}`. Of a stream, it is asked again and again for what came meanwhile, with up to 4 KiB of what came before; nothing leaves before it has said yes.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct GuardrailWebhook {
    /// Where it is. Redirections are not followed.
    pub url: String,
    /// The key that it gets, as `Authorization: Bearer KEY`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AiProviderKey>,
    /// Headers that it gets besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A file with the authorities that are believed, in PEM. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// How long it may take, with the connection. Default: `2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How many bytes of text it is asked about at once. What is longer is a failure. Default: 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864))]
    pub max_bytes: Option<i64>,
    /// What becomes of a text if there is no answer in time, another code than 200, or an answer that is something else. Default: `Fail`.
    #[serde(default)]
    pub failure_policy: GuardrailFailure,
}

/// What becomes of a text that a webhook does not judge.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum GuardrailFailure {
    /// It does not pass: 503, or the end of the stream.
    #[default]
    Fail,
    /// It passes.
    Ignore,
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
