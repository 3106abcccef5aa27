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
        if !self.has_content {
            self.has_content = match self.dialect {
                Dialect::OpenAiChat => {
                    has(b"\"delta\"") && !has(b"\"content\":\"\"") && !has(b"\"delta\":{}")
                }
                Dialect::OpenAiResponses => has(b".delta\""),
                Dialect::Anthropic => has(b"content_block_delta") || has(b"tool_use"),
                _ => has(b"\"text\"") || has(b"functionCall"),
            };
        }
        if suspicious && let Ok(value) = serde_json::from_str::<Value>(&event.data) {
            self.look(&value);
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
