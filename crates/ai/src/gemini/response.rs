use serde_json::{Value, json};

use super::request::write_call;
use super::{field, stop_of, word_of};
use crate::json::{arguments_text, text};
use crate::{ApiError, ChatResponse, ErrorKind, Part, Stamp, Stop, ToolCall, Usage};

pub(crate) fn read_response(body: &Value) -> Result<ChatResponse, ApiError> {
    let candidate = &body["candidates"][0];
    if candidate.is_null() && text(&body["promptFeedback"], "blockReason").is_none() {
        return Err(ApiError::new(ErrorKind::Provider, "the provider answered without candidates"));
    }
    let parts: Vec<Part> = parts(candidate, 0);
    Ok(ChatResponse {
        id: text(body, "responseId").unwrap_or_default().to_owned(),
        model: text(body, "modelVersion").unwrap_or_default().to_owned(),
        stop: stop(body, parts.iter().any(|part| matches!(part, Part::ToolCall(_)))),
        parts,
        usage: Usage::from_gemini(&body["usageMetadata"]),
    })
}

/// What a candidate has written. `calls` were made before.
pub(super) fn parts(candidate: &Value, calls: usize) -> Vec<Part> {
    let mut calls = calls;
    let mut read = |part: &Value| {
        if let Some(said) = text(part, "text") {
            let is_thought = part["thought"].as_bool() == Some(true);
            return Some(if is_thought {
                Part::Thinking(said.to_owned())
            } else {
                Part::Text(said.to_owned())
            });
        }
        let call = field(part, "functionCall")?;
        calls += 1;
        Some(Part::ToolCall(ToolCall {
            id: text(call, "id")
                .filter(|id| !id.is_empty())
                .map_or_else(|| format!("call_{calls}"), str::to_owned),
            name: text(call, "name").unwrap_or_default().to_owned(),
            arguments: arguments_text(call.get("args")),
        }))
    };
    candidate["content"]["parts"].as_array().into_iter().flatten().filter_map(&mut read).collect()
}

/// Why the model stopped; this dialect does not tell calls of tools from the end.
pub(super) fn stop(body: &Value, has_calls: bool) -> Stop {
    let word = text(&body["candidates"][0], "finishReason");
    match word.map(stop_of) {
        None if text(&body["promptFeedback"], "blockReason").is_some() => Stop::Filtered,
        Some(Stop::End) | None if has_calls => Stop::Tools,
        stop => stop.unwrap_or_default(),
    }
}

pub(crate) fn write_response(response: &ChatResponse, stamp: &Stamp) -> Result<Value, String> {
    let write = |part: &Part| match part {
        Part::Text(text) => Some(Ok(json!({"text": text}))),
        Part::ToolCall(call) => Some(write_call(call)),
        Part::Thinking(text) => Some(Ok(json!({"text": text, "thought": true}))),
        _ => None,
    };
    let parts = response.parts.iter().filter_map(write).collect::<Result<Vec<Value>, String>>()?;
    let mut body = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": word_of(response.stop), "index": 0}],
        "modelVersion": stamp.model,
        "responseId": stamp.id,
    });
    if let Some(usage) = response.usage {
        body["usageMetadata"] = usage.to_gemini();
    }
    Ok(body)
}
