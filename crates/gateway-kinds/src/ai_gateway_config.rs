use std::collections::BTreeMap;

use super::GatewayStatus;

/// One API for many models: which providers there are, and where clients find them.
///
/// Below `prefix`, clients may speak the dialects of OpenAI (`/v1/chat/completions`, `/v1/responses`, `/v1/embeddings`), Anthropic
/// (`/v1/messages`) and Gemini (`/v1beta/models/MODEL:generateContent`), whatever the provider of a model speaks. `/v1/models` lists the models that
/// the key of the client may call.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "AIGatewayConfig",
    plural = "aigatewayconfigs",
    shortname = "aigw",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct AIGatewayConfigSpec {
    /// The listeners that serve it, as `name` or `namespace/name`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<String>,
    /// The hosts of requests: names, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// What comes before the paths of the dialects. Default: `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Who may call models. Default: `Keys`.
    #[serde(default)]
    pub access: AiAccess,
    /// The providers.
    #[schemars(length(min = 1, max = 64))]
    pub providers: Vec<AiProvider>,
    /// How long things may take.
    #[serde(default)]
    pub timeouts: AiTimeouts,
    /// When to try again.
    #[serde(default)]
    pub retry: AiRetry,
    /// When a provider that fails is left out for a while (outlier ejection).
    #[serde(default)]
    pub health: AiHealth,
    /// Bytes that a request may carry; 413 for more. Default: 8 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864))]
    pub max_body_bytes: Option<i64>,
    /// How often a client that waits for the first token of a stream gets a comment, so that nobody in between closes the connection. From the first comment on,
    /// the status code is 200, and an error is told in the stream. Clients of Gemini get none: their library takes comments for answers. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<String>,
}

/// Who may call models.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum AiAccess {
    /// Clients with a key of an LLMGatewayPolicy.
    #[default]
    Keys,
    /// Everybody. A key that is sent is looked at nevertheless, and its limits count.
    Open,
}

/// A provider of models.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiProvider {
    /// The name that ModelContextMappings use.
    pub name: String,
    /// What it speaks.
    pub dialect: AiDialect,
    /// Where it is, without the path of the dialect. Default: that of the vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The key that the provider gets. Clients never see it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AiProviderKey>,
    /// Headers that the provider gets besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// For `OpenAI`: whether it serves `/v1/responses` itself. Otherwise these requests are translated. Default: false.
    #[serde(default)]
    pub responses: bool,
    /// For `OpenAI`: whether it is asked to say at the end of a stream what was used. What the client did not ask for is removed from the stream. Default: true.
    #[serde(default = "yes")]
    pub stream_usage: bool,
    /// A file with the authorities that are believed, in PEM. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// Requests at a time. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_requests: Option<i32>,
}

fn yes() -> bool {
    true
}

/// What a provider speaks.
#[watchkeeper::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum AiDialect {
    /// That of OpenAI, and of the many servers that are compatible.
    OpenAI,
    /// That of Anthropic.
    Anthropic,
    /// That of Gemini.
    Gemini,
}

/// Where the key of a provider is: `secretName`, or `file`.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiProviderKey {
    /// A Secret in the namespace of the object. In a cluster it has the type `gateway.watchkeeper.dev/provider-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The entry of the Secret. Default: `apiKey`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// A file with the key, read again when it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// How long things may take. `0s` is for ever.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct AiTimeouts {
    /// Until a connection is open. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<String>,
    /// From the request to the first token of a stream, or to all of an answer that is no stream, for one try. Default: `2m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<String>,
    /// From one piece of a stream to the next. Default: `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_tokens: Option<String>,
}

/// When to try again. Providers that could serve a model take turns: those of the same priority by weight, then those of the next.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiRetry {
    /// How often, over all providers. Default: 2.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 10))]
    pub attempts: i32,
    /// How long to wait before the same provider is asked again; it doubles each time. Default: `250ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}

impl Default for AiRetry {
    fn default() -> Self {
        Self { attempts: two(), backoff: None }
    }
}

fn two() -> i32 {
    2
}

/// When a provider that fails is left out for a while. Failures are broken connections, time-outs, and codes 429 and from 500.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiHealth {
    /// After how many failures in a row. Default: 5.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    pub failures: i32,
    /// For how long, the first time; each time in a row adds as much, up to ten times. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eject_for: Option<String>,
}

impl Default for AiHealth {
    fn default() -> Self {
        Self { failures: five(), eject_for: None }
    }
}

fn five() -> i32 {
    5
}
