use std::collections::BTreeMap;

use super::{AiProviderKey, GatewayStatus};

/// The keys of clients, the models and tools that they may call, and the limits of use.
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
    /// The AIGatewayConfigs of the same namespace that the policy is for. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// The keys of clients. `watchkeeper gateway key` makes one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub keys: Vec<VirtualKey>,
    /// The models that the keys may call; `gpt-*` are all models whose names begin with `gpt-`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub models: Vec<String>,
    /// The tools of McpRoutes that the keys may see and call, by the names that clients see; `weather__*` are all tools of a server. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub tools: Vec<String>,
    /// The limits of use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub limits: Vec<LlmLimit>,
    /// The checks of requests and answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub guardrails: Vec<Guardrail>,
    /// The cache of answers. A request gets a cached answer if it is equal to an earlier one, byte by byte. Default: no cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<LlmCache>,
    /// The content of requests and answers that is kept in the records of calls. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_log: Option<LlmContentLog>,
    /// Whether running streams are cut when their key is revoked. New requests are refused at once in any case.
    #[serde(default)]
    pub cut_streams: bool,
}

/// A cache of answers in the memory of each gateway. All keys of the policy share it, and no other key uses it. An edit of the policy or of the model
/// clears it. A client that sends `cache-control: no-cache` gets no cached answer.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct LlmCache {
    /// The time for which an answer is kept.
    pub ttl: String,
    /// The maximum size of all answers in bytes; the oldest are dropped first, and an answer of more than an eighth of it is not kept. Default: 16 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 1073741824))]
    pub max_bytes: Option<i64>,
}

/// A key of a client.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct VirtualKey {
    /// The name of the key's owner in records and metrics.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The SHA-256 of the key, as 64 hexadecimal digits. The key itself is not stored.
    pub sha256: String,
    /// The models that the key may call, of those that the policy allows. Default: all of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub models: Vec<String>,
    /// The tools that the key may see and call, of those that the policy allows. Default: all of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub tools: Vec<String>,
    /// The time until which the key is valid: `2027-01-01T00:00:00Z`. Default: no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Whether the key is suspended: it is refused.
    #[serde(default)]
    pub suspended: bool,
}

/// A limit of use in a period; calls above it are answered with 429. Before a call, its prompt and its largest possible answer are reserved; after it, only
/// the actual use counts.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct LlmLimit {
    /// The period. Periods are those of the calendar, in UTC.
    pub per: LlmPeriod,
    /// The keys that share the limit. Default: `Key`.
    #[serde(default)]
    pub by: LlmLimitBy,
    /// The maximum number of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub requests: Option<i64>,
    /// The maximum number of tokens, of prompts and answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub tokens: Option<i64>,
    /// The maximum cost, in the currency of the prices: `"25.00"`. Models without prices cannot be called then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// The period of a limit.
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

/// The keys that share a limit.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum LlmLimitBy {
    /// Each key has a limit of its own.
    #[default]
    Key,
    /// All keys of the policy share the limit.
    Policy,
}

/// The content of requests and answers that is kept in the records of calls, for all keys of the policy. It is kept nowhere else. E-mail addresses, numbers of
/// cards, accounts and telephones, keys and tokens are replaced by `[email]`, `[number]`, `[phone]`, `[account]` and `[key]`, unless `redaction` is `Off`.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct LlmContentLog {
    /// The content to keep: of requests, of answers, or of both. Default: both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub of: Vec<LlmContent>,
    /// Whether texts that look private are replaced. Default: `On`.
    #[serde(default)]
    pub redaction: LlmRedaction,
    /// Regular expressions. Their matches are replaced by `[redacted]`, even if `redaction` is `Off`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub redact: Vec<String>,
    /// The maximum number of bytes that are kept of a request, and of an answer. Default: 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 1048576))]
    pub max_bytes: Option<i64>,
}

/// The content of a call.
#[watchkeeper::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum LlmContent {
    /// The request of the client.
    Request,
    /// The answer of the model.
    Response,
}

/// Whether texts that look private are replaced.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum LlmRedaction {
    /// They are replaced.
    #[default]
    On,
    /// They are kept as they are.
    Off,
}

/// A check of texts: by a `pattern` or by a `webhook`.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct Guardrail {
    /// The name of the check. Clients whose texts are refused are told it.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The texts that are checked. Default: `Request`.
    #[serde(default)]
    pub on: GuardrailOn,
    /// A regular expression. A text is refused if it matches anywhere in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A service that decides whether a text may pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<GuardrailWebhook>,
}

/// A service that decides whether a text may pass. It gets a POST with JSON:
/// `{"guardrail": NAME, "on": "Request", "id": ID, "namespace": NAMESPACE, "key": KEY, "model": MODEL, "text": TEXT}`, and has to answer with code 200 and `{"allowed": true}` or
/// `{"allowed": false}`. For a stream, it is asked repeatedly about the text that has come since, with up to 4 KiB of the text before; no text is passed on before it is allowed.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct GuardrailWebhook {
    /// The URL of the service. Redirects are not followed.
    pub url: String,
    /// The key that is sent to the service, as `Authorization: Bearer KEY`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AiProviderKey>,
    /// Additional headers of requests to the service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A PEM file with the certificate authorities to trust. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// The timeout of a request, including the connection. Default: `2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The maximum number of bytes of text in one request. A longer text is a failure. Default: 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864))]
    pub max_bytes: Option<i64>,
    /// The fate of a text if the service does not answer in time, or with a code other than 200, or with other JSON. Default: `Fail`.
    #[serde(default)]
    pub failure_policy: GuardrailFailure,
}

/// The fate of a text that a webhook gives no decision about.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum GuardrailFailure {
    /// The text does not pass: the request is answered with 503, or the stream ends.
    #[default]
    Fail,
    /// The text passes.
    Ignore,
}

/// The texts that a guardrail checks.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum GuardrailOn {
    /// The texts of requests; a request that is refused is answered with 400.
    #[default]
    Request,
    /// The texts of answers; one that is refused is replaced by a 400, and a stream ends with an error before the text is sent.
    Response,
}
