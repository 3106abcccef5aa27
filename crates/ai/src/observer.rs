use std::collections::BTreeMap;

use memchr::memmem;
use serde_json::Value;

use crate::sse::SseEvent;
use crate::{ApiError, Dialect, Tally, Usage};

/// The most answers of a stream that are told apart: more than any vendor gives at once.
const ANSWERS: usize = 1_024;

/// What passes by in a stream that is not translated.
///
/// Most events are only looked at for a few words; one is read as a whole if it may say what was used, or why the stream ends.
#[derive(Debug)]
pub struct Observer {
    dialect: Dialect,
    /// How many answers were asked for.
    choices: u64,
    /// The answers that came, by number, and whether they ended.
    ended: BTreeMap<u64, bool>,
    tally: Tally,
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
    /// An observer of streams of a dialect, of which so many answers were asked for at once.
    pub fn new(dialect: Dialect, choices: u64) -> Self {
        Self {
            dialect,
            choices,
            ended: BTreeMap::new(),
            tally: Tally::default(),
            has_content: false,
            is_complete: false,
            error: None,
            only_usage: false,
        }
    }

    /// What was used; `None` if the provider did not say all of it.
    pub fn usage(&self) -> Option<Usage> {
        self.tally.known()
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
        // The first few events are read as a whole, and those after usage was told: which of them has content cannot be told by a word.
        if (suspicious || !self.has_content || self.tally.is_output_told())
            && let Ok(value) = serde_json::from_str::<Value>(&event.data)
        {
            if has_content(self.dialect, &value) {
                self.has_content = true;
                self.tally.wrote();
            }
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
                self.note_ends(&value["choices"], "finish_reason");
                // Those that give fewer answers than were asked for say so with `[DONE]`.
                self.is_complete |= self.choices <= self.ended.len() as u64 && self.all_ended();
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
                self.note_ends(&value["candidates"], "finishReason");
                // Candidates that are filtered never come.
                let is_blocked = value["promptFeedback"]["blockReason"].is_string();
                self.is_complete = self.all_ended() || is_blocked;
                Usage::from_gemini(&value["usageMetadata"])
            }
        };
        if let Some(usage) = usage {
            self.tally.told(usage);
        }
    }

    /// Takes note of which answers go on, and which end.
    fn note_ends(&mut self, answers: &Value, reason: &str) {
        for (at, answer) in answers.as_array().into_iter().flatten().enumerate() {
            let number = answer["index"].as_u64().unwrap_or(at as u64);
            if self.ended.len() >= ANSWERS && !self.ended.contains_key(&number) {
                return;
            }
            *self.ended.entry(number).or_default() |= answer[reason].is_string();
        }
    }

    fn all_ended(&self) -> bool {
        !self.ended.is_empty() && self.ended.values().all(|ended| *ended)
    }
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Whether an object has something besides these fields.
fn has_other(value: &Value, names: &[&str]) -> bool {
    let mut fields = value.as_object().into_iter().flatten();
    fields.any(|(name, value)| !names.contains(&name.as_str()) && is_something(value))
}

/// Whether a response that is no stream has something that the model wrote.
pub(crate) fn has_answer(dialect: Dialect, body: &Value) -> bool {
    match dialect {
        Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings => false,
        Dialect::OpenAiResponses => is_something(&body["output"]),
        Dialect::Anthropic => is_something(&body["content"]),
        Dialect::Gemini => has_content(dialect, body),
        Dialect::OpenAiChat => {
            let mut choices = body["choices"].as_array().into_iter().flatten();
            choices.any(|choice| has_other(&choice["message"], &["role"]))
        }
    }
}

/// Whether an event has something that the model wrote: text, thoughts, or a call of a tool.
fn has_content(dialect: Dialect, event: &Value) -> bool {
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
            let candidates = event["candidates"].as_array().into_iter().flatten();
            let mut parts =
                candidates.filter_map(|candidate| candidate["content"]["parts"].as_array()).flatten();
            parts.any(|part| has_other(part, &["thought", "thoughtSignature"]))
        }
        _ => {
            let mut choices = event["choices"].as_array().into_iter().flatten();
            choices.any(|choice| has_other(&choice["delta"], &["role"]))
        }
    }
}
