//! Requests, responses and streams in the shapes that vendors document, from each dialect into each other.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use watchkeeper_ai::sse::{Splitter, SseEvent};
use watchkeeper_ai::{
    ApiError, ChatResponse, Decoder, Dialect, Encoder, ErrorKind, Event, Part, Stamp, Stop, ToolCall, Usage,
};

const PROVIDERS: [Dialect; 3] = [Dialect::OpenAiChat, Dialect::Anthropic, Dialect::Gemini];
const CLIENTS: [Dialect; 4] =
    [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini];

/// A conversation with an image, two calls at once and their results, as each vendor writes it.
fn conversation(dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    match dialect {
        Dialect::OpenAiChat => json!({
            "model": "m", "max_completion_tokens": 50, "temperature": 0.5, "stop": ["END"], "parallel_tool_calls": true,
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [
                    {"type": "text", "text": "weather here?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Paris\"}"}},
                    {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "rain"},
                {"role": "tool", "tool_call_id": "c2", "content": "sun"},
            ],
            "tools": [{"type": "function", "function": {"name": "weather", "description": "tells", "parameters": schema}}],
            "tool_choice": "auto",
        }),
        Dialect::OpenAiResponses => json!({
            "model": "m", "max_output_tokens": 50, "temperature": 0.5, "instructions": "be brief", "parallel_tool_calls": true,
            "input": [
                {"role": "user", "content": [
                    {"type": "input_text", "text": "weather here?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                ]},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Paris\"}"},
                {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{\"city\":\"Rome\"}"},
                {"type": "function_call_output", "call_id": "c1", "output": "rain"},
                {"type": "function_call_output", "call_id": "c2", "output": "sun"},
            ],
            "tools": [{"type": "function", "name": "weather", "description": "tells", "parameters": schema}],
            "tool_choice": "auto",
        }),
        Dialect::Anthropic => json!({
            "model": "m", "max_tokens": 50, "temperature": 0.5, "stop_sequences": ["END"], "system": [{"type": "text", "text": "be brief"}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "weather here?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
                    {"type": "tool_use", "id": "c2", "name": "weather", "input": {"city": "Rome"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "rain"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "sun"}]},
                ]},
            ],
            "tools": [{"name": "weather", "description": "tells", "input_schema": schema}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": false},
        }),
        _ => json!({
            "model": "m",
            "generationConfig": {"maxOutputTokens": 50, "temperature": 0.5, "stopSequences": ["END"]},
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "weather here?"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
                {"role": "model", "parts": [
                    {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Paris"}}},
                    {"functionCall": {"id": "c2", "name": "weather", "args": {"city": "Rome"}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "weather", "response": {"output": "rain"}}},
                    {"functionResponse": {"id": "c2", "name": "weather", "response": {"result": "sun"}}},
                ]},
            ],
            "tools": [{"functionDeclarations": [{"name": "weather", "description": "tells", "parameters": {
                "type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"],
            }}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        }),
    }
}

#[test]
fn a_conversation_means_the_same_in_every_dialect() {
    let expected = Dialect::OpenAiChat.read_request(&conversation(Dialect::OpenAiChat)).unwrap();
    assert_eq!(expected.messages.len(), 3);
    for client in CLIENTS {
        let mut read = client.read_request(&conversation(client)).unwrap();
        // What a dialect does not have at all.
        read.stream_usage = expected.stream_usage;
        if client == Dialect::OpenAiResponses {
            read.stop = expected.stop.clone();
        }
        if client == Dialect::Gemini {
            read.parallel_tools = expected.parallel_tools;
        }
        assert_eq!(read, expected, "read from {client:?}");
        for provider in PROVIDERS {
            let written = provider.write_request(&read).unwrap();
            let mut again = provider.read_request(&written).unwrap();
            again.stream_usage = expected.stream_usage;
            if provider == Dialect::Gemini {
                again.parallel_tools = expected.parallel_tools;
                again.model = expected.model.clone();
            }
            assert_eq!(again, expected, "{client:?} to {provider:?}: {written:#}");
        }
    }
}

fn answer(dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenAiChat => json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "real",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "Hello", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Paris\"}"}},
            ]}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4}},
        }),
        Dialect::Anthropic => json!({
            "id": "x", "type": "message", "role": "assistant", "model": "real",
            "content": [{"type": "text", "text": "Hello"}, {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 5},
        }),
        _ => json!({
            "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                {"text": "Hello"}, {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Paris"}}},
            ]}}],
            "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "totalTokenCount": 15},
            "modelVersion": "real", "responseId": "x",
        }),
    }
}

#[test]
fn an_answer_means_the_same_in_every_dialect() {
    let call = ToolCall { id: "c1".into(), name: "weather".into(), arguments: "{\"city\":\"Paris\"}".into() };
    let expected = ChatResponse {
        id: "x".into(),
        model: "real".into(),
        parts: vec![Part::Text("Hello".into()), Part::ToolCall(call)],
        stop: Stop::Tools,
        usage: Some(Usage { input: 10, cached: 4, output: 5, ..Usage::default() }),
    };
    let stamp = Stamp { id: "x".into(), model: "real".into(), ..Stamp::default() };
    for provider in PROVIDERS {
        let read = provider.read_response(&answer(provider)).unwrap();
        assert_eq!(read, expected, "{provider:?}");
        for client in PROVIDERS {
            let written = client.write_response(&read, &stamp).unwrap();
            assert_eq!(client.read_response(&written).unwrap(), expected, "{provider:?} to {client:?}");
            assert_eq!(client.usage(&written), expected.usage);
        }
        let written = Dialect::OpenAiResponses.write_response(&read, &stamp).unwrap();
        assert_eq!(written["output"][0]["content"][0]["text"], "Hello");
        assert_eq!(written["output"][1]["call_id"], "c1");
        assert_eq!(Dialect::OpenAiResponses.usage(&written), expected.usage);
    }
}

/// A stream with text, two calls at once, and usage, as each vendor sends it.
fn stream(dialect: Dialect) -> String {
    let events: Vec<(&str, Value)> = match dialect {
        Dialect::OpenAiChat => {
            let chunk = |delta: Value, finish: Value| {
                (
                    "",
                    json!({"id": "x", "object": "chat.completion.chunk", "model": "real", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
                )
            };
            vec![
                chunk(json!({"role": "assistant", "content": ""}), Value::Null),
                chunk(json!({"content": "Hel"}), Value::Null),
                chunk(json!({"content": "lo"}), Value::Null),
                chunk(
                    json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}]}),
                    Value::Null,
                ),
                chunk(
                    json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"city\":"}}]}),
                    Value::Null,
                ),
                chunk(
                    json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"Paris\"}"}}]}),
                    Value::Null,
                ),
                chunk(
                    json!({"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "time", "arguments": "{\"a\":1}"}}]}),
                    Value::Null,
                ),
                chunk(json!({}), "tool_calls".into()),
                (
                    "",
                    json!({"id": "x", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
                ),
                ("", json!("DONE")),
            ]
        }
        Dialect::Anthropic => {
            let delta = |index: u32, delta: Value| {
                (
                    "content_block_delta",
                    json!({"type": "content_block_delta", "index": index, "delta": delta}),
                )
            };
            let start = |index: u32, block: Value| {
                (
                    "content_block_start",
                    json!({"type": "content_block_start", "index": index, "content_block": block}),
                )
            };
            let stop =
                |index: u32| ("content_block_stop", json!({"type": "content_block_stop", "index": index}));
            vec![
                (
                    "message_start",
                    json!({"type": "message_start", "message": {"id": "x", "model": "real", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}),
                ),
                ("ping", json!({"type": "ping"})),
                start(0, json!({"type": "text", "text": ""})),
                delta(0, json!({"type": "text_delta", "text": "Hel"})),
                delta(0, json!({"type": "text_delta", "text": "lo"})),
                stop(0),
                start(1, json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {}})),
                delta(1, json!({"type": "input_json_delta", "partial_json": ""})),
                delta(1, json!({"type": "input_json_delta", "partial_json": "{\"city\":"})),
                delta(1, json!({"type": "input_json_delta", "partial_json": "\"Paris\"}"})),
                stop(1),
                start(2, json!({"type": "tool_use", "id": "c2", "name": "time", "input": {}})),
                delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})),
                stop(2),
                (
                    "message_delta",
                    json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
                ),
                ("message_stop", json!({"type": "message_stop"})),
            ]
        }
        _ => {
            let piece = |parts: Value| {
                (
                    "",
                    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "real", "responseId": "x"}),
                )
            };
            let mut last = piece(json!([{"functionCall": {"id": "c2", "name": "time", "args": {"a": 1}}}]));
            last.1["candidates"][0]["finishReason"] = "STOP".into();
            last.1["usageMetadata"] =
                json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
            vec![
                piece(json!([{"text": "Hel"}])),
                piece(json!([{"text": "lo"}])),
                piece(json!([{"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Paris"}}}])),
                last,
            ]
        }
    };
    let mut bytes = Vec::new();
    for (name, data) in events {
        let data = if data == "DONE" { "[DONE]".to_owned() } else { data.to_string() };
        watchkeeper_ai::sse::write(&mut bytes, name, &data);
    }
    String::from_utf8(bytes).unwrap()
}

fn events(text: &str) -> Vec<SseEvent> {
    let (mut splitter, mut events) = (Splitter::default(), Vec::new());
    splitter.push(text.as_bytes(), |event| events.push(event)).unwrap();
    events.extend(splitter.finish());
    events
}

/// What a stream adds up to.
fn summed(dialect: Dialect, text: &str) -> (String, Vec<ToolCall>, Option<Stop>, Usage) {
    let mut decoder = Decoder::new(dialect).unwrap();
    let mut out = Vec::new();
    for event in events(text) {
        decoder.take(&event, &mut out);
    }
    let (mut text, mut calls, mut stop, mut usage) =
        (String::new(), Vec::<ToolCall>::new(), None, Usage::default());
    for event in out {
        match event {
            Event::Text(piece) => text.push_str(&piece),
            Event::ToolStart { id, name } => calls.push(ToolCall { id, name, arguments: String::new() }),
            Event::ToolArguments(piece) => calls.last_mut().unwrap().arguments.push_str(&piece),
            Event::Finish(reason) => stop = Some(reason),
            Event::Usage(told) => usage = usage.merged(told),
            Event::Start { .. } | Event::Thinking(_) => {}
            Event::Error(error) => panic!("{error}"),
        }
    }
    (text, calls, stop, usage)
}

#[test]
fn a_stream_means_the_same_in_every_dialect() {
    let expected = summed(Dialect::OpenAiChat, &stream(Dialect::OpenAiChat));
    assert_eq!((expected.0.as_str(), expected.1.len(), expected.2), ("Hello", 2, Some(Stop::Tools)));
    assert_eq!(expected.3, Usage { input: 10, output: 5, ..Usage::default() });
    for provider in PROVIDERS {
        assert_eq!(summed(provider, &stream(provider)), expected, "{provider:?}");
        for client in CLIENTS {
            let stamp = Stamp { id: "x".into(), model: "m".into(), created: 1, stream_usage: true };
            let (mut decoder, mut encoder) = (Decoder::new(provider).unwrap(), Encoder::new(client, stamp));
            let (mut between, mut bytes) = (Vec::new(), Vec::new());
            for event in events(&stream(provider)) {
                decoder.take(&event, &mut between);
                for event in between.drain(..) {
                    encoder.take(event, &mut bytes);
                }
            }
            encoder.finish(&mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            if client != Dialect::OpenAiResponses {
                assert_eq!(summed(client, &text), expected, "{provider:?} to {client:?}:\n{text}");
                continue;
            }
            let last: Value = serde_json::from_str(&events(&text).last().unwrap().data).unwrap();
            assert_eq!(last["type"], "response.completed");
            assert_eq!(last["response"]["output"][0]["content"][0]["text"], "Hello");
            assert_eq!(last["response"]["output"][1]["arguments"], "{\"city\":\"Paris\"}");
            assert_eq!(last["response"]["output"][2]["call_id"], "c2");
            assert_eq!(last["response"]["usage"]["total_tokens"], 15);
            let numbers: Vec<u64> = events(&text)
                .iter()
                .map(|event| {
                    serde_json::from_str::<Value>(&event.data).unwrap()["sequence_number"].as_u64().unwrap()
                })
                .collect();
            assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn passers_by_see_usage_and_the_end() {
    for provider in PROVIDERS {
        let mut observer = watchkeeper_ai::Observer::new(provider, 1);
        let all = events(&stream(provider));
        let mut first = None;
        for (at, event) in all.iter().enumerate() {
            observer.take(event);
            first = first.or(observer.has_content.then_some(at));
            if provider == Dialect::OpenAiChat {
                assert_eq!(observer.only_usage, at == 8);
            }
        }
        assert_eq!(
            observer.usage(),
            Some(Usage { input: 10, output: 5, ..Usage::default() }),
            "{provider:?}"
        );
        assert!(observer.is_complete && observer.error.is_none());
        let expected =
            if provider == Dialect::Anthropic { 3 } else { usize::from(provider == Dialect::OpenAiChat) };
        assert_eq!(first, Some(expected), "{provider:?}");
    }
    let mut observer = watchkeeper_ai::Observer::new(Dialect::Anthropic, 1);
    let data =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "later"}}).to_string();
    observer.take(&SseEvent { event: "error".into(), data });
    assert_eq!(observer.error.map(|error| error.kind), Some(ErrorKind::Unavailable));
}

/// The same JSON without these fields, wherever they are.
fn without(value: &Value, fields: &[&str]) -> Value {
    match value {
        Value::Object(all) => {
            let kept = all.iter().filter(|(name, _)| !fields.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), without(value, fields))).collect()
        }
        Value::Array(items) => items.iter().map(|item| without(item, fields)).collect(),
        other => other.clone(),
    }
}

/// What says how much was written, and what says all of usage.
const OUTPUT: [&str; 3] = ["completion_tokens", "output_tokens", "candidatesTokenCount"];
const USAGE: [&str; 2] = ["usage", "usageMetadata"];

#[test]
fn usage_of_an_answer_is_known_if_what_was_written_is_counted() {
    let expected = Some(Usage { input: 10, cached: 4, output: 5, ..Usage::default() });
    for provider in PROVIDERS {
        let whole = answer(provider);
        assert_eq!(provider.known_usage(&whole), expected, "{provider:?}");
        for fields in [&OUTPUT[..], &USAGE[..]] {
            assert_eq!(provider.known_usage(&without(&whole, fields)), None, "{provider:?} {fields:?}");
        }
        let empty = without(&whole, &["content", "choices", "candidates", OUTPUT[0], OUTPUT[1], OUTPUT[2]]);
        let expected = expected.map(|usage| Usage { output: 0, ..usage });
        assert_eq!(provider.known_usage(&empty), expected, "nothing was written: {provider:?}");
    }
    let zeros =
        json!({"content": [{"type": "text", "text": "a"}], "usage": {"input_tokens": 0, "output_tokens": 0}});
    assert_eq!(Dialect::Anthropic.known_usage(&zeros), None, "a prompt has tokens");
    let vectors = json!({"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 3}});
    let expected = Some(Usage { input: 3, ..Usage::default() });
    assert_eq!(Dialect::OpenAiEmbeddings.known_usage(&vectors), expected);
}

#[test]
fn usage_of_a_stream_is_known_if_it_is_told_after_all_that_was_written() {
    let observed = |dialect: Dialect, events: &[SseEvent]| {
        let mut observer = watchkeeper_ai::Observer::new(dialect, 1);
        events.iter().for_each(|event| observer.take(event));
        observer.usage()
    };
    let changed = |event: &SseEvent, fields: &[&str]| {
        let value = serde_json::from_str::<Value>(&event.data);
        let data = value.map_or_else(|_| event.data.clone(), |value| without(&value, fields).to_string());
        SseEvent { data, ..event.clone() }
    };
    for provider in PROVIDERS {
        let all = events(&stream(provider));
        assert!(observed(provider, &all).is_some(), "{provider:?}");
        for fields in [&OUTPUT[..], &USAGE[..]] {
            let less: Vec<SseEvent> = all.iter().map(|event| changed(event, fields)).collect();
            assert_eq!(observed(provider, &less), None, "{provider:?} {fields:?}");
        }
        // What was told too early: the model goes on.
        let content = all.iter().find(|event| {
            let mut observer = watchkeeper_ai::Observer::new(provider, 1);
            observer.take(event);
            observer.has_content
        });
        let late = [all.clone(), vec![changed(content.unwrap(), &USAGE)]].concat();
        assert_eq!(observed(provider, &late), None, "{provider:?}");
    }
}

#[test]
fn errors_have_the_form_of_the_clients_dialect() {
    let error = ApiError::new(ErrorKind::Limited, "slower").code("rate_limit_exceeded");
    assert_eq!(error.status(), 429);
    assert_eq!(error.body(Dialect::OpenAiChat)["error"]["code"], "rate_limit_exceeded");
    assert_eq!(error.body(Dialect::Anthropic)["error"]["type"], "rate_limit_error");
    assert_eq!(error.body(Dialect::Gemini)["error"]["status"], "RESOURCE_EXHAUSTED");
    let secret = br#"{"error": {"message": "Incorrect API key provided: sk-canary"}}"#;
    assert!(!ApiError::of_provider("openai", 401, secret).message.contains("canary"));
    let html = ApiError::of_provider("openai", 500, b"<html>oops</html>");
    assert!(html.message.contains("code 500 and no JSON"), "{html}");
    assert!(ApiError::of_provider("p", 400, br#"[{"error": {"message": "bad"}}]"#).message.ends_with("bad"));
}

#[test]
fn what_cannot_be_translated_is_refused_by_field() {
    for (dialect, body, expected) in [
        (
            Dialect::OpenAiChat,
            json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            "messages[0].content[0].type",
        ),
        (Dialect::OpenAiChat, json!({"messages": [{"role": "user", "content": 7}]}), "messages[0].content"),
        (Dialect::OpenAiChat, json!({"messages": "hello"}), "messages: has to be a list"),
        (
            Dialect::OpenAiChat,
            json!({"messages": [{"role": "user"}], "tools": [{"type": "function"}]}),
            "tools[0].function.name",
        ),
        (Dialect::OpenAiChat, json!({"messages": [{"role": "robot"}]}), "messages[0].role"),
        (
            Dialect::OpenAiResponses,
            json!({"input": "a", "previous_response_id": "r"}),
            "previous_response_id",
        ),
        (Dialect::OpenAiResponses, json!({"input": "a", "tools": [{"type": "web_search"}]}), "tools[0].type"),
        (
            Dialect::Anthropic,
            json!({"messages": [{"role": "user", "content": [{"type": "document"}]}]}),
            "messages.0.content.0.type",
        ),
        (Dialect::Anthropic, json!({"messages": []}), "messages: is missing or empty"),
        (Dialect::Gemini, json!({"contents": [{"parts": [{"executableCode": {}}]}]}), "contents[0].parts[0]"),
        (
            Dialect::Gemini,
            json!({"contents": [{"parts": [{"text": "a"}]}], "tools": [{"googleSearch": {}}]}),
            "tools[0]",
        ),
        (
            Dialect::OpenAiChat,
            json!({"messages": [], "modalities": ["text", "audio"]}),
            "modalities: \"audio\"",
        ),
        (Dialect::OpenAiChat, json!({"messages": [], "web_search_options": {"a": 1}}), "web_search_options"),
        (Dialect::OpenAiChat, json!({"messages": [], "functions": [{}]}), "functions"),
        (Dialect::OpenAiChat, json!({"messages": [], "logit_bias": {"50256": -100}}), "logit_bias"),
        (Dialect::Anthropic, json!({"messages": [], "mcp_servers": [{"url": "u"}]}), "mcp_servers"),
        (Dialect::Gemini, json!({"contents": [], "cachedContent": "c"}), "cachedContent"),
        (
            Dialect::Gemini,
            json!({"contents": [], "safetySettings": [{"threshold": "BLOCK_LOW_AND_ABOVE"}]}),
            "safetySettings[0].threshold",
        ),
        (
            Dialect::Gemini,
            json!({"contents": [], "generationConfig": {"responseModalities": ["IMAGE"]}}),
            "generationConfig.responseModalities",
        ),
        (
            Dialect::Gemini,
            json!({"contents": [], "generation_config": {"speech_config": {"a": 1}}}),
            "generationConfig.speech_config",
        ),
    ] {
        let error = dialect.read_request(&body).unwrap_err();
        assert!(error.message.starts_with(expected), "{dialect:?}: {error}");
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
}

#[test]
fn what_changes_nothing_is_left_out() {
    for (dialect, body) in [
        (
            Dialect::OpenAiChat,
            json!({"messages": [{"role": "user", "content": "a"}], "modalities": ["text"], "seed": 1, "logprobs": true, "audio": null, "logit_bias": {}}),
        ),
        (
            Dialect::Anthropic,
            json!({"messages": [{"role": "user", "content": "a"}], "thinking": {"type": "enabled", "budget_tokens": 2000}, "mcp_servers": []}),
        ),
        (
            Dialect::Gemini,
            json!({"contents": [{"parts": [{"text": "a"}]}], "safetySettings": [{"threshold": "BLOCK_NONE"}], "generationConfig": {"responseModalities": ["TEXT"]}}),
        ),
    ] {
        let request = dialect.read_request(&body).unwrap();
        for provider in PROVIDERS {
            provider.write_request(&request).unwrap();
        }
    }
}

#[test]
fn arguments_that_come_in_turns_are_all_told() {
    let piece = |calls: Value| SseEvent {
        event: String::new(),
        data: json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}).to_string(),
    };
    let call = |index: u64, id: Option<&str>, arguments: &str| {
        let mut call = json!({"index": index, "function": {"arguments": arguments}});
        if let Some(id) = id {
            call["id"] = id.into();
            call["function"]["name"] = format!("tool-{id}").into();
        }
        call
    };
    let mut pieces = vec![
        piece(json!([call(0, Some("a"), ""), call(1, Some("b"), "{\"x\"")])),
        piece(json!([call(0, None, "{\"city\":"), call(1, None, ":1")])),
        piece(json!([call(1, None, "}"), call(0, None, "\"Rome\"}")])),
        piece(json!([call(2, Some("c"), "")])),
    ];
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string();
    pieces.push(SseEvent { event: String::new(), data: end });
    for client in PROVIDERS {
        let stamp = Stamp { stream_usage: true, ..Stamp::default() };
        let (mut decoder, mut encoder) =
            (Decoder::new(Dialect::OpenAiChat).unwrap(), Encoder::new(client, stamp));
        let (mut between, mut bytes) = (Vec::new(), Vec::new());
        for piece in &pieces {
            decoder.take(piece, &mut between);
        }
        between.into_iter().for_each(|event| encoder.take(event, &mut bytes));
        encoder.finish(&mut bytes);
        let (_, calls, stop, _) = summed(client, std::str::from_utf8(&bytes).unwrap());
        let told: Vec<(&str, &str)> =
            calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
        let none = if client == Dialect::Gemini { "{}" } else { "" };
        assert_eq!(told, [("a", "{\"city\":\"Rome\"}"), ("b", "{\"x\":1}"), ("c", none)], "{client:?}");
        assert_eq!(stop, Some(Stop::Tools));
    }
}

#[test]
fn arguments_that_are_no_object_are_an_error_and_not_none() {
    let call = |arguments: &str| json!({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}});
    let request = |arguments: &str| {
        let body = json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call(arguments)]}]});
        Dialect::OpenAiChat.read_request(&body).unwrap()
    };
    let response = |arguments: &str| {
        let body = json!({"choices": [{"message": {"tool_calls": [call(arguments)]}, "finish_reason": "tool_calls"}]});
        Dialect::OpenAiChat.read_response(&body).unwrap()
    };
    for dialect in [Dialect::Anthropic, Dialect::Gemini] {
        for wrong in ["{\"city\":", "[1]", "\"Rome\""] {
            let error = dialect.write_request(&request(wrong)).unwrap_err();
            assert!(error.kind == ErrorKind::Invalid && error.message.contains("weather"), "{error}");
            let error = dialect.write_response(&response(wrong), &Stamp::default()).unwrap_err();
            assert!(
                error.kind == ErrorKind::Provider && error.message.contains("not a JSON object"),
                "{error}"
            );
        }
        assert!(dialect.write_request(&request("")).is_ok(), "a tool without arguments");
    }
    assert!(
        Dialect::OpenAiChat.write_response(&response("{"), &Stamp::default()).is_ok(),
        "as the model wrote them"
    );
}

#[test]
fn a_role_is_no_content() {
    let empty = |dialect: Dialect, event: Value| {
        let mut observer = watchkeeper_ai::Observer::new(dialect, 1);
        observer.take(&SseEvent { event: String::new(), data: event.to_string() });
        !observer.has_content
    };
    let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    assert!(empty(Dialect::OpenAiChat, chunk(json!({"role": "assistant"}))));
    assert!(empty(
        Dialect::OpenAiChat,
        chunk(json!({"role": "assistant", "content": null, "tool_calls": []}))
    ));
    let mut observer = watchkeeper_ai::Observer::new(Dialect::OpenAiChat, 1);
    let spaced = r#"{"choices": [{"delta": {"role": "assistant", "content": ""}}]}"#.to_owned();
    observer.take(&SseEvent { event: String::new(), data: spaced });
    assert!(!observer.has_content);
    assert!(!empty(Dialect::OpenAiChat, chunk(json!({"content": "a"}))));
    assert!(!empty(Dialect::OpenAiChat, chunk(json!({"tool_calls": [{"index": 0}]}))));
    assert!(empty(Dialect::Gemini, json!({"candidates": [{"content": {"parts": [{"text": ""}]}}]})));
    assert!(!empty(
        Dialect::Gemini,
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "a"}}]}}]})
    ));
    assert!(empty(
        Dialect::Anthropic,
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}})
    ));
    assert!(!empty(
        Dialect::Anthropic,
        json!({"type": "content_block_start", "content_block": {"type": "tool_use"}})
    ));
    assert!(empty(Dialect::OpenAiResponses, json!({"type": "response.output_text.delta", "delta": ""})));
    assert!(!empty(Dialect::OpenAiResponses, json!({"type": "response.output_text.delta", "delta": "a"})));
}
