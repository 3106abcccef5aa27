//! Prompts that are served as APIs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_ai::{ApiError, ChatResponse, Template};
use watchkeeper_core::Key;

use crate::json_schema::{JsonSchema, Wrong};

/// How long a text may be if nobody said, in bytes.
pub(crate) const TEXT: usize = 65_536;

/// A compiled PromptTemplate.
#[derive(Debug)]
pub struct Prompt {
    /// Which.
    pub key: Key,
    /// The gateway that serves it.
    pub gateway: Key,
    /// The name in the path.
    pub name: String,
    /// The version in the path.
    pub version: String,
    /// What it does.
    pub description: Option<String>,
    /// The model, if the client names no other one.
    pub model: Arc<str>,
    /// What the model is told before.
    pub system: Option<Template>,
    /// The prompt.
    pub template: Template,
    /// The inputs.
    pub inputs: BTreeMap<String, Input>,
    /// How much the model may write.
    pub max_tokens: Option<u64>,
}

/// An input.
#[derive(Debug)]
pub struct Input {
    /// Whether it may be left out.
    pub optional: bool,
    /// What it is if it is left out.
    pub default: Option<Value>,
    /// How long a text may be, in bytes.
    pub max_length: usize,
    /// Its JSON Schema.
    pub schema: Value,
    /// The same, read.
    pub(crate) checked: JsonSchema,
}

impl Input {
    /// Says what is wrong with a value, and where.
    pub(crate) fn check(&self, value: &Value, place: &str) -> Result<(), Wrong> {
        let is_text = self.schema["type"] == "string";
        if is_text && value.as_str().is_none_or(|text| text.len() > self.max_length) {
            return Err((place.to_owned(), format!("has to be a text of at most {} bytes", self.max_length)));
        }
        self.checked.check(value, place)
    }
}

impl Prompt {
    /// How versions are ordered: `v2` before `v10`.
    pub(crate) fn rank(&self) -> Vec<(u64, String)> {
        let part = |part: &str| {
            let digits = part.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            (digits.parse().unwrap_or(0), part.to_owned())
        };
        self.version.split(['.', '-']).map(part).collect()
    }

    /// The request of chat completions that these inputs make, to a model.
    ///
    /// # Errors
    ///
    /// An input that is missing, not as its schema says or not known; a template that cannot be written with them.
    pub fn request(&self, model: &str, inputs: &Value) -> Result<Value, ApiError> {
        let Value::Object(given) = inputs else {
            return Err(ApiError::invalid("the body has to be a JSON object with the inputs of the prompt"));
        };
        if let Some(unknown) = given.keys().find(|name| !self.inputs.contains_key(*name)) {
            let known: Vec<&str> = self.inputs.keys().map(String::as_str).collect();
            let shown: String = unknown.chars().take(64).collect();
            return Err(ApiError::invalid(format!(
                "{shown}: is not an input of this prompt; it has {}",
                known.join(", ")
            )));
        }
        let mut inputs = given.clone();
        for (name, input) in &self.inputs {
            match (given.get(name), &input.default) {
                (Some(value), _) => input
                    .check(value, name)
                    .map_err(|(place, message)| ApiError::invalid(format!("{place}: {message}")))?,
                // It was checked with the object.
                (None, Some(default)) => drop(inputs.insert(name.clone(), default.clone())),
                (None, None) if input.optional => {}
                (None, None) => return Err(ApiError::invalid(format!("{name}: is missing"))),
            }
        }
        let inputs = &Value::Object(inputs);
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            messages.push(json!({"role": "system", "content": system.render(inputs)?}));
        }
        messages.push(json!({"role": "user", "content": self.template.render(inputs)?}));
        let mut request = json!({"model": model, "messages": messages});
        if let Some(most) = self.max_tokens {
            request["max_tokens"] = most.into();
        }
        Ok(request)
    }

    /// What the client gets.
    pub(crate) fn answer(&self, model: &str, response: &ChatResponse) -> Value {
        let usage = response.usage.unwrap_or_default();
        json!({
            "output": response.text(),
            "prompt": self.name,
            "version": self.version,
            "model": model,
            "usage": {"inputTokens": usage.input, "outputTokens": usage.output},
        })
    }

    /// The OpenAPI document.
    pub fn openapi(&self) -> Value {
        let properties: serde_json::Map<String, Value> =
            self.inputs.iter().map(|(name, input)| (name.clone(), input.schema.clone())).collect();
        let required = self.inputs.iter().filter(|(_, input)| !input.optional && input.default.is_none());
        let required: Vec<&String> = required.map(|(name, _)| name).collect();
        let path = format!("/v1/prompts/{}/{}", self.name, self.version);
        let error = json!({"type": "object", "properties": {"error": {"type": "object", "properties": {"message": {"type": "string"}}}}});
        json!({
            "openapi": "3.1.0",
            "info": {"title": self.name, "version": self.version, "description": self.description},
            "paths": {path: {"post": {
                "operationId": self.name.replace('-', "_"),
                "summary": self.description,
                "security": [{"key": []}],
                "parameters": [{
                    "name": "model", "in": "query", "description": "Another model that the key may call",
                    "schema": {"type": "string", "default": &*self.model},
                }],
                "requestBody": {"required": true, "content": {"application/json": {"schema": {
                    "type": "object", "properties": properties, "required": required, "additionalProperties": false,
                }}}},
                "responses": {
                    "200": {"description": "What the model wrote", "content": {"application/json": {"schema": {
                        "type": "object",
                        "properties": {"output": {"type": "string"}, "model": {"type": "string"}, "usage": {"type": "object", "properties": {
                            "inputTokens": {"type": "integer"}, "outputTokens": {"type": "integer"}}}},
                        "required": ["output"],
                    }}}},
                    "default": {"description": "What went wrong", "content": {"application/json": {"schema": error}}},
                },
            }}},
            "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        })
    }
}
