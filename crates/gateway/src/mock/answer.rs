use serde_json::{Map, Value};
use watchkeeper_ai::{ChatRequest, ChatResponse, Event, Part, Role, Stop, ToolCall, ToolChoice, Usage};

use super::script::Script;

/// What the mock answers: calls of all tools that it is offered, or what it was told.
pub(super) fn say(request: &ChatRequest, script: &Script) -> ChatResponse {
    let has_results = request.messages.last().is_some_and(|last| {
        last.role == Role::User && last.parts.iter().any(|part| matches!(part, Part::ToolResult(_)))
    });
    let mut words: Vec<String> = match script.words {
        Some(count) => (1..=count).map(|number| format!("word{number}")).collect(),
        None => {
            let images = request.messages.iter().flat_map(|message| &message.parts);
            let images = images.filter(|part| matches!(part, Part::Image(_))).count();
            let told = last_words(request);
            let shown = if images > 0 { format!("and {images} images") } else { String::new() };
            ["You said:", told.as_str(), shown.as_str()]
                .join(" ")
                .split_whitespace()
                .map(str::to_owned)
                .collect()
        }
    };
    let mut stop = Stop::End;
    if let Some(most) = request.max_tokens.and_then(|most| usize::try_from(most).ok())
        && words.len() > most
    {
        words.truncate(most);
        stop = Stop::Length;
    }
    let calls = !request.tools.is_empty() && !has_results && request.tool_choice != Some(ToolChoice::None);
    let parts = match calls {
        true => {
            stop = Stop::Tools;
            request
                .tools
                .iter()
                .enumerate()
                .map(|(at, tool)| call(at, &tool.name, tool.parameters.as_ref()))
                .collect()
        }
        false => vec![Part::Text(words.join(" "))],
    };
    let asked = request.system.iter().map(String::as_str).chain(std::iter::once("prompt"));
    let input = asked.map(|text| text.split_whitespace().count() as u64).sum::<u64>()
        + last_words(request).split_whitespace().count() as u64;
    let output = if calls { 10 * parts.len() as u64 } else { words.len() as u64 };
    let usage = Some(Usage { input, output, ..Usage::default() });
    ChatResponse { id: String::new(), model: request.model.clone(), parts, stop, usage }
}

/// A call with an argument for every property that has to be there.
fn call(at: usize, name: &str, schema: Option<&Value>) -> Part {
    let mut arguments = Map::new();
    let required = schema.and_then(|schema| schema["required"].as_array()).into_iter().flatten();
    for property in required.filter_map(Value::as_str) {
        let kind = schema.and_then(|schema| schema["properties"][property]["type"].as_str());
        let value = match kind {
            Some("integer" | "number") => 7.into(),
            Some("boolean") => true.into(),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            _ => "Paris".into(),
        };
        arguments.insert(property.to_owned(), value);
    }
    let id = format!("call_mock_{at}");
    Part::ToolCall(ToolCall { id, name: name.to_owned(), arguments: Value::from(arguments).to_string() })
}

/// An answer as the pieces of a stream.
pub(super) fn events(answer: &ChatResponse) -> Vec<Event> {
    // Who has a place for it there says at the start what the prompt was.
    let prompt = answer.usage.map(|usage| Event::Usage(Usage { input: usage.input, ..Usage::default() }));
    let mut events: Vec<Event> = prompt.into_iter().collect();
    events.push(Event::Start { id: answer.id.clone(), model: answer.model.clone() });
    for part in &answer.parts {
        match part {
            Part::Text(text) => {
                events.extend(text.split_inclusive(' ').map(|word| Event::Text(word.to_owned())));
            }
            Part::ToolCall(call) => {
                events.push(Event::ToolStart { id: call.id.clone(), name: call.name.clone() });
                let (first, second) = call.arguments.split_at(call.arguments.len() / 2);
                events.extend([first, second].map(|piece| Event::ToolArguments(piece.to_owned())));
            }
            _ => {}
        }
    }
    events.push(Event::Finish(answer.stop));
    events.extend(answer.usage.map(Event::Usage));
    events
}

/// All texts of the last turn.
fn last_words(request: &ChatRequest) -> String {
    let Some(last) = request.messages.last() else { return String::new() };
    let texts = last.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::ToolResult(result) => Some(result.text()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}
