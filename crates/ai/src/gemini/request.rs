use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::field;
use super::schema::to_json_schema;
use crate::ApiError;
use crate::chat::{ChatRequest, Format, Image, Message, Part, Role, Tool, ToolCall, ToolChoice, ToolResult};
use crate::json::{arguments, arguments_text, refuse, set, strict_list, text, texts};

/// Fields without which a request would mean something else.
const UNTRANSLATABLE: &[(&str, &str)] = &[
    ("cachedContent", "send the content itself in contents"),
    ("cached_content", "send the content itself in contents"),
];
/// The same of `generationConfig`.
const UNTRANSLATABLE_CONFIG: &[(&str, &str)] = &[
    ("speechConfig", "it does not speak"),
    ("speech_config", "it does not speak"),
    ("imageConfig", "it draws nothing"),
    ("image_config", "it draws nothing"),
];

/// Refuses settings of filters that others do not have, unless they switch filters off.
fn check_safety(body: &Value) -> Result<(), ApiError> {
    let settings = field(body, "safetySettings").and_then(Value::as_array).into_iter().flatten();
    for (at, setting) in settings.enumerate() {
        if !matches!(text(setting, "threshold"), Some("BLOCK_NONE" | "OFF") | None) {
            return Err(ApiError::invalid(format!(
                "safetySettings[{at}].threshold: the provider of this model has no such filter; only BLOCK_NONE and OFF can be asked of it"
            )));
        }
    }
    Ok(())
}

pub(crate) fn read_request(body: &Value) -> Result<ChatRequest, ApiError> {
    let null = Value::Null;
    let config = field(body, "generationConfig").unwrap_or(&null);
    refuse(body, UNTRANSLATABLE)?;
    refuse(config, UNTRANSLATABLE_CONFIG).map_err(|wrong| format!("generationConfig.{wrong}"))?;
    check_safety(body)?;
    let modalities = texts(field(config, "responseModalities"));
    if let Some(other) = modalities.iter().find(|name| !name.eq_ignore_ascii_case("text")) {
        return Err(ApiError::invalid(format!(
            "generationConfig.responseModalities: {other:?} cannot be asked of the provider of this model; TEXT can"
        )));
    }
    let number = |name: &str| field(config, name).and_then(Value::as_u64);
    let float = |name: &str| field(config, name).and_then(Value::as_f64);
    let mut request = ChatRequest {
        model: text(body, "model").unwrap_or_default().to_owned(),
        system: field(body, "systemInstruction").map(system).unwrap_or_default(),
        max_tokens: number("maxOutputTokens"),
        temperature: float("temperature"),
        top_p: float("topP"),
        top_k: float("topK").map(|number| number as u64),
        stop: texts(field(config, "stopSequences")),
        format: format(config),
        stream_usage: true,
        tool_choice: field(body, "toolConfig").and_then(tool_choice),
        ..ChatRequest::default()
    };
    if number("candidateCount").is_some_and(|count| count > 1) {
        return Err(ApiError::invalid(
            "generationConfig.candidateCount: several answers at once cannot be asked of this model",
        ));
    }
    for (at, tool) in strict_list(body, "tools")?.iter().enumerate() {
        let functions = field(tool, "functionDeclarations").and_then(Value::as_array).ok_or_else(|| {
            ApiError::invalid(format!(
                "tools[{at}]: only functionDeclarations can be translated for the provider of this model"
            ))
        })?;
        for (number, function) in functions.iter().enumerate() {
            request.tools.push(read_function(function, at, number)?);
        }
    }
    let contents = strict_list(body, "contents")?;
    if contents.is_empty() {
        return Err(ApiError::invalid("contents: is missing or empty"));
    }
    let mut calls = Calls::default();
    for (at, content) in contents.iter().enumerate() {
        let role = if text(content, "role") == Some("model") { Role::Assistant } else { Role::User };
        let mut parts = Vec::new();
        for (number, part) in strict_list(content, "parts")?.iter().enumerate() {
            parts.extend(read_part(part, &format!("contents[{at}].parts[{number}]"), &mut calls)?);
        }
        request.messages.push(Message { role, parts });
    }
    Ok(request)
}

/// Identifiers of calls, which this dialect may leave out: then a result belongs to the first call of its name that has none.
#[derive(Default)]
struct Calls {
    count: usize,
    open: HashMap<String, Vec<String>>,
}

impl Calls {
    fn call(&mut self, name: &str, id: Option<&str>) -> String {
        self.count += 1;
        let id = id.map_or_else(|| format!("call_{}", self.count), str::to_owned);
        self.open.entry(name.to_owned()).or_default().push(id.clone());
        id
    }

    fn result(&mut self, name: &str, id: Option<&str>) -> String {
        let open = self.open.entry(name.to_owned()).or_default();
        match id {
            Some(id) => {
                open.retain(|known| known != id);
                id.to_owned()
            }
            None if open.is_empty() => name.to_owned(),
            None => open.remove(0),
        }
    }
}

fn system(instruction: &Value) -> Vec<String> {
    match instruction {
        Value::String(text) => vec![text.clone()],
        instruction => {
            let parts = instruction["parts"].as_array().into_iter().flatten();
            parts.filter_map(|part| text(part, "text")).map(str::to_owned).collect()
        }
    }
}

fn format(config: &Value) -> Option<Format> {
    if field(config, "responseMimeType")?.as_str()? != "application/json" {
        return None;
    }
    let vendor = field(config, "responseSchema").filter(|schema| schema.is_object()).map(to_json_schema);
    let schema =
        vendor.or_else(|| field(config, "responseJsonSchema").filter(|schema| schema.is_object()).cloned());
    Some(match schema {
        Some(schema) => Format::Schema { name: "answer".to_owned(), schema, strict: None },
        None => Format::Json,
    })
}

fn tool_choice(config: &Value) -> Option<ToolChoice> {
    let calling = field(config, "functionCallingConfig")?;
    match text(calling, "mode")? {
        "NONE" => Some(ToolChoice::None),
        "ANY" => match field(calling, "allowedFunctionNames").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => only.as_str().map(|name| ToolChoice::Named(name.to_owned())),
            _ => Some(ToolChoice::Required),
        },
        _ => Some(ToolChoice::Auto),
    }
}

fn read_function(function: &Value, at: usize, number: usize) -> Result<Tool, ApiError> {
    let name = text(function, "name").ok_or_else(|| {
        ApiError::invalid(format!("tools[{at}].functionDeclarations[{number}].name: is missing"))
    })?;
    let schema = field(function, "parametersJsonSchema").cloned();
    Ok(Tool {
        name: name.to_owned(),
        description: text(function, "description").map(str::to_owned),
        parameters: schema.or_else(|| function.get("parameters").map(to_json_schema)),
        strict: None,
    })
}

fn read_part(part: &Value, place: &str, calls: &mut Calls) -> Result<Option<Part>, ApiError> {
    if let Some(said) = text(part, "text") {
        let is_thought = part["thought"].as_bool() == Some(true);
        return Ok(Some(if is_thought {
            Part::Thinking(said.to_owned())
        } else {
            Part::Text(said.to_owned())
        }));
    }
    if let Some(data) = field(part, "inlineData") {
        let media_type = field(data, "mimeType").and_then(Value::as_str).unwrap_or("image/png");
        if !media_type.starts_with("image/") {
            return Err(ApiError::invalid(format!(
                "{place}.inlineData: {media_type:?} cannot be translated for the provider of this model; images can"
            )));
        }
        let data = text(data, "data").unwrap_or_default().to_owned();
        return Ok(Some(Part::Image(Image::Data { media_type: media_type.to_owned(), data })));
    }
    if let Some(file) = field(part, "fileData") {
        let url = field(file, "fileUri").and_then(Value::as_str).unwrap_or_default();
        return Ok(Some(Part::Image(Image::Url(url.to_owned()))));
    }
    if let Some(call) = field(part, "functionCall") {
        let name = text(call, "name")
            .ok_or_else(|| ApiError::invalid(format!("{place}.functionCall.name: is missing")))?;
        let id = calls.call(name, text(call, "id"));
        let arguments = arguments_text(call.get("args"));
        return Ok(Some(Part::ToolCall(ToolCall { id, name: name.to_owned(), arguments })));
    }
    if let Some(response) = field(part, "functionResponse") {
        let name = text(response, "name").unwrap_or_default();
        let id = calls.result(name, text(response, "id"));
        let result = &response["response"];
        let is_error = result.get("error").is_some() && result.get("output").is_none();
        let said = match result.get("output").or(result.get("result")).unwrap_or(result) {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        return Ok(Some(Part::ToolResult(ToolResult { id, content: vec![Part::Text(said)], is_error })));
    }
    if part.as_object().is_none_or(|fields| fields.keys().all(|key| key.starts_with("thought"))) {
        return Ok(None);
    }
    Err(ApiError::invalid(format!(
        "{place}: cannot be translated for the provider of this model; text, inlineData, functionCall and functionResponse can"
    )))
}

pub(crate) fn write_request(request: &ChatRequest) -> Result<Value, ApiError> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut contents: Vec<Value> = Vec::new();
    for message in &request.messages {
        for part in &message.parts {
            if let Part::ToolCall(call) = part {
                names.insert(&call.id, &call.name);
            }
        }
        let parts = message.parts.iter().filter_map(|part| write_part(part, &names).transpose());
        let parts = parts.collect::<Result<Vec<Value>, String>>()?;
        let role = if message.role == Role::User { "user" } else { "model" };
        match contents.last_mut().filter(|last| last["role"] == role) {
            Some(last) => {
                if let Some(before) = last["parts"].as_array_mut() {
                    before.extend(parts);
                }
            }
            None if parts.is_empty() => {}
            None => contents.push(json!({"role": role, "parts": parts})),
        }
    }
    let mut body = Map::new();
    body.insert("contents".into(), contents.into());
    if !request.system.is_empty() {
        let parts: Vec<Value> = request.system.iter().map(|text| json!({"text": text})).collect();
        body.insert("systemInstruction".into(), json!({"parts": parts}));
    }
    let mut config = Map::new();
    set(&mut config, "maxOutputTokens", request.max_tokens);
    set(&mut config, "temperature", request.temperature);
    set(&mut config, "topP", request.top_p);
    set(&mut config, "topK", request.top_k);
    if !request.stop.is_empty() {
        config.insert("stopSequences".into(), request.stop.clone().into());
    }
    if let Some(format) = &request.format {
        config.insert("responseMimeType".into(), "application/json".into());
        if let Format::Schema { schema, .. } = format {
            config.insert("responseJsonSchema".into(), schema.clone());
        }
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    if !request.tools.is_empty() {
        let functions: Vec<Value> = request.tools.iter().map(write_function).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": functions}]));
    }
    let choice = request.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    });
    set(&mut body, "toolConfig", choice.map(|choice| json!({"functionCallingConfig": choice})));
    Ok(body.into())
}

fn write_function(tool: &Tool) -> Value {
    let mut function = Map::new();
    function.insert("name".into(), tool.name.as_str().into());
    set(&mut function, "description", tool.description.clone());
    set(&mut function, "parametersJsonSchema", tool.parameters.clone());
    function.into()
}

fn write_part(part: &Part, names: &HashMap<&str, &str>) -> Result<Option<Value>, String> {
    Ok(Some(match part {
        Part::Text(text) => json!({"text": text}),
        Part::Thinking(_) => return Ok(None),
        Part::Image(Image::Data { media_type, data }) => {
            json!({"inlineData": {"mimeType": media_type, "data": data}})
        }
        Part::Image(Image::Url(url)) => json!({"fileData": {"fileUri": url}}),
        Part::ToolCall(call) => write_call(call)?,
        Part::ToolResult(result) => {
            let name = names.get(result.id.as_str()).copied().unwrap_or(&result.id);
            let said = result.text();
            let key = if result.is_error { "error" } else { "output" };
            let response = match serde_json::from_str::<Value>(&said) {
                Ok(value @ Value::Object(_)) if !result.is_error => value,
                _ => json!({key: said}),
            };
            json!({"functionResponse": {"id": result.id, "name": name, "response": response}})
        }
    }))
}

pub(super) fn write_call(call: &ToolCall) -> Result<Value, String> {
    Ok(
        json!({"functionCall": {"id": call.id, "name": call.name, "args": arguments(&call.id, &call.name, &call.arguments)?}}),
    )
}
