use serde_json::{Map, Value, json};

use super::request::{read_calls, write_call};
use super::{stop_of, word_of};
use crate::json::text;
use crate::{ApiError, ChatResponse, ErrorKind, Part, Stamp, Usage};

pub(crate) fn read_response(body: &Value) -> Result<ChatResponse, ApiError> {
    let choice = body["choices"].get(0).filter(|choice| choice.is_object());
    let choice =
        choice.ok_or_else(|| ApiError::new(ErrorKind::Provider, "the provider answered without choices"))?;
    let message = &choice["message"];
    let mut parts = Vec::new();
    if let Some(thoughts) = text(message, "reasoning_content").filter(|text| !text.is_empty()) {
        parts.push(Part::Thinking(thoughts.to_owned()));
    }
    let said = text(message, "content").or(text(message, "refusal")).filter(|text| !text.is_empty());
    parts.extend(said.map(|text| Part::Text(text.to_owned())));
    parts.extend(read_calls(message));
    Ok(ChatResponse {
        id: text(body, "id").unwrap_or_default().to_owned(),
        model: text(body, "model").unwrap_or_default().to_owned(),
        parts,
        stop: stop_of(text(choice, "finish_reason").unwrap_or_default()),
        usage: Usage::from_openai(&body["usage"]),
    })
}

pub(crate) fn write_response(response: &ChatResponse, stamp: &Stamp) -> Value {
    let calls: Vec<Value> = response.tool_calls().map(write_call).collect();
    let said = response.text();
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert(
        "content".into(),
        if said.is_empty() && !calls.is_empty() { Value::Null } else { said.into() },
    );
    message.insert("refusal".into(), Value::Null);
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    let mut body = json!({
        "id": stamp.id,
        "object": "chat.completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": word_of(response.stop)}],
    });
    if let Some(usage) = response.usage {
        body["usage"] = usage.to_openai();
    }
    body
}
