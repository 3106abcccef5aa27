use std::collections::BTreeMap;

use super::GatewayStatus;

/// A prompt as a REST API: `POST /v1/prompts/NAME` with its inputs as JSON answers with what the model writes.
///
/// `GET /v1/prompts/NAME/openapi.json` describes it. `/v1/prompts/NAME/VERSION` is one version; without a version, the last one is used.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "PromptTemplate",
    plural = "prompttemplates",
    shortname = "prompt",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Model", ".spec.model"),
    printcolumn("Version", ".spec.version"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct PromptTemplateSpec {
    /// The AIGatewayConfig of the same namespace that serves the prompt.
    pub gateway: String,
    /// The name in the path: letters, digits, `-` and `_`. Default: the name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The version in the path: letters, digits, `-`, `_` and `.`. Default: `v1`.
    #[serde(default = "first")]
    pub version: String,
    /// The description of the prompt in its OpenAPI document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model, by the name in its ModelContextMapping. The key of the client must be allowed to call it.
    pub model: String,
    /// The system prompt: a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub system: Option<String>,
    /// The prompt: a template. `{{ name }}` is an input, `{% if name %}...{% else %}...{% endif %}` and `{% for item in list %}...{% endfor %}` are blocks. An unknown
    /// name is an error.
    #[schemars(length(min = 1, max = 65536))]
    pub template: String,
    /// The inputs. Requests with other inputs are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, PromptInput>,
    /// The maximum number of tokens of an answer. Default: that of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000000))]
    pub max_tokens: Option<i64>,
}

fn first() -> String {
    "v1".to_owned()
}

/// An input of a prompt.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct PromptInput {
    /// Its type. Default: `String`.
    #[serde(default, rename = "type")]
    pub kind: PromptInputType,
    /// The description of the input in the OpenAPI document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the input may be missing. The template can check with `{% if name %}`.
    #[serde(default)]
    pub optional: bool,
    /// The maximum length of a text, in bytes. Default: 65536.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1048576))]
    pub max_length: Option<i64>,
}

/// The type of an input.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum PromptInputType {
    /// A text.
    #[default]
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}
