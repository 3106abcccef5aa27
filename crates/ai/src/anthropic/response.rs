use serde_json::{Value, json};

use super::request::write_call;
use super::{stop_of, word_of};
use crate::json::{arguments_text, text};
use crate::{ApiError, ChatResponse, ErrorKind, Part, Stamp, ToolCall, Usage};

pub(crate) fn read_response(body: &Value) -> Result<ChatResponse, ApiError> {
    let Some(blocks) = body["content"].as_array() else {
        return Err(ApiError::new(ErrorKind::Provider, "the provider answered without content"));
    };
    let read = |block: &Value| match text(block, "type") {
        Some("text") => Some(Part::Text(text(block, "text")?.to_owned())),
        Some("thinking") => Some(Part::Thinking(text(block, "thinking")?.to_owned())),
        Some("tool_use") => Some(Part::ToolCall(ToolCall {
            id: text(block, "id").unwrap_or_default().to_owned(),
            name: text(block, "name").unwrap_or_default().to_owned(),
            arguments: arguments_text(block.get("input")),
        })),
        _ => None,
    };
    Ok(ChatResponse {
        id: text(body, "id").unwrap_or_default().to_owned(),
        model: text(body, "model").unwrap_or_default().to_owned(),
        parts: blocks.iter().filter_map(read).collect(),
        stop: stop_of(text(body, "stop_reason").unwrap_or_default()),
        usage: Usage::from_anthropic(&body["usage"]),
    })
}

pub(crate) fn write_response(response: &ChatResponse, stamp: &Stamp) -> Result<Value, String> {
    let write = |part: &Part| match part {
        Part::Text(text) => Some(Ok(json!({"type": "text", "text": text}))),
        Part::ToolCall(call) => Some(write_call(call)),
        _ => None,
    };
    let content = response.parts.iter().filter_map(write).collect::<Result<Vec<Value>, String>>()?;
    Ok(json!({
        "id": stamp.id,
        "type": "message",
        "role": "assistant",
        "model": stamp.model,
        "content": content,
        "stop_reason": word_of(response.stop),
        "stop_sequence": null,
        "usage": response.usage.unwrap_or_default().to_anthropic(),
    }))
}
