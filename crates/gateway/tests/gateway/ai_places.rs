//! Streams whose texts come in pieces at several places at once: what guardrails, webhooks and records make of them.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::StreamBody;
use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_front::{Body, Request, Response};
use watchkeeper_gateway::Options;
use watchkeeper_gateway::ai::records::{self, Destinations};

use crate::ai::{Ai, chat, mock, sha256, streamed};
use crate::support::{Bench, Server};

/// A place in a stream: what it is, how a client asks for it, and the event that says something there.
struct Place {
    what: &'static str,
    path: &'static str,
    body: Value,
    event: Box<dyn Fn(&str) -> Value>,
    /// What is said at another place in between.
    other: Value,
}

fn places() -> Vec<Place> {
    let chunk = |index: u64, delta: Value| json!({"choices": [{"index": index, "delta": delta, "finish_reason": null}]});
    let mut places = Vec::new();
    let mut place = |what, path, body: &Value, other: &Value, event: Box<dyn Fn(&str) -> Value>| {
        places.push(Place { what, path, body: body.clone(), event, other: other.clone() });
    };
    let mut two = streamed(chat("m", "hi"));
    two["n"] = 2.into();
    let other = chunk(0, json!({"content": "other"}));
    let mut openai = |what, index: u64, delta: fn(&str) -> Value| {
        let path = "/v1/chat/completions";
        place(what, path, &two, &other, Box::new(move |said: &str| chunk(index, delta(said))));
    };
    openai("the second choice", 1, |said| json!({"content": said}));
    openai("the arguments of a function", 1, |said| json!({"function_call": {"arguments": said}}));
    openai(
        "the arguments of a tool",
        0,
        |said| json!({"tool_calls": [{"index": 1, "function": {"arguments": said}}]}),
    );
    openai("reasoning", 0, |said| json!({"reasoning": said}));
    openai("the content of reasoning", 0, |said| json!({"reasoning_content": said}));
    openai("what is spoken", 0, |said| json!({"audio": {"transcript": said}}));
    openai("a refusal", 0, |said| json!({"refusal": said}));
    openai("a field that nobody knows", 0, |said| json!({"future": {"text": said}}));
    let responses = streamed(json!({"model": "m", "input": "hi"}));
    let other = json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "other"});
    for kind in
        ["output_text", "refusal", "function_call_arguments", "reasoning_text", "reasoning_summary_text"]
    {
        let event = move |said: &str| json!({"type": format!("response.{kind}.delta"), "output_index": 1, "delta": said});
        place(kind, "/v1/responses", &responses, &other, Box::new(event));
    }
    let candidate =
        |index: u64, part: Value| json!({"candidates": [{"index": index, "content": {"parts": [part]}}]});
    let generate =
        json!({"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"candidateCount": 2}});
    let (path, other) =
        ("/v1beta/models/m:streamGenerateContent?alt=sse", candidate(0, json!({"text": "other"})));
    place(
        "the second candidate",
        path,
        &generate,
        &other,
        Box::new(move |said: &str| candidate(1, json!({"text": said}))),
    );
    let thought = move |said: &str| candidate(0, json!({"text": said, "thought": true}));
    place("a thought", path, &generate, &other, Box::new(thought));
    let messages =
        streamed(json!({"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}));
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let other = delta(0, json!({"type": "text_delta", "text": "other"}));
    let mut anthropic = |what, make: fn(&str) -> Value| {
        place(what, "/v1/messages", &messages, &other, Box::new(move |said: &str| delta(1, make(said))));
    };
    anthropic("the second block", |said| json!({"type": "text_delta", "text": said}));
    anthropic("thinking", |said| json!({"type": "thinking_delta", "thinking": said}));
    anthropic("the input of a tool", |said| json!({"type": "input_json_delta", "partial_json": said}));
    places
}

/// A provider of every dialect that answers with these events, an event a frame, and ends.
fn provider() -> (Server, Arc<Mutex<Vec<Value>>>) {
    let events = Arc::new(Mutex::new(Vec::<Value>::new()));
    let known = Arc::clone(&events);
    let server = Server::start(move |request: Request| {
        let events = known.lock().clone();
        async move {
            request.into_body().read(1 << 20).await.unwrap();
            let frames = events
                .into_iter()
                .map(|event| Ok::<_, Infallible>(Frame::data(Bytes::from(format!("data: {event}\n\n")))));
            let mut response = Response::new(Body::wrap(StreamBody::new(futures_util::stream::iter(frames))));
            response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
            response
        }
    });
    (server, events)
}

/// A gateway whose provider of every dialect is this one.
async fn before(server: &Server, options: Options) -> Ai {
    let url = format!("http://{}", server.address);
    let providers = json!({"providers": [
        {"name": "openai", "dialect": "OpenAI", "url": url, "responses": true},
        {"name": "anthropic", "dialect": "Anthropic", "url": url},
        {"name": "gemini", "dialect": "Gemini", "url": url},
    ]});
    Ai::over(Bench::start_with(json!({"port": 0}), options).await, mock(), providers).await
}

/// What the client of a place gets, at which this is said, piece by piece, with something else in between.
async fn ask(ai: &Ai, events: &Mutex<Vec<Value>>, place: &Place, pieces: &[&str]) -> String {
    let (provider, end) = match place.path {
        "/v1/messages" => ("anthropic", json!({"type": "message_stop"})),
        "/v1/responses" => {
            let response = json!({"status": "completed", "output": []});
            ("openai", json!({"type": "response.completed", "response": response}))
        }
        path if path.starts_with("/v1beta") => {
            let ended = [0, 1].map(|index| json!({"index": index, "finishReason": "STOP"}));
            ("gemini", json!({"candidates": ended}))
        }
        _ => {
            let ended = [0, 1].map(|index| json!({"index": index, "delta": {}, "finish_reason": "stop"}));
            ("openai", json!({"choices": ended}))
        }
    };
    let said = pieces.iter().flat_map(|said| [(place.event)(said), place.other.clone()]);
    *events.lock() = said.chain([end]).collect();
    ai.model("m", &[(provider, "m")]).await;
    ai.post(place.path, &place.body).await.text().to_owned()
}

const PHRASE: [&str; 3] = ["the forbidden ", "phr", "ase is LATE"];

#[tokio::test]
async fn what_is_split_over_pieces_meets_a_guardrail_wherever_it_is_said() {
    let (server, events) = provider();
    let ai = before(&server, Options::default()).await;
    for place in places() {
        let told = ask(&ai, &events, &place, &PHRASE).await;
        assert!(told.contains("LATE"), "{}: {told}", place.what);
    }
    ai.policy(json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}],
        "guardrails": [{"name": "words", "on": "Response", "pattern": "forbidden phrase"}],
    }))
    .await;
    for place in places() {
        let told = ask(&ai, &events, &place, &PHRASE).await;
        assert!(!told.contains("LATE") && told.contains("words"), "{}: {told}", place.what);
        let told = ask(&ai, &events, &place, &["the forbidden", "other LATE"]).await;
        assert!(told.contains("LATE"), "{}: nothing is joined that is not said: {told}", place.what);
    }
}

#[tokio::test]
async fn what_is_split_over_pieces_is_judged_by_webhooks_wherever_it_is_said() {
    let (server, events) = provider();
    let ai = before(&server, Options::default()).await;
    let judge = Server::start(|request: Request| async move {
        let question: Value =
            serde_json::from_slice(&request.into_body().read(1 << 20).await.unwrap()).unwrap();
        let is_allowed = !question["text"].as_str().unwrap().contains("forbidden phrase");
        Response::new(Body::whole(json!({"allowed": is_allowed}).to_string()))
    });
    ai.policy(json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}],
        "guardrails": [{"name": "words", "on": "Response", "webhook": {"url": format!("http://{}", judge.address)}}],
    }))
    .await;
    for place in places() {
        let told = ask(&ai, &events, &place, &PHRASE).await;
        assert!(!told.contains("LATE") && told.contains("words"), "{}: {told}", place.what);
    }
}

#[tokio::test]
async fn what_is_split_over_pieces_is_redacted_wherever_it_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let (server, events) = provider();
    let destinations = Destinations { directory: Some(directory.path().to_owned()), table: None };
    let ai = before(&server, Options { records: destinations, ..Options::default() }).await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "contentLog": {}})).await;
    let places = places();
    for place in &places {
        let told = ask(&ai, &events, place, &["card 4111 11", "11 1111 ", "1111 ends"]).await;
        assert!(told.contains("1111 ends"), "{}: {told}", place.what);
    }
    ai.bench.gateway.stop(std::time::Duration::from_secs(5)).await;
    let mut read = Vec::new();
    records::read(directory.path(), |record| read.push(record["response"].clone())).unwrap();
    assert_eq!(read.len(), places.len());
    for response in read {
        let response = response.as_str().unwrap();
        let mut lines: Vec<&str> = response.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["card [number] ends", "otherotherother"]);
    }
}

#[tokio::test]
async fn what_a_response_repeats_as_a_whole_is_kept_once() {
    let directory = tempfile::tempdir().unwrap();
    let destinations = Destinations { directory: Some(directory.path().to_owned()), table: None };
    let options = Options { records: destinations, ..Options::default() };
    let ai = Ai::over(Bench::start_with(json!({"port": 0}), options).await, mock(), json!({})).await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "contentLog": {}})).await;
    ai.model("m", &[("responses", "echo")]).await;
    let told =
        ai.post("/v1/responses", &streamed(json!({"model": "m", "input": "4111 1111 1111 1111"}))).await;
    assert_eq!(told.status, 200, "{}", told.text());
    ai.bench.gateway.stop(std::time::Duration::from_secs(5)).await;
    let mut read = Vec::new();
    records::read(directory.path(), |record| read.push(record["response"].clone())).unwrap();
    assert_eq!(read, [json!("You said: [number]")]);
}

#[tokio::test]
async fn a_stream_that_ends_before_all_its_answers_has_broken_off() {
    let (server, events) = provider();
    let ai = before(&server, Options::default()).await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "cache": {"ttl": "1h"}})).await;
    let chunk = |index: u64, reason: Value| json!({"choices": [{"index": index, "delta": {"content": "x"}, "finish_reason": reason}]});
    let candidate = |index: u64, reason: Value| json!({"candidates": [{"index": index, "content": {"parts": [{"text": "x"}]}, "finishReason": reason}]});
    let mut two = streamed(chat("m", "hi"));
    two["n"] = 2.into();
    let generate =
        json!({"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"candidateCount": 2}});
    let cases = [
        ("openai", "/v1/chat/completions", two, json!("stop")),
        ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", generate, json!("STOP")),
    ];
    for (provider, path, body, stop) in cases {
        let event = |index: u64, reason: Value| match provider {
            "openai" => chunk(index, reason),
            _ => candidate(index, reason),
        };
        ai.model("m", &[(provider, "m")]).await;
        *events.lock() = vec![event(0, Value::Null), event(1, Value::Null), event(0, stop.clone())];
        for _ in 0..2 {
            let told = ai.post(path, &body).await;
            assert!(told.text().contains("broke off"), "{provider}: {}", told.text());
            assert_eq!(told.header("x-cache"), None, "{provider}: it is not kept");
        }
        events.lock().push(event(1, stop));
        let told = ai.post(path, &body).await;
        assert!(told.status == 200 && !told.text().contains("broke off"), "{provider}: {}", told.text());
        assert_eq!(ai.post(path, &body).await.header("x-cache"), Some("hit"), "{provider}");
    }
}
