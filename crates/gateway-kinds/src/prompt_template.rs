use std::collections::BTreeMap;

use serde_json::Value;

use super::GatewayStatus;

/// A prompt as a REST API: `POST /v1/prompts/NAME` with its inputs as JSON answers with what the model writes.
///
/// `GET /v1/prompts/NAME/openapi.json` describes it. `/v1/prompts/NAME/VERSION` is one version; without a version, the last one serves.
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
    /// The AIGatewayConfig of the same namespace that serves it.
    pub gateway: String,
    /// The name in the path: letters, digits, `-` and `_`. Default: the name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The version in the path: letters, digits, `-`, `_` and `.`. Default: `v1`.
    #[serde(default = "first")]
    pub version: String,
    /// What it does, for its OpenAPI document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model that writes if the client names no other one with `?model=NAME`, as a ModelContextMapping names it. The key of a client has to be allowed to
    /// call the one or the other.
    pub model: String,
    /// What the model is told before the prompt: a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub system: Option<String>,
    /// The prompt: a template. `{{ name }}` is an input, `{% if name %}...{% else %}...{% endif %}` and `{% for item in list %}...{% endfor %}` are blocks. A name that is not
    /// there is an error.
    #[schemars(length(min = 1, max = 65536))]
    pub template: String,
    /// The inputs. Others are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, PromptInput>,
    /// How much the model may write, in tokens. Default: that of the model.
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
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it may be left out. Ask for it in the template with `{% if name %}`.
    #[serde(default)]
    pub optional: bool,
    /// How long a text may be, in bytes. Default: 65536.
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
    /// Fields.
    Object,
}
