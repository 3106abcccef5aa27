use serde_json::{Value, json};

use super::{stop_of, word_of};
use crate::json::text;
use crate::{ApiError, Dialect, Event, Stamp, Stop, Usage, sse};

/// Reads events of messages.
#[derive(Debug, Default)]
pub(crate) struct Decoder;

impl Decoder {
    pub(crate) fn take(&mut self, event: &Value, out: &mut Vec<Event>) {
        match text(event, "type") {
            Some("message_start") => {
                let message = &event["message"];
                let named = |key: &str| text(message, key).unwrap_or_default().to_owned();
                out.push(Event::Start { id: named("id"), model: named("model") });
                out.extend(Usage::from_anthropic(&message["usage"]).map(Event::Usage));
            }
            Some("content_block_start") => {
                let block = &event["content_block"];
                let named = |key: &str| text(block, key).unwrap_or_default().to_owned();
                match text(block, "type") {
                    Some("tool_use") => {
                        out.push(Event::ToolStart { id: named("id"), name: named("name") });
                        if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                            out.push(Event::ToolArguments(block["input"].to_string()));
                        }
                    }
                    Some("text") if !named("text").is_empty() => out.push(Event::Text(named("text"))),
                    _ => {}
                }
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                let piece = |key: &str| text(delta, key).filter(|text| !text.is_empty()).map(str::to_owned);
                out.extend(match text(delta, "type") {
                    Some("text_delta") => piece("text").map(Event::Text),
                    Some("input_json_delta") => piece("partial_json").map(Event::ToolArguments),
                    Some("thinking_delta") => piece("thinking").map(Event::Thinking),
                    _ => None,
                });
            }
            Some("message_delta") => {
                out.extend(Usage::from_anthropic(&event["usage"]).map(Event::Usage));
                out.extend(text(&event["delta"], "stop_reason").map(|word| Event::Finish(stop_of(word))));
            }
            Some("error") => out.push(Event::Error(ApiError::of_event(event))),
            _ => {}
        }
    }
}

/// Writes events of messages.
#[derive(Debug)]
pub(crate) struct Encoder {
    stamp: Stamp,
    started: bool,
    /// The block that is open: its number, and whether it is a call of a tool.
    open: Option<(u64, bool)>,
    blocks: u64,
    stop: Option<Stop>,
    calls: bool,
    usage: Usage,
}

impl Encoder {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self {
            stamp,
            started: false,
            open: None,
            blocks: 0,
            stop: None,
            calls: false,
            usage: Usage::default(),
        }
    }

    fn write(out: &mut Vec<u8>, event: &Value) {
        sse::write(out, text(event, "type").unwrap_or_default(), &event.to_string());
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let message = json!({
            "id": self.stamp.id, "type": "message", "role": "assistant", "model": self.stamp.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": self.usage.to_anthropic(),
        });
        Self::write(out, &json!({"type": "message_start", "message": message}));
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some((index, _)) = self.open.take() {
            Self::write(out, &json!({"type": "content_block_stop", "index": index}));
        }
    }

    fn begin(&mut self, is_tool: bool, block: Value, out: &mut Vec<u8>) {
        self.start(out);
        self.close(out);
        let index = self.blocks;
        self.blocks += 1;
        self.open = Some((index, is_tool));
        Self::write(out, &json!({"type": "content_block_start", "index": index, "content_block": block}));
    }

    fn delta(&self, delta: Value, out: &mut Vec<u8>) {
        let index = self.open.map_or(0, |(index, _)| index);
        Self::write(out, &json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }

    pub(crate) fn take(&mut self, event: Event, out: &mut Vec<u8>) {
        match event {
            Event::Start { .. } => self.start(out),
            Event::Text(text) => {
                if !matches!(self.open, Some((_, false))) {
                    self.begin(false, json!({"type": "text", "text": ""}), out);
                }
                self.delta(json!({"type": "text_delta", "text": text}), out);
            }
            Event::ToolStart { id, name } => {
                self.calls = true;
                self.begin(true, json!({"type": "tool_use", "id": id, "name": name, "input": {}}), out);
            }
            Event::ToolArguments(arguments) => {
                self.delta(json!({"type": "input_json_delta", "partial_json": arguments}), out);
            }
            Event::Finish(stop) => self.stop = Some(stop),
            Event::Usage(usage) => self.usage = self.usage.merged(usage),
            Event::Error(error) => out.extend(error.event(Dialect::Anthropic)),
            // Thoughts of others have no signature, without which clients do not take them.
            Event::Thinking(_) => {}
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.start(out);
        self.close(out);
        let stop = match self.stop {
            Some(Stop::End) | None if self.calls => Stop::Tools,
            stop => stop.unwrap_or_default(),
        };
        let delta = json!({"stop_reason": word_of(stop), "stop_sequence": null});
        Self::write(
            out,
            &json!({"type": "message_delta", "delta": delta, "usage": self.usage.to_anthropic()}),
        );
        Self::write(out, &json!({"type": "message_stop"}));
    }
}
