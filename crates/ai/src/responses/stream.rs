use serde_json::{Value, json};

use super::response::{details, frame, function_call, message, part, status};
use crate::json::text;
use crate::{Event, Stamp, Stop, ToolCall, Usage, sse};

/// Writes events of responses.
#[derive(Debug)]
pub(crate) struct Encoder {
    stamp: Stamp,
    started: bool,
    number: u64,
    /// What was written and is complete.
    output: Vec<Value>,
    open: Option<Open>,
    stop: Stop,
    usage: Option<Usage>,
}

/// The item that is being written.
#[derive(Debug)]
enum Open {
    Text(String),
    Call(ToolCall),
}

impl Encoder {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self {
            stamp,
            started: false,
            number: 0,
            output: Vec::new(),
            open: None,
            stop: Stop::End,
            usage: None,
        }
    }

    fn write(&mut self, mut event: Value, out: &mut Vec<u8>) {
        event["sequence_number"] = self.number.into();
        self.number += 1;
        sse::write(out, text(&event, "type").unwrap_or_default(), &event.to_string());
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let response = frame(&self.stamp, "in_progress", json!([]));
        self.write(json!({"type": "response.created", "response": response}), out);
        self.write(json!({"type": "response.in_progress", "response": response}), out);
    }

    /// The number of the item that is being written.
    fn index(&self) -> usize {
        self.output.len()
    }

    /// The name of the message that is being written.
    fn message_id(&self) -> String {
        format!("msg_{}", self.stamp.id)
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let index = self.index();
        let item = match self.open.take() {
            None => return,
            Some(Open::Text(said)) => {
                let id = self.message_id();
                let done = json!({"type": "response.output_text.done", "item_id": id, "output_index": index, "content_index": 0, "text": said, "logprobs": []});
                self.write(done, out);
                let done = json!({"type": "response.content_part.done", "item_id": id, "output_index": index, "content_index": 0, "part": part(&said)});
                self.write(done, out);
                message(&self.stamp.id, "completed", json!([part(&said)]))
            }
            Some(Open::Call(call)) => {
                let id = format!("fc_{}", call.id);
                let done = json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": index, "name": call.name, "arguments": call.arguments});
                self.write(done, out);
                function_call(&call, "completed")
            }
        };
        self.write(json!({"type": "response.output_item.done", "output_index": index, "item": item}), out);
        self.output.push(item);
    }

    pub(crate) fn take(&mut self, event: Event, out: &mut Vec<u8>) {
        match event {
            Event::Start { .. } => self.start(out),
            Event::Text(piece) => self.text(piece, out),
            Event::ToolStart { id, name } => {
                self.start(out);
                self.close(out);
                let call = ToolCall { id, name, arguments: String::new() };
                let item = function_call(&call, "in_progress");
                let added =
                    json!({"type": "response.output_item.added", "output_index": self.index(), "item": item});
                self.write(added, out);
                self.open = Some(Open::Call(call));
            }
            Event::ToolArguments(piece) => {
                let index = self.index();
                let Some(Open::Call(call)) = &mut self.open else { return };
                call.arguments.push_str(&piece);
                let delta = json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{}", call.id), "output_index": index, "delta": piece});
                self.write(delta, out);
            }
            Event::Finish(stop) => self.stop = stop,
            Event::Usage(usage) => self.usage = Some(self.usage.map_or(usage, |known| known.merged(usage))),
            Event::Error(error) => {
                let event = json!({"type": "error", "code": error.code.unwrap_or("server_error"), "message": error.message, "param": null});
                self.write(event, out);
            }
            Event::Thinking(_) => {}
        }
    }

    fn text(&mut self, piece: String, out: &mut Vec<u8>) {
        self.start(out);
        let id = self.message_id();
        if !matches!(self.open, Some(Open::Text(_))) {
            self.close(out);
            let index = self.index();
            let item = message(&self.stamp.id, "in_progress", json!([]));
            self.write(
                json!({"type": "response.output_item.added", "output_index": index, "item": item}),
                out,
            );
            let added = json!({"type": "response.content_part.added", "item_id": id, "output_index": index, "content_index": 0, "part": part("")});
            self.write(added, out);
            self.open = Some(Open::Text(String::new()));
        }
        let delta = json!({"type": "response.output_text.delta", "item_id": id, "output_index": self.index(), "content_index": 0, "delta": piece, "logprobs": []});
        if let Some(Open::Text(said)) = &mut self.open {
            said.push_str(&piece);
        }
        self.write(delta, out);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.start(out);
        self.close(out);
        let status = status(self.stop);
        let mut response = frame(&self.stamp, status, std::mem::take(&mut self.output).into());
        response["incomplete_details"] = details(self.stop);
        response["usage"] = self.usage.map_or(Value::Null, Usage::to_responses);
        self.write(json!({"type": format!("response.{status}"), "response": response}), out);
    }
}
