use std::collections::BTreeMap;

use serde_json::Value;

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
    /// The model, by the name in its ModelContextMapping, unless the client names another one with `?model=NAME`. The key of the client must be
    /// allowed to call it.
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
    /// What it is if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub default: Option<Value>,
    /// The values that it may have. Default: all.
    #[serde(default, rename = "enum", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = {"x-kubernetes-preserve-unknown-fields": true}))]
    pub allowed: Vec<Value>,
    /// The least that a number may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    /// The most that a number may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    /// What each item of a list has to be: a JSON Schema, such as `{type: string, maxLength: 100}`. Default: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub items: Option<Value>,
    /// How few items a list may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000))]
    pub min_items: Option<i64>,
    /// How many items a list may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000))]
    pub max_items: Option<i64>,
    /// What the fields of an object have to be, by name: JSON Schemas. Default: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub properties: Option<Value>,
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
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}
