use serde_json::{Value, json};

use super::{stop_of, word_of};
use crate::json::{list, number, text};
use crate::{ApiError, Dialect, Event, Stamp, Stop, Usage, sse};

/// Reads chunks of chat completions.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    started: bool,
    calls: Vec<Call>,
    /// How many of the calls are told to their end. The one after them is told as it comes; those after that wait.
    told: usize,
}

/// A call of a tool.
#[derive(Debug)]
struct Call {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    is_started: bool,
    /// How much of the arguments is told, in bytes.
    sent: usize,
}

impl Call {
    fn tell(&mut self, out: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.is_started, true) {
            out.push(Event::ToolStart { id: self.id.clone(), name: self.name.clone() });
        }
        if let Some(rest) = self.arguments.get(self.sent..).filter(|rest| !rest.is_empty()) {
            out.push(Event::ToolArguments(rest.to_owned()));
            self.sent = self.arguments.len();
        }
    }

    fn is_complete(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

impl Decoder {
    pub(crate) fn take(&mut self, chunk: &Value, out: &mut Vec<Event>) {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return out.push(Event::Error(ApiError::of_event(chunk)));
        }
        if !std::mem::replace(&mut self.started, true) {
            let named = |key: &str| text(chunk, key).unwrap_or_default().to_owned();
            out.push(Event::Start { id: named("id"), model: named("model") });
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        let piece = |key: &str| text(delta, key).filter(|text| !text.is_empty()).map(str::to_owned);
        out.extend(piece("reasoning_content").map(Event::Thinking));
        out.extend(piece("content").or(piece("refusal")).map(Event::Text));
        for call in list(delta, "tool_calls") {
            self.call(call, out);
        }
        if let Some(reason) = text(choice, "finish_reason") {
            let waiting = self.calls.iter_mut().skip(self.told);
            waiting.for_each(|call| call.tell(out));
            self.told = self.calls.len();
            out.push(Event::Finish(stop_of(reason)));
        }
        out.extend(Usage::from_openai(&chunk["usage"]).map(Event::Usage));
    }

    /// Takes a piece of a call. Other dialects have one call after the other: arguments of one that is not the turn's wait until those before it are
    /// complete.
    fn call(&mut self, call: &Value, out: &mut Vec<Event>) {
        let function = &call["function"];
        let last = self.calls.last().map(|call| call.index);
        let index = match (number(call, "index"), text(call, "id"), last) {
            (Some(index), ..) => index,
            // Some servers do not number calls: one begins with its identifier.
            (None, None, Some(last)) => last,
            (None, ..) => self.calls.len() as u64,
        };
        let at = self.calls.iter().position(|call| call.index == index).unwrap_or_else(|| {
            let id = text(call, "id").map_or_else(|| format!("call_{index}"), str::to_owned);
            let name = text(function, "name").unwrap_or_default().to_owned();
            let arguments = String::new();
            self.calls.push(Call { index, id, name, arguments, is_started: false, sent: 0 });
            self.calls.len() - 1
        });
        if let (Some(call), Some(piece)) = (self.calls.get_mut(at), text(function, "arguments")) {
            call.arguments.push_str(piece);
        }
        let count = self.calls.len();
        while let Some(call) = self.calls.get_mut(self.told) {
            call.tell(out);
            if self.told + 1 == count || !call.is_complete() {
                break;
            }
            self.told += 1;
        }
    }
}

/// Writes chunks of chat completions.
#[derive(Debug)]
pub(crate) struct Encoder {
    stamp: Stamp,
    started: bool,
    calls: u64,
    stop: Option<Stop>,
    usage: Option<Usage>,
}

impl Encoder {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self { stamp, started: false, calls: 0, stop: None, usage: None }
    }

    fn chunk(&self, choices: Value, out: &mut Vec<u8>) {
        let Stamp { id, model, created, .. } = &self.stamp;
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices,
        });
        sse::write(out, "", &chunk.to_string());
    }

    fn delta(&mut self, delta: Value, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.started, true) {
            let first =
                json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]);
            self.chunk(first, out);
        }
        self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), out);
    }

    pub(crate) fn take(&mut self, event: Event, out: &mut Vec<u8>) {
        match event {
            Event::Text(text) => self.delta(json!({"content": text}), out),
            Event::ToolStart { id, name } => {
                let call = json!({
                    "index": self.calls, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
                });
                self.calls += 1;
                self.delta(json!({"tool_calls": [call]}), out);
            }
            Event::ToolArguments(arguments) => {
                let index = self.calls.saturating_sub(1);
                self.delta(
                    json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}),
                    out,
                );
            }
            Event::Finish(stop) => self.stop = Some(stop),
            Event::Usage(usage) => self.usage = Some(self.usage.map_or(usage, |known| known.merged(usage))),
            Event::Error(error) => out.extend(error.event(Dialect::OpenAiChat)),
            // Chat completions have no form for thoughts.
            Event::Start { .. } | Event::Thinking(_) => {}
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let stop = match self.stop {
            Some(Stop::End) | None if self.calls > 0 => Stop::Tools,
            stop => stop.unwrap_or_default(),
        };
        if !self.started {
            self.delta(json!({}), out);
        }
        self.chunk(json!([{"index": 0, "delta": {}, "finish_reason": word_of(stop)}]), out);
        if let Some(usage) = self.usage.filter(|_| self.stamp.stream_usage) {
            let Stamp { id, model, created, .. } = &self.stamp;
            let chunk = json!({
                "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": [],
                "usage": usage.to_openai(),
            });
            sse::write(out, "", &chunk.to_string());
        }
        sse::write(out, "", "[DONE]");
    }
}
