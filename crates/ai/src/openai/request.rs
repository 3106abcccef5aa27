use serde_json::{Map, Value, json};

use crate::ApiError;
use crate::chat::{
    ChatRequest, Format, Image, Message, Part, Role, Tool, ToolCall, ToolChoice, ToolResult, texts,
};
use crate::json::{arguments_text, float, list, number, refuse, set, strict_list, text, texts as text_list};

/// Fields without which a request would mean something else.
const UNTRANSLATABLE: &[(&str, &str)] = &[
    ("audio", "it does not speak"),
    ("web_search_options", "it does not search the web"),
    ("functions", "use tools"),
    ("function_call", "use tool_choice"),
    ("logit_bias", "leave it out"),
];

pub(crate) fn read_request(body: &Value) -> Result<ChatRequest, ApiError> {
    refuse(body, UNTRANSLATABLE)?;
    if let Some(other) = text_list(body.get("modalities")).iter().find(|name| *name != "text") {
        return Err(ApiError::invalid(format!(
            "modalities: {other:?} cannot be asked of the provider of this model; text can"
        )));
    }
    let mut request = ChatRequest {
        model: text(body, "model").unwrap_or_default().to_owned(),
        max_tokens: number(body, "max_completion_tokens").or(number(body, "max_tokens")),
        temperature: float(body, "temperature"),
        top_p: float(body, "top_p"),
        stop: text_list(body.get("stop")),
        user: text(body, "user").map(str::to_owned),
        effort: text(body, "reasoning_effort").map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        stream_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        parallel_tools: body["parallel_tool_calls"].as_bool(),
        format: format(&body["response_format"]),
        tool_choice: tool_choice(&body["tool_choice"]),
        ..ChatRequest::default()
    };
    if number(body, "n").is_some_and(|count| count > 1) {
        return Err(ApiError::invalid(
            "n: several answers at once cannot be asked of this model; send several requests",
        ));
    }
    for (at, tool) in strict_list(body, "tools")?.iter().enumerate() {
        request.tools.push(read_tool(tool, at)?);
    }
    let messages = strict_list(body, "messages")?;
    if messages.is_empty() {
        return Err(ApiError::invalid("messages: is missing or empty"));
    }
    for (at, message) in messages.iter().enumerate() {
        read_message(message, at, &mut request)?;
    }
    Ok(request)
}

fn read_tool(tool: &Value, at: usize) -> Result<Tool, ApiError> {
    let function = &tool["function"];
    match (text(tool, "type"), text(function, "name")) {
        (Some("function"), Some(name)) => Ok(Tool {
            name: name.to_owned(),
            description: text(function, "description").map(str::to_owned),
            parameters: function.get("parameters").cloned(),
            strict: function["strict"].as_bool(),
        }),
        (Some("function") | None, _) => {
            Err(ApiError::invalid(format!("tools[{at}].function.name: is missing")))
        }
        (Some(other), _) => Err(ApiError::invalid(format!(
            "tools[{at}].type: {other:?} cannot be translated for the provider of this model; only \"function\" can"
        ))),
    }
}

fn tool_choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        Some(_) => Some(ToolChoice::Auto),
        None => text(&value["function"], "name").map(|name| ToolChoice::Named(name.to_owned())),
    }
}

fn format(value: &Value) -> Option<Format> {
    match text(value, "type") {
        Some("json_object") => Some(Format::Json),
        Some("json_schema") => {
            let schema = &value["json_schema"];
            Some(Format::Schema {
                name: text(schema, "name").unwrap_or("answer").to_owned(),
                schema: schema["schema"].clone(),
                strict: schema["strict"].as_bool(),
            })
        }
        _ => None,
    }
}

fn read_message(message: &Value, at: usize, request: &mut ChatRequest) -> Result<(), ApiError> {
    let field = format!("messages[{at}]");
    let content = || read_content(&message["content"], &field);
    match text(message, "role") {
        Some("system" | "developer") => request.system.push(texts(&content()?)),
        Some("user") => request.messages.push(Message { role: Role::User, parts: content()? }),
        Some("assistant") => {
            let mut parts = content()?;
            for (number, call) in strict_list(message, "tool_calls")?.iter().enumerate() {
                let function = &call["function"];
                let name = text(function, "name").ok_or_else(|| {
                    ApiError::invalid(format!("{field}.tool_calls[{number}].function.name: is missing"))
                })?;
                parts.push(Part::ToolCall(ToolCall {
                    id: text(call, "id").unwrap_or_default().to_owned(),
                    name: name.to_owned(),
                    arguments: arguments_text(function.get("arguments")),
                }));
            }
            request.messages.push(Message { role: Role::Assistant, parts });
        }
        Some("tool") => {
            let id = text(message, "tool_call_id")
                .ok_or_else(|| ApiError::invalid(format!("{field}.tool_call_id: is missing")))?;
            let result =
                Part::ToolResult(ToolResult { id: id.to_owned(), content: content()?, is_error: false });
            // Results of tools that were called together are one turn elsewhere.
            match request.messages.last_mut() {
                Some(Message { role: Role::User, parts })
                    if parts.iter().all(|part| matches!(part, Part::ToolResult(_))) =>
                {
                    parts.push(result);
                }
                _ => request.messages.push(Message { role: Role::User, parts: vec![result] }),
            }
        }
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "{field}.role: {other:?} is not one of system, developer, user, assistant and tool"
            )));
        }
        None => return Err(ApiError::invalid(format!("{field}.role: is missing"))),
    }
    Ok(())
}

fn read_content(content: &Value, field: &str) -> Result<Vec<Part>, ApiError> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::Text(text.clone())]),
        Value::Array(parts) => {
            parts.iter().enumerate().map(|(at, part)| read_part(part, field, at)).collect()
        }
        _ => Err(ApiError::invalid(format!("{field}.content: has to be a text or a list"))),
    }
}

fn read_part(part: &Value, field: &str, at: usize) -> Result<Part, ApiError> {
    let missing = |name: &str| ApiError::invalid(format!("{field}.content[{at}].{name}: is missing"));
    match text(part, "type") {
        Some("text") => Ok(Part::Text(text(part, "text").ok_or_else(|| missing("text"))?.to_owned())),
        Some("refusal") => Ok(Part::Text(text(part, "refusal").unwrap_or_default().to_owned())),
        Some("image_url") => {
            let url = text(&part["image_url"], "url").ok_or_else(|| missing("image_url.url"))?;
            Ok(Part::Image(Image::from_url(url)))
        }
        Some(other) => Err(ApiError::invalid(format!(
            "{field}.content[{at}].type: {other:?} cannot be translated for the provider of this model; text and image_url can"
        ))),
        None => Err(missing("type")),
    }
}

pub(crate) fn write_request(request: &ChatRequest) -> Result<Value, ApiError> {
    let mut messages: Vec<Value> =
        request.system.iter().map(|text| json!({"role": "system", "content": text})).collect();
    for message in &request.messages {
        match message.role {
            Role::User => write_user(message, &mut messages),
            Role::Assistant => messages.push(write_assistant(message)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), request.model.as_str().into());
    body.insert("messages".into(), messages.into());
    set(&mut body, "max_completion_tokens", request.max_tokens);
    set(&mut body, "temperature", request.temperature);
    set(&mut body, "top_p", request.top_p);
    set(&mut body, "reasoning_effort", request.effort.clone());
    set(&mut body, "user", request.user.clone());
    if !request.stop.is_empty() {
        body.insert("stop".into(), request.stop.clone().into());
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(write_tool).collect());
        set(&mut body, "parallel_tool_calls", request.parallel_tools);
    }
    let choice = request.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    });
    set(&mut body, "tool_choice", choice);
    let format = request.format.as_ref().map(|format| match format {
        Format::Json => json!({"type": "json_object"}),
        Format::Schema { name, schema, strict } => {
            json!({"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": strict}})
        }
    });
    set(&mut body, "response_format", format);
    if request.stream {
        body.insert("stream".into(), true.into());
        // Whoever pays wants to know.
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Ok(body.into())
}

fn write_tool(tool: &Tool) -> Value {
    let mut function = Map::new();
    function.insert("name".into(), tool.name.as_str().into());
    set(&mut function, "description", tool.description.clone());
    set(&mut function, "parameters", tool.parameters.clone());
    set(&mut function, "strict", tool.strict);
    json!({"type": "function", "function": function})
}

fn write_user(message: &Message, messages: &mut Vec<Value>) {
    let mut rest = Vec::new();
    for part in &message.parts {
        match part {
            Part::ToolResult(result) => {
                messages.push(json!({"role": "tool", "tool_call_id": result.id, "content": result.text()}));
                // Messages of tools have no images: these follow as words of the user.
                let images = result.content.iter().filter(|part| matches!(part, Part::Image(_)));
                rest.extend(images.filter_map(write_part));
            }
            part => rest.extend(write_part(part)),
        }
    }
    match rest.as_slice() {
        [] => {}
        [only] if only["type"] == "text" => messages.push(json!({"role": "user", "content": only["text"]})),
        _ => messages.push(json!({"role": "user", "content": rest})),
    }
}

fn write_part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Image(image) => Some(json!({"type": "image_url", "image_url": {"url": image.to_url()}})),
        _ => None,
    }
}

fn write_assistant(message: &Message) -> Value {
    let text = texts(&message.parts);
    let calls = message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(write_call(call)),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let mut written = Map::new();
    written.insert("role".into(), "assistant".into());
    written.insert(
        "content".into(),
        if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() },
    );
    if !calls.is_empty() {
        written.insert("tool_calls".into(), calls.into());
    }
    written.into()
}

pub(super) fn write_call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

pub(super) fn read_calls(message: &Value) -> Vec<Part> {
    let read = |call: &Value| {
        Part::ToolCall(ToolCall {
            id: text(call, "id").unwrap_or_default().to_owned(),
            name: text(&call["function"], "name").unwrap_or_default().to_owned(),
            arguments: arguments_text(call["function"].get("arguments")),
        })
    };
    list(message, "tool_calls").iter().map(read).collect()
}
