use serde_json::Value;

use crate::ApiError;
use crate::chat::{
    ChatRequest, Format, Image, Message, Part, Role, Tool, ToolCall, ToolChoice, ToolResult, texts,
};
use crate::json::{arguments_text, float, number, strict_list, text};

pub(crate) fn read_request(body: &Value) -> Result<ChatRequest, ApiError> {
    for field in ["previous_response_id", "conversation", "prompt"] {
        if body.get(field).is_some_and(|value| !value.is_null()) {
            return Err(ApiError::invalid(format!(
                "{field}: the provider of this model keeps nothing between calls; send the whole conversation in input"
            )));
        }
    }
    if body["background"].as_bool() == Some(true) {
        return Err(ApiError::invalid(
            "background: the provider of this model answers at once or not at all",
        ));
    }
    let format = &body["text"]["format"];
    let mut request = ChatRequest {
        model: text(body, "model").unwrap_or_default().to_owned(),
        system: text(body, "instructions").map(str::to_owned).into_iter().collect(),
        max_tokens: number(body, "max_output_tokens"),
        temperature: float(body, "temperature"),
        top_p: float(body, "top_p"),
        user: text(body, "user").map(str::to_owned),
        effort: text(&body["reasoning"], "effort").map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        stream_usage: true,
        parallel_tools: body["parallel_tool_calls"].as_bool(),
        format: match text(format, "type") {
            Some("json_object") => Some(Format::Json),
            Some("json_schema") => Some(Format::Schema {
                name: text(format, "name").unwrap_or("answer").to_owned(),
                schema: format["schema"].clone(),
                strict: format["strict"].as_bool(),
            }),
            _ => None,
        },
        tool_choice: match (body["tool_choice"].as_str(), text(&body["tool_choice"], "name")) {
            (Some("none"), _) => Some(ToolChoice::None),
            (Some("required"), _) => Some(ToolChoice::Required),
            (Some(_), _) => Some(ToolChoice::Auto),
            (None, Some(name)) => Some(ToolChoice::Named(name.to_owned())),
            (None, None) => None,
        },
        ..ChatRequest::default()
    };
    for (at, tool) in strict_list(body, "tools")?.iter().enumerate() {
        request.tools.push(read_tool(tool, at)?);
    }
    match &body["input"] {
        Value::String(said) => {
            request.messages.push(Message { role: Role::User, parts: vec![Part::Text(said.clone())] });
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                read_item(item, at, &mut request)?;
            }
        }
        _ => return Err(ApiError::invalid("input: is missing or empty")),
    }
    Ok(request)
}

fn read_tool(tool: &Value, at: usize) -> Result<Tool, ApiError> {
    if text(tool, "type") != Some("function") {
        return Err(ApiError::invalid(format!(
            "tools[{at}].type: {:?} is a tool of OpenAI, which the provider of this model does not have; function is one that it has",
            text(tool, "type").unwrap_or_default()
        )));
    }
    let name =
        text(tool, "name").ok_or_else(|| ApiError::invalid(format!("tools[{at}].name: is missing")))?;
    Ok(Tool {
        name: name.to_owned(),
        description: text(tool, "description").map(str::to_owned),
        parameters: tool.get("parameters").cloned(),
        strict: tool["strict"].as_bool(),
    })
}

fn read_item(item: &Value, at: usize, request: &mut ChatRequest) -> Result<(), ApiError> {
    let field = format!("input[{at}]");
    let needed =
        |name: &str| text(item, name).ok_or_else(|| ApiError::invalid(format!("{field}.{name}: is missing")));
    let (role, part) = match text(item, "type") {
        None | Some("message") => {
            let parts = read_content(&item["content"], &field)?;
            return match needed("role")? {
                "system" | "developer" => {
                    request.system.push(texts(&parts));
                    Ok(())
                }
                "assistant" => {
                    push(request, Role::Assistant, parts);
                    Ok(())
                }
                _ => {
                    push(request, Role::User, parts);
                    Ok(())
                }
            };
        }
        Some("function_call") => {
            let call = ToolCall {
                id: needed("call_id")?.to_owned(),
                name: needed("name")?.to_owned(),
                arguments: arguments_text(item.get("arguments")),
            };
            (Role::Assistant, Part::ToolCall(call))
        }
        Some("function_call_output") => {
            let content = match &item["output"] {
                Value::String(said) => vec![Part::Text(said.clone())],
                output => read_content(output, &format!("{field}.output"))?,
            };
            (
                Role::User,
                Part::ToolResult(ToolResult { id: needed("call_id")?.to_owned(), content, is_error: false }),
            )
        }
        // Thoughts of the vendor's models mean nothing to others.
        Some("reasoning") => return Ok(()),
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "{field}.type: {other:?} cannot be translated for the provider of this model; message, function_call and function_call_output can"
            )));
        }
    };
    push(request, role, vec![part]);
    Ok(())
}

/// Adds to the turn of the same side, if it is the last.
fn push(request: &mut ChatRequest, role: Role, parts: Vec<Part>) {
    match request.messages.last_mut().filter(|last| last.role == role) {
        Some(last) => last.parts.extend(parts),
        None => request.messages.push(Message { role, parts }),
    }
}

fn read_content(content: &Value, field: &str) -> Result<Vec<Part>, ApiError> {
    match content {
        Value::String(said) => Ok(vec![Part::Text(said.clone())]),
        Value::Array(parts) => parts
            .iter()
            .enumerate()
            .map(|(at, part)| match text(part, "type") {
                Some("input_text" | "output_text" | "text") => {
                    Ok(Part::Text(text(part, "text").unwrap_or_default().to_owned()))
                }
                Some("refusal") => Ok(Part::Text(text(part, "refusal").unwrap_or_default().to_owned())),
                Some("input_image") if text(part, "image_url").is_some() => {
                    Ok(Part::Image(Image::from_url(text(part, "image_url").unwrap_or_default())))
                }
                other => Err(ApiError::invalid(format!(
                    "{field}.content[{at}].type: {:?} cannot be translated for the provider of this model; input_text and input_image with image_url can",
                    other.unwrap_or_default()
                ))),
            })
            .collect(),
        _ => Err(ApiError::invalid(format!("{field}.content: has to be a text or a list"))),
    }
}
