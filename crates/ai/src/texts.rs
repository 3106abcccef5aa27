//! The texts of event streams, each with its place in the answer.

use serde_json::{Map, Value};

use crate::sse::SseEvent;
use crate::{Decoder, Dialect, Event};

/// A text of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamText {
    /// Its place in the answer, for one that continues what was said at this place; `None` for one that is whole.
    pub place: Option<String>,
    /// What is said.
    pub text: String,
}

/// Reads all texts of a stream that its client sees: of every answer, in every field, known or not.
///
/// Left out are fields that describe the answer (identifiers, names of models, reasons to stop, usage, probabilities), errors, and what is no text (sounds, images,
/// signatures). An event that is not JSON is a text.
#[derive(Debug)]
pub struct StreamTexts(Reader);

#[derive(Debug)]
enum Reader {
    /// Clients get the events as they are.
    AsIs(Dialect),
    /// Clients get what a decoder makes of them. `calls` is how many tools were called.
    Translated { decoder: Decoder, calls: usize },
}

/// Fields that say nothing, unless the model chose their names.
const SILENT: [&str; 37] = [
    "b64_json",
    "call_id",
    "createTime",
    "data",
    "encrypted_content",
    "error",
    "finishReason",
    "finish_reason",
    "id",
    "inlineData",
    "inline_data",
    "item_id",
    "logprobs",
    "logprobsResult",
    "mimeType",
    "mime_type",
    "model",
    "modelVersion",
    "native_finish_reason",
    "obfuscation",
    "object",
    "partial_image_b64",
    "promptFeedback",
    "provider",
    "responseId",
    "role",
    "safetyRatings",
    "service_tier",
    "signature",
    "status",
    "stop_reason",
    "stop_sequence",
    "system_fingerprint",
    "thoughtSignature",
    "thought_signature",
    "type",
    "usage",
];
/// The deltas of responses that are sounds.
const SOUNDS: [&str; 2] = ["response.audio.delta", "response.output_audio.delta"];

impl StreamTexts {
    /// A reader of the stream of a provider, for a client of this dialect or another.
    pub fn new(provider: Dialect, client: Dialect) -> Self {
        match Decoder::new(provider).filter(|_| provider != client) {
            Some(decoder) => Self(Reader::Translated { decoder, calls: 0 }),
            None => Self(Reader::AsIs(provider)),
        }
    }

    /// Takes an event, and says what is said in it.
    pub fn take(&mut self, event: &SseEvent, out: &mut Vec<StreamText>) {
        match &mut self.0 {
            Reader::AsIs(dialect) => as_is(*dialect, event, out),
            Reader::Translated { decoder, calls } => {
                let mut events = Vec::new();
                decoder.take(event, &mut events);
                out.extend(events.into_iter().filter_map(|event| translated(event, calls)));
            }
        }
    }
}

fn translated(event: Event, calls: &mut usize) -> Option<StreamText> {
    let (place, text) = match event {
        Event::Text(text) => (Some("text".to_owned()), text),
        Event::Thinking(text) => (Some("thinking".to_owned()), text),
        Event::ToolStart { name, .. } => {
            *calls += 1;
            (None, name)
        }
        Event::ToolArguments(text) => (Some(format!("call {calls}")), text),
        Event::Start { .. } | Event::Finish(_) | Event::Usage(_) | Event::Error(_) => return None,
    };
    (!text.is_empty()).then_some(StreamText { place, text })
}

fn as_is(dialect: Dialect, event: &SseEvent, out: &mut Vec<StreamText>) {
    if event.data == "[DONE]" {
        return;
    }
    let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
        return out.push(StreamText { place: None, text: event.data.clone() });
    };
    let number = |name: &str| data[name].as_u64().unwrap_or_default();
    let mut walk = Walk { dialect, place: String::new(), is_whole: false, is_free: false, out };
    match dialect {
        Dialect::OpenAiResponses => {
            let kind = data["type"].as_str().unwrap_or_default();
            if SOUNDS.contains(&kind) {
                return;
            }
            // All others are what was said in pieces, once more, or were never said in pieces.
            walk.is_whole = !kind.ends_with(".delta");
            let (item, content, summary) =
                (number("output_index"), number("content_index"), number("summary_index"));
            walk.place = format!("{kind}/{item}/{content}/{summary}");
        }
        Dialect::Anthropic => walk.place = number("index").to_string(),
        _ => {}
    }
    walk.value("", &data);
}

/// A walk through an event.
struct Walk<'a> {
    dialect: Dialect,
    place: String,
    /// Whether texts are whole here.
    is_whole: bool,
    /// Whether the names of fields are those of the model, and mean nothing here.
    is_free: bool,
    out: &'a mut Vec<StreamText>,
}

impl Walk<'_> {
    fn value(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if !text.is_empty() => {
                let place = (!self.is_whole).then(|| self.place.clone());
                self.out.push(StreamText { place, text: text.clone() });
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let step = match self.dialect {
                        // The parts of an event continue those of the last: they have no numbers.
                        Dialect::Gemini if name == "parts" => {
                            let is_thought = item["thought"].as_bool() == Some(true);
                            if is_thought { "thought" } else { "said" }.to_owned()
                        }
                        _ => item["index"].as_u64().unwrap_or(at as u64).to_string(),
                    };
                    self.within(&step, |walk| walk.value("", item));
                }
            }
            Value::Object(fields) => self.fields(name, fields),
            _ => {}
        }
    }

    fn fields(&mut self, of: &str, fields: &Map<String, Value>) {
        for (name, value) in fields {
            if !self.is_free && self.is_silent(of, name, fields) {
                continue;
            }
            let before = (self.is_whole, self.is_free);
            match (self.dialect, name.as_str()) {
                (Dialect::Gemini, "args" | "response") | (Dialect::Anthropic, "input") => {
                    (self.is_whole, self.is_free) = (true, true);
                }
                // Sources are told as a whole.
                (Dialect::Gemini, name) if name.ends_with("Metadata") => self.is_whole = true,
                _ => {}
            }
            match (self.dialect, name.as_str()) {
                // What begins in one goes on in the other.
                (Dialect::Anthropic, "delta" | "content_block") if of.is_empty() => self.value(name, value),
                _ => self.within(name, |walk| walk.value(name, value)),
            }
            (self.is_whole, self.is_free) = before;
        }
    }

    fn is_silent(&self, of: &str, name: &str, fields: &Map<String, Value>) -> bool {
        match (self.dialect, name) {
            // The rest is what the client asked.
            (Dialect::OpenAiResponses, name) if of == "response" => name != "output",
            (Dialect::OpenAiResponses, "result") => {
                fields.get("type").is_some_and(|kind| kind == "image_generation_call")
            }
            (Dialect::Gemini, "usageMetadata") => true,
            (_, name) => SILENT.contains(&name),
        }
    }

    fn within(&mut self, step: &str, walk: impl FnOnce(&mut Self)) {
        let length = self.place.len();
        self.place.push('/');
        self.place.push_str(step);
        walk(self);
        self.place.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// All that is said, joined by place, and what is whole.
    fn read(provider: Dialect, client: Dialect, events: &[Value]) -> (Vec<String>, Vec<String>) {
        let (mut texts, mut out) = (StreamTexts::new(provider, client), Vec::new());
        for data in events {
            texts.take(&SseEvent { event: String::new(), data: data.to_string() }, &mut out);
        }
        let (mut joined, mut whole) = (BTreeMap::<String, String>::new(), Vec::new());
        for StreamText { place, text } in out {
            match place {
                Some(place) => joined.entry(place).or_default().push_str(&text),
                None => whole.push(text),
            }
        }
        let mut joined: Vec<String> = joined.into_values().collect();
        joined.sort();
        (joined, whole)
    }

    #[test]
    fn every_field_of_every_choice_is_a_place() {
        let delta = |index: u64, delta: Value| json!({"id": "x", "object": "chunk", "model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": null}]});
        let events = [
            delta(0, json!({"role": "assistant", "content": "one "})),
            delta(1, json!({"content": "two "})),
            delta(0, json!({"content": "one"})),
            delta(1, json!({"content": "two"})),
            delta(0, json!({"reasoning": "rea", "function_call": {"arguments": "fun"}})),
            delta(0, json!({"reasoning": "son", "function_call": {"arguments": "ction"}})),
            delta(1, json!({"audio": {"id": "a", "data": "AAAA", "transcript": "tran"}})),
            delta(1, json!({"audio": {"transcript": "script"}, "future": {"field": "new"}})),
            delta(0, json!({"tool_calls": [{"index": 1, "id": "c", "function": {"arguments": "to"}}]})),
            delta(0, json!({"tool_calls": [{"index": 1, "function": {"arguments": "ol"}}]})),
        ];
        let (joined, whole) = read(Dialect::OpenAiChat, Dialect::OpenAiChat, &events);
        assert_eq!(joined, ["function", "new", "one one", "reason", "tool", "transcript", "two two"]);
        assert!(whole.is_empty());
    }

    #[test]
    fn responses_are_said_in_pieces_and_then_as_a_whole() {
        let events = [
            json!({"type": "response.created", "response": {"instructions": "secret", "output": []}}),
            json!({"type": "response.output_text.delta", "item_id": "a", "output_index": 1, "content_index": 0, "delta": "to", "obfuscation": "xyz"}),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "think"}),
            json!({"type": "response.output_text.delta", "item_id": "b", "output_index": 1, "content_index": 0, "delta": "gether"}),
            json!({"type": "response.audio.delta", "delta": "AAAA"}),
            json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "together"}),
            json!({"type": "response.completed", "response": {"output": [{"type": "message", "content": [{"type": "output_text", "text": "together"}]}]}}),
        ];
        let (joined, whole) = read(Dialect::OpenAiResponses, Dialect::OpenAiResponses, &events);
        assert_eq!(joined, ["think", "together"]);
        assert_eq!(whole, ["together", "together"]);
    }

    #[test]
    fn blocks_and_parts_go_on_where_they_ended() {
        let events = [
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "be"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "gin"}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        ];
        let (joined, _) = read(Dialect::Anthropic, Dialect::Anthropic, &events);
        assert_eq!(joined, ["begin", "{}"]);
        let parts = |index: u64, parts: Value| json!({"candidates": [{"index": index, "content": {"role": "model", "parts": parts}}], "modelVersion": "m"});
        let events = [
            parts(0, json!([{"text": "fir"}, {"text": "hm", "thought": true}, {"text": "st"}])),
            parts(1, json!([{"text": "sec"}])),
            parts(0, json!([{"text": " one"}, {"functionCall": {"name": "f", "args": {"id": "whole"}}}])),
            parts(1, json!([{"text": "ond"}])),
        ];
        let (joined, whole) = read(Dialect::Gemini, Dialect::Gemini, &events);
        assert_eq!(joined, ["f", "first one", "hm", "second"]);
        assert_eq!(whole, ["whole"]);
    }

    #[test]
    fn what_is_translated_is_joined_as_the_client_gets_it() {
        let block = |index: u64, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}});
        let events = [block(0, "to"), block(2, "gether")];
        let (joined, _) = read(Dialect::Anthropic, Dialect::OpenAiChat, &events);
        assert_eq!(joined, ["together"]);
    }
}
