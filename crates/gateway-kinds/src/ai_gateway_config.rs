use std::collections::BTreeMap;

use super::GatewayStatus;

/// An endpoint for models of several providers.
///
/// Below `prefix`, clients use the APIs of OpenAI (`/v1/chat/completions`, `/v1/responses`, `/v1/embeddings`), Anthropic
/// (`/v1/messages`) or Gemini (`/v1beta/models/MODEL:generateContent`), whatever the API of the provider is. `/v1/models` lists the models that
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
    /// The listeners that serve this endpoint, as `name` or `namespace/name`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<String>,
    /// The hosts of requests: names, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The path below which the endpoint is served. Default: `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The clients that may call models. Default: `Keys`.
    #[serde(default)]
    pub access: AiAccess,
    /// The providers.
    #[schemars(length(min = 1, max = 64))]
    pub providers: Vec<AiProvider>,
    /// The timeouts of calls.
    #[serde(default)]
    pub timeouts: AiTimeouts,
    /// Retries of calls that fail.
    #[serde(default)]
    pub retry: AiRetry,
    /// Outlier ejection: providers that fail get no calls for a while.
    #[serde(default)]
    pub health: AiHealth,
    /// The maximum size of a request body in bytes; larger ones are answered with 413. Default: 8 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864))]
    pub max_body_bytes: Option<i64>,
    /// The interval of comments to a client that waits for the first token of a stream. They keep proxies in between from closing the connection. From the first
    /// comment on, the status code is 200, and errors are reported in the stream. Clients of the Gemini API get none: their library takes comments for answers. Default: no comments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<String>,
}

/// The clients that may call models.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum AiAccess {
    /// Clients with a key of an LLMGatewayPolicy.
    #[default]
    Keys,
    /// All clients. If a client sends a key nevertheless, the key is checked and its limits apply.
    Open,
}

/// A provider of models.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiProvider {
    /// The name that ModelContextMappings use.
    pub name: String,
    /// The API of the provider.
    pub dialect: AiDialect,
    /// The URL of the provider, without the path of the API. Default: that of the vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The key that is sent to the provider. Clients never see it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AiProviderKey>,
    /// Additional headers of requests to the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// For `OpenAI`: whether the provider serves `/v1/responses` itself. Otherwise these requests are translated. Default: false.
    #[serde(default)]
    pub responses: bool,
    /// For `OpenAI`: whether the provider is asked to report usage at the end of a stream. If the client did not ask for it, the report is removed from the stream. Default: true.
    #[serde(default = "yes")]
    pub stream_usage: bool,
    /// A PEM file with the certificate authorities to trust. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// The maximum number of concurrent requests. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_requests: Option<i32>,
}

fn yes() -> bool {
    true
}

/// The API of a provider.
#[watchkeeper::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum AiDialect {
    /// The API of OpenAI, and of servers that are compatible with it.
    OpenAI,
    /// The API of Anthropic.
    Anthropic,
    /// The API of Gemini.
    Gemini,
}

/// A reference to a key: `secretName` or `file`.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiProviderKey {
    /// The name of a Secret in the namespace of the object. In a cluster the Secret must have the type `gateway.watchkeeper.dev/provider-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The entry of the Secret. Default: `apiKey`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<String>,
    /// A file with the key, read again when it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The timeouts of calls. `0s` is no timeout.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct AiTimeouts {
    /// The timeout for opening a connection. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<String>,
    /// The timeout from the request to the first token of a stream, or to the end of an answer that is not streamed, for one attempt. Default: `2m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<String>,
    /// The timeout from one piece of a stream to the next. Default: `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_tokens: Option<String>,
}

/// Retries of calls that fail. They go to all providers of the model in turn: those of one priority by weight, then those of the next.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiRetry {
    /// The maximum number of retries, over all providers. Default: 2.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 10))]
    pub attempts: i32,
    /// The delay before the first retry at the same provider; it doubles with each retry. Default: `250ms`.
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

/// Outlier ejection: providers that fail get no calls for a while. Failures are broken connections, timeouts, and the codes 429 and 500 to 599.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct AiHealth {
    /// The number of consecutive failures after which a provider is ejected. Default: 5.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    pub failures: i32,
    /// The time of the first ejection; each one in a row adds as much, up to ten times. Default: `10s`.
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
