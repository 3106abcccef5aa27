use memchr::memmem;
use serde_json::Value;

use crate::sse::SseEvent;
use crate::{ApiError, Dialect, Usage};

/// What passes by in a stream that is not translated.
///
/// Most events are only looked at for a few words; one is read as a whole if it may say what was used, or why the stream ends.
#[derive(Debug)]
pub struct Observer {
    dialect: Dialect,
    /// What was used, as far as the provider has said.
    pub usage: Option<Usage>,
    /// Whether the model has written something.
    pub has_content: bool,
    /// Whether the stream came to its end.
    pub is_complete: bool,
    /// What the provider said went wrong.
    pub error: Option<ApiError>,
    /// Whether the event that was taken last only tells usage, in a stream whose client did not ask for it.
    pub only_usage: bool,
}

impl Observer {
    /// An observer of streams of a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, usage: None, has_content: false, is_complete: false, error: None, only_usage: false }
    }

    /// Looks at an event.
    pub fn take(&mut self, event: &SseEvent) {
        let data = event.data.as_bytes();
        self.only_usage = false;
        if data == b"[DONE]" {
            self.is_complete = true;
            return;
        }
        let has = |word: &[u8]| memmem::find(data, word).is_some();
        let suspicious = match self.dialect {
            Dialect::OpenAiChat => {
                has(b"usage\"") && !has(b"\"usage\":null") || has(b"\"error\"") || has(b"\"finish_reason\"")
            }
            Dialect::OpenAiResponses => {
                has(b"response.completed")
                    || has(b"response.incomplete")
                    || has(b"response.failed")
                    || has(b"\"error\"")
            }
            Dialect::Anthropic => has(b"message_") || has(b"\"error\""),
            _ => true,
        };
        // The first few events are read as a whole: which of them has content cannot be told by a word.
        if (suspicious || !self.has_content)
            && let Ok(value) = serde_json::from_str::<Value>(&event.data)
        {
            self.has_content = self.has_content || has_content(self.dialect, &value);
            if suspicious {
                self.look(&value);
            }
        }
    }

    fn look(&mut self, value: &Value) {
        let is_error = value.get("error").is_some_and(|error| !error.is_null()) || value["type"] == "error";
        let failed = value["type"] == "response.failed";
        if is_error || failed {
            let told = if failed { &value["response"] } else { value };
            self.error = Some(ApiError::of_event(told));
            return;
        }
        let usage = match self.dialect {
            Dialect::OpenAiChat => {
                self.only_usage =
                    value["choices"].as_array().is_some_and(Vec::is_empty) && value["usage"].is_object();
                self.is_complete |= value["choices"][0]["finish_reason"].is_string();
                Usage::from_openai(&value["usage"])
            }
            Dialect::OpenAiResponses => {
                self.is_complete |=
                    value["response"]["status"].as_str().is_some_and(|status| status != "in_progress");
                Usage::from_responses(&value["response"]["usage"])
            }
            Dialect::Anthropic => {
                self.is_complete |= value["type"] == "message_stop";
                Usage::from_anthropic(&value["usage"]).or(Usage::from_anthropic(&value["message"]["usage"]))
            }
            _ => {
                self.is_complete |= value["candidates"][0]["finishReason"].is_string();
                Usage::from_gemini(&value["usageMetadata"])
            }
        };
        if let Some(usage) = usage {
            self.usage = Some(self.usage.map_or(usage, |known| known.merged(usage)));
        }
    }
}

/// Whether an event has something that the model wrote: text, thoughts, or a call of a tool.
fn has_content(dialect: Dialect, event: &Value) -> bool {
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    let has_other = |value: &Value, names: &[&str]| {
        let mut fields = value.as_object().into_iter().flatten();
        fields.any(|(name, value)| !names.contains(&name.as_str()) && is_something(value))
    };
    match dialect {
        Dialect::OpenAiResponses => {
            event["type"].as_str().is_some_and(|name| name.ends_with(".delta"))
                && is_something(&event["delta"])
        }
        Dialect::Anthropic => match event["type"].as_str() {
            Some("content_block_delta") => has_other(&event["delta"], &["type"]),
            // A tool is called.
            Some("content_block_start") => {
                event["content_block"]["type"].as_str().is_some_and(|name| name.ends_with("tool_use"))
            }
            _ => false,
        },
        Dialect::Gemini => {
            let mut parts = event["candidates"][0]["content"]["parts"].as_array().into_iter().flatten();
            parts.any(|part| has_other(part, &["thought", "thoughtSignature"]))
        }
        _ => {
            let mut choices = event["choices"].as_array().into_iter().flatten();
            choices.any(|choice| has_other(&choice["delta"], &["role"]))
        }
    }
}
