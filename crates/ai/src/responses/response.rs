use serde_json::{Value, json};

use crate::{ChatResponse, Stamp, Stop, ToolCall};

pub(crate) fn write_response(response: &ChatResponse, stamp: &Stamp) -> Value {
    let mut output = Vec::new();
    let said = response.text();
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    if !said.is_empty() || calls.is_empty() {
        output.push(message(&stamp.id, "completed", json!([part(&said)])));
    }
    output.extend(calls.into_iter().map(|call| function_call(call, "completed")));
    let mut body = frame(stamp, status(response.stop), output.into());
    body["incomplete_details"] = details(response.stop);
    body["usage"] = response.usage.map_or(Value::Null, crate::Usage::to_responses);
    body
}

pub(super) fn status(stop: Stop) -> &'static str {
    match stop {
        Stop::Length | Stop::Filtered => "incomplete",
        Stop::End | Stop::Tools | Stop::Sequence => "completed",
    }
}

pub(super) fn details(stop: Stop) -> Value {
    match stop {
        Stop::Length => json!({"reason": "max_output_tokens"}),
        Stop::Filtered => json!({"reason": "content_filter"}),
        Stop::End | Stop::Tools | Stop::Sequence => Value::Null,
    }
}

/// A response with all that clients look for.
pub(super) fn frame(stamp: &Stamp, status: &str, output: Value) -> Value {
    json!({
        "id": stamp.id,
        "object": "response",
        "created_at": stamp.created,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "model": stamp.model,
        "output": output,
        "parallel_tool_calls": true,
        "temperature": null,
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "usage": null,
    })
}

pub(super) fn message(id: &str, status: &str, content: Value) -> Value {
    json!({"type": "message", "id": format!("msg_{id}"), "status": status, "role": "assistant", "content": content})
}

pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

pub(super) fn function_call(call: &ToolCall, status: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.name,
        "arguments": call.arguments, "status": status,
    })
}
