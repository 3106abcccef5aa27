use serde_json::{Value, json};

use super::request::write_call;
use super::response::{parts, stop};
use super::word_of;
use crate::json::text;
use crate::{ApiError, Dialect, ErrorKind, Event, Part, Stamp, Stop, ToolCall, Usage, sse};

/// Reads pieces of generated content.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    started: bool,
    calls: usize,
}

impl Decoder {
    pub(crate) fn take(&mut self, piece: &Value, out: &mut Vec<Event>) {
        if piece.get("error").is_some_and(|error| !error.is_null()) {
            return out.push(Event::Error(ApiError::of_event(piece)));
        }
        if !std::mem::replace(&mut self.started, true) {
            let named = |key: &str| text(piece, key).unwrap_or_default().to_owned();
            out.push(Event::Start { id: named("responseId"), model: named("modelVersion") });
        }
        for part in parts(&piece["candidates"][0], self.calls) {
            match part {
                Part::Text(text) if !text.is_empty() => out.push(Event::Text(text)),
                Part::Thinking(text) => out.push(Event::Thinking(text)),
                Part::ToolCall(ToolCall { id, name, arguments }) => {
                    self.calls += 1;
                    out.extend([Event::ToolStart { id, name }, Event::ToolArguments(arguments)]);
                }
                _ => {}
            }
        }
        out.extend(Usage::from_gemini(&piece["usageMetadata"]).map(Event::Usage));
        let ended = text(&piece["candidates"][0], "finishReason").is_some();
        if ended || text(&piece["promptFeedback"], "blockReason").is_some() {
            out.push(Event::Finish(stop(piece, self.calls > 0)));
        }
    }
}

/// Writes pieces of generated content. A call of a tool is written when its arguments are complete.
#[derive(Debug)]
pub(crate) struct Encoder {
    stamp: Stamp,
    call: Option<ToolCall>,
    stop: Stop,
    usage: Option<Usage>,
    /// Whether the stream ended with an error.
    is_broken: bool,
}

impl Encoder {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self { stamp, call: None, stop: Stop::End, usage: None, is_broken: false }
    }

    fn write(&self, parts: Value, finish: Option<&str>, out: &mut Vec<u8>) {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        let mut piece = json!({"modelVersion": self.stamp.model, "responseId": self.stamp.id});
        if let Some(word) = finish {
            candidate["finishReason"] = word.into();
            if let Some(usage) = self.usage {
                piece["usageMetadata"] = usage.to_gemini();
            }
        }
        piece["candidates"] = json!([candidate]);
        sse::write(out, "", &piece.to_string());
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let Some(call) = self.call.take() else { return };
        match write_call(&call) {
            Ok(part) => self.write(json!([part]), None, out),
            // The dialect has no form for what the model wrote.
            Err(wrong) => {
                self.is_broken = true;
                out.extend(ApiError::new(ErrorKind::Provider, wrong).event(Dialect::Gemini));
            }
        }
    }

    pub(crate) fn take(&mut self, event: Event, out: &mut Vec<u8>) {
        if self.is_broken {
            return;
        }
        match event {
            Event::Text(text) => {
                self.flush(out);
                self.write(json!([{"text": text}]), None, out);
            }
            Event::Thinking(text) => {
                self.flush(out);
                self.write(json!([{"text": text, "thought": true}]), None, out);
            }
            Event::ToolStart { id, name } => {
                self.flush(out);
                self.call = Some(ToolCall { id, name, arguments: String::new() });
            }
            Event::ToolArguments(arguments) => {
                if let Some(call) = &mut self.call {
                    call.arguments.push_str(&arguments);
                }
            }
            Event::Finish(stop) => self.stop = stop,
            Event::Usage(usage) => self.usage = Some(self.usage.map_or(usage, |known| known.merged(usage))),
            Event::Error(error) => out.extend(error.event(Dialect::Gemini)),
            Event::Start { .. } => {}
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        if !self.is_broken {
            self.write(json!([]), Some(word_of(self.stop)), out);
        }
    }
}
