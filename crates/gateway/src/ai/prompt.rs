//! Prompts that are served as APIs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_ai::{ApiError, ChatResponse, Template};
use watchkeeper_core::Key;

use crate::kinds::PromptInputType;

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
    /// The model.
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
    /// Its type.
    pub kind: PromptInputType,
    /// What it is.
    pub description: Option<String>,
    /// Whether it may be left out.
    pub optional: bool,
    /// How long a text may be.
    pub max_length: usize,
}

impl Input {
    fn name(&self) -> &'static str {
        match self.kind {
            PromptInputType::String => "string",
            PromptInputType::Number => "number",
            PromptInputType::Boolean => "boolean",
            PromptInputType::Array => "array",
            PromptInputType::Object => "object",
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match self.kind {
            PromptInputType::String => value.as_str().is_some_and(|text| text.len() <= self.max_length),
            PromptInputType::Number => value.is_number(),
            PromptInputType::Boolean => value.is_boolean(),
            PromptInputType::Array => value.is_array(),
            PromptInputType::Object => value.is_object(),
        }
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

    /// The request of chat completions that these inputs make.
    ///
    /// # Errors
    ///
    /// An input that is missing, of another type or not known; a template that cannot be written with them.
    pub fn request(&self, inputs: &Value) -> Result<Value, ApiError> {
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
        for (name, input) in &self.inputs {
            match given.get(name) {
                None if input.optional => {}
                None => return Err(ApiError::invalid(format!("{name}: is missing"))),
                Some(value) if input.fits(value) => {}
                Some(_) if input.kind == PromptInputType::String => {
                    return Err(ApiError::invalid(format!(
                        "{name}: has to be a text of at most {} bytes",
                        input.max_length
                    )));
                }
                Some(_) => {
                    return Err(ApiError::invalid(format!("{name}: has to be of type {}", input.name())));
                }
            }
        }
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            messages.push(json!({"role": "system", "content": system.render(inputs)?}));
        }
        messages.push(json!({"role": "user", "content": self.template.render(inputs)?}));
        let mut request = json!({"model": &*self.model, "messages": messages});
        if let Some(most) = self.max_tokens {
            request["max_tokens"] = most.into();
        }
        Ok(request)
    }

    /// What the client gets.
    pub(crate) fn answer(&self, response: &ChatResponse) -> Value {
        let usage = response.usage.unwrap_or_default();
        json!({
            "output": response.text(),
            "prompt": self.name,
            "version": self.version,
            "model": &*self.model,
            "usage": {"inputTokens": usage.input, "outputTokens": usage.output},
        })
    }

    /// The OpenAPI document.
    pub fn openapi(&self) -> Value {
        let property = |(name, input): (&String, &Input)| {
            let mut schema = json!({"type": input.name()});
            if let Some(description) = &input.description {
                schema["description"] = description.as_str().into();
            }
            if input.kind == PromptInputType::String {
                schema["maxLength"] = input.max_length.into();
            }
            (name.clone(), schema)
        };
        let properties: serde_json::Map<String, Value> = self.inputs.iter().map(property).collect();
        let required: Vec<&String> =
            self.inputs.iter().filter(|(_, input)| !input.optional).map(|(name, _)| name).collect();
        let path = format!("/v1/prompts/{}/{}", self.name, self.version);
        let error = json!({"type": "object", "properties": {"error": {"type": "object", "properties": {"message": {"type": "string"}}}}});
        json!({
            "openapi": "3.1.0",
            "info": {"title": self.name, "version": self.version, "description": self.description},
            "paths": {path: {"post": {
                "operationId": self.name.replace('-', "_"),
                "summary": self.description,
                "security": [{"key": []}],
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
