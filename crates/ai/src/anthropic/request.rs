use serde_json::{Map, Value, json};

use crate::ApiError;
use crate::chat::{ChatRequest, Format, Image, Message, Part, Role, Tool, ToolCall, ToolChoice, ToolResult};
use crate::json::{arguments, arguments_text, float, number, refuse, set, strict_list, text, texts};

/// How much a model may write if nobody said: messages need a number.
const MAX_TOKENS: u64 = 4_096;

/// Fields without which a request would mean something else.
const UNTRANSLATABLE: &[(&str, &str)] = &[
    ("mcp_servers", "offer the tools of the servers in tools, and call them yourself"),
    ("container", "it has no containers"),
];

pub(crate) fn read_request(body: &Value) -> Result<ChatRequest, ApiError> {
    refuse(body, UNTRANSLATABLE)?;
    let choice = &body["tool_choice"];
    let mut request = ChatRequest {
        model: text(body, "model").unwrap_or_default().to_owned(),
        system: match &body["system"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(blocks) => {
                blocks.iter().filter_map(|block| text(block, "text")).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        },
        max_tokens: number(body, "max_tokens"),
        temperature: float(body, "temperature"),
        top_p: float(body, "top_p"),
        top_k: number(body, "top_k"),
        stop: texts(body.get("stop_sequences")),
        user: text(&body["metadata"], "user_id").map(str::to_owned),
        effort: text(&body["output_config"], "effort").map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        stream_usage: true,
        tool_choice: match text(choice, "type") {
            Some("auto") => Some(ToolChoice::Auto),
            Some("any") => Some(ToolChoice::Required),
            Some("none") => Some(ToolChoice::None),
            Some("tool") => text(choice, "name").map(|name| ToolChoice::Named(name.to_owned())),
            _ => None,
        },
        parallel_tools: choice["disable_parallel_tool_use"].as_bool().map(|disabled| !disabled),
        ..ChatRequest::default()
    };
    for (at, tool) in strict_list(body, "tools")?.iter().enumerate() {
        request.tools.push(read_tool(tool, at)?);
    }
    let messages = strict_list(body, "messages")?;
    if messages.is_empty() {
        return Err(ApiError::invalid("messages: is missing or empty"));
    }
    for (at, message) in messages.iter().enumerate() {
        let role = match text(message, "role") {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            other => {
                return Err(ApiError::invalid(format!(
                    "messages.{at}.role: {:?} is neither user nor assistant",
                    other.unwrap_or_default()
                )));
            }
        };
        let parts = read_content(&message["content"], &format!("messages.{at}.content"))?;
        request.messages.push(Message { role, parts });
    }
    Ok(request)
}

fn read_tool(tool: &Value, at: usize) -> Result<Tool, ApiError> {
    match text(tool, "type") {
        None | Some("custom") => {}
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "tools.{at}.type: {other:?} is a tool of Anthropic, which the provider of this model does not have"
            )));
        }
    }
    let name = text(tool, "name").ok_or_else(|| ApiError::invalid(format!("tools.{at}.name: is missing")))?;
    Ok(Tool {
        name: name.to_owned(),
        description: text(tool, "description").map(str::to_owned),
        parameters: tool.get("input_schema").cloned(),
        strict: tool["strict"].as_bool(),
    })
}

fn read_content(content: &Value, field: &str) -> Result<Vec<Part>, ApiError> {
    match content {
        Value::String(text) => Ok(vec![Part::Text(text.clone())]),
        Value::Array(blocks) => {
            let mut parts = Vec::new();
            for (at, block) in blocks.iter().enumerate() {
                parts.extend(read_block(block, &format!("{field}.{at}"))?);
            }
            Ok(parts)
        }
        Value::Null => Ok(Vec::new()),
        _ => Err(ApiError::invalid(format!("{field}: has to be a text or a list"))),
    }
}

fn read_block(block: &Value, field: &str) -> Result<Option<Part>, ApiError> {
    let needed = |name: &str| {
        text(block, name).ok_or_else(|| ApiError::invalid(format!("{field}.{name}: is missing")))
    };
    Ok(Some(match text(block, "type") {
        Some("text") => Part::Text(needed("text")?.to_owned()),
        Some("thinking") => Part::Thinking(text(block, "thinking").unwrap_or_default().to_owned()),
        Some("redacted_thinking") => return Ok(None),
        Some("image") => {
            let source = &block["source"];
            Part::Image(match text(source, "type") {
                Some("url") => Image::Url(text(source, "url").unwrap_or_default().to_owned()),
                _ => Image::Data {
                    media_type: text(source, "media_type").unwrap_or("image/png").to_owned(),
                    data: text(source, "data").unwrap_or_default().to_owned(),
                },
            })
        }
        Some("tool_use") => Part::ToolCall(ToolCall {
            id: needed("id")?.to_owned(),
            name: needed("name")?.to_owned(),
            arguments: arguments_text(block.get("input")),
        }),
        Some("tool_result") => Part::ToolResult(ToolResult {
            id: needed("tool_use_id")?.to_owned(),
            content: read_content(&block["content"], &format!("{field}.content"))?,
            is_error: block["is_error"].as_bool().unwrap_or(false),
        }),
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "{field}.type: {other:?} cannot be translated for the provider of this model; text, image, tool_use and tool_result can"
            )));
        }
        None => return Err(ApiError::invalid(format!("{field}.type: is missing"))),
    }))
}

pub(crate) fn write_request(request: &ChatRequest) -> Result<Value, ApiError> {
    let mut body = Map::new();
    body.insert("model".into(), request.model.as_str().into());
    body.insert("max_tokens".into(), request.max_tokens.unwrap_or(MAX_TOKENS).into());
    let mut system = request.system.clone();
    // Messages have no form for "any JSON"; the words of the vendor's guide do it.
    match &request.format {
        Some(Format::Json) => system.push("Answer with a JSON object and nothing else.".to_owned()),
        Some(Format::Schema { schema, .. }) => {
            body.insert("output_config".into(), json!({"format": {"type": "json_schema", "schema": schema}}));
        }
        None => {}
    }
    if !system.is_empty() {
        body.insert("system".into(), system.join("\n\n").into());
    }
    let mut messages: Vec<Value> = Vec::new();
    for message in &request.messages {
        let content = write_blocks(&message.parts)?;
        let role = if message.role == Role::User { "user" } else { "assistant" };
        // Turns of one side are one turn.
        match messages.last_mut().filter(|last| last["role"] == role) {
            Some(last) => {
                if let Some(before) = last["content"].as_array_mut() {
                    before.extend(content);
                }
            }
            None if content.is_empty() => {}
            None => messages.push(json!({"role": role, "content": content})),
        }
    }
    body.insert("messages".into(), messages.into());
    // The vendor allows 0 to 1, others 0 to 2.
    set(&mut body, "temperature", request.temperature.map(|temperature| temperature.clamp(0.0, 1.0)));
    set(&mut body, "top_p", request.top_p);
    set(&mut body, "top_k", request.top_k);
    if !request.stop.is_empty() {
        body.insert("stop_sequences".into(), request.stop.clone().into());
    }
    if let Some(user) = &request.user {
        body.insert("metadata".into(), json!({"user_id": user}));
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(write_tool).collect());
        let mut choice = match &request.tool_choice {
            Some(ToolChoice::Auto) | None => json!({"type": "auto"}),
            Some(ToolChoice::Required) => json!({"type": "any"}),
            Some(ToolChoice::None) => json!({"type": "none"}),
            Some(ToolChoice::Named(name)) => json!({"type": "tool", "name": name}),
        };
        if let (Some(parallel), true) = (request.parallel_tools, choice["type"] != "none") {
            choice["disable_parallel_tool_use"] = (!parallel).into();
        }
        if request.tool_choice.is_some() || request.parallel_tools.is_some() {
            body.insert("tool_choice".into(), choice);
        }
    }
    if request.stream {
        body.insert("stream".into(), true.into());
    }
    Ok(body.into())
}

fn write_tool(tool: &Tool) -> Value {
    let mut written = Map::new();
    written.insert("name".into(), tool.name.as_str().into());
    set(&mut written, "description", tool.description.clone());
    let schema = tool.parameters.clone().filter(Value::is_object);
    written
        .insert("input_schema".into(), schema.unwrap_or_else(|| json!({"type": "object", "properties": {}})));
    written.into()
}

fn write_blocks(parts: &[Part]) -> Result<Vec<Value>, ApiError> {
    parts.iter().filter_map(|part| write_block(part).transpose()).collect()
}

fn write_block(part: &Part) -> Result<Option<Value>, ApiError> {
    Ok(Some(match part {
        // The vendor refuses empty texts.
        Part::Text(text) if text.is_empty() => return Ok(None),
        Part::Text(text) => json!({"type": "text", "text": text}),
        // Thoughts need a signature that only the vendor can make.
        Part::Thinking(_) => return Ok(None),
        Part::Image(Image::Url(url)) => json!({"type": "image", "source": {"type": "url", "url": url}}),
        Part::Image(Image::Data { media_type, data }) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        Part::ToolCall(call) => write_call(call)?,
        Part::ToolResult(result) => {
            let content = write_blocks(&result.content)?;
            json!({"type": "tool_result", "tool_use_id": result.id, "content": content, "is_error": result.is_error})
        }
    }))
}

pub(super) fn write_call(call: &ToolCall) -> Result<Value, String> {
    Ok(
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments(&call.id, &call.name, &call.arguments)?}),
    )
}
