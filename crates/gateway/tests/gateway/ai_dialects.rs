//! What clients of each dialect are told, and what providers get.

use http::{Method, Request};
use serde_json::{Value, json};
use watchkeeper_front::Body;

use crate::ai::{Ai, chat, sha256};
use crate::support::send;

#[tokio::test]
async fn a_subscription_takes_the_key_of_every_library_and_refuses_in_its_dialect() {
    let ai = Ai::with(json!({"access": "Open", "prefix": "/llm"})).await;
    ai.model("m", &[("openai", "echo")]).await;
    ai.bench
        .put(
            "ApiDefinition",
            "llm",
            json!({"gateways": ["main"], "state": "Published", "subscription": "Automatic"}),
        )
        .await;
    ai.bench
        .put(
            "ApiSubscription",
            "team",
            json!({"api": "llm", "consumer": "team", "keys": [sha256("subscribed")]}),
        )
        .await;
    let chat = ("/llm/v1/chat/completions", chat("m", "hi"));
    let messages = (
        "/llm/v1/messages",
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
    );
    let generate = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let ask = async |path: &str, body: &Value, header: Option<(&str, &str)>| {
        let request = Request::builder().method(Method::POST).uri(path).header("host", "gateway.test");
        let request = header.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        send(ai.bench.address, request.body(Body::whole(body.to_string())).unwrap()).await
    };
    for (path, body, header) in [
        (chat.0, &chat.1, ("authorization", "Bearer subscribed")),
        (chat.0, &chat.1, ("authorization", "bearer subscribed")),
        (messages.0, &messages.1, ("x-api-key", "subscribed")),
        ("/llm/v1beta/models/m:generateContent", &generate, ("x-goog-api-key", "subscribed")),
        ("/llm/v1beta/models/m:generateContent?key=subscribed", &generate, ("x-other", "a")),
    ] {
        let told = ask(path, body, Some(header)).await;
        assert_eq!(told.status, 200, "{path} {header:?}: {}", told.text());
    }
    let told = ask(chat.0, &chat.1, None).await;
    assert_eq!((told.status.as_u16(), &told.json()["error"]["type"]), (401, &json!("authentication_error")));
    let told = ask(messages.0, &messages.1, Some(("x-api-key", "wrong"))).await;
    assert_eq!((told.status.as_u16(), &told.json()["type"]), (401, &json!("error")));
    let told = ask("/llm/v1beta/models/m:generateContent?key=wrong", &generate, None).await;
    assert_eq!((told.status.as_u16(), &told.json()["error"]["status"]), (401, &json!("UNAUTHENTICATED")));
    ai.bench.put("ApiDefinition", "llm", json!({"gateways": ["main"], "state": "Retired"})).await;
    let told = ask(messages.0, &messages.1, None).await;
    assert_eq!((told.status.as_u16(), &told.json()["error"]["type"]), (410, &json!("not_found_error")));
}

#[tokio::test]
async fn only_models_that_this_gateway_can_serve_are_listed() {
    let ai = Ai::start().await;
    let url = format!("http://{}", ai.mock.address());
    let other =
        json!({"prefix": "/other", "providers": [{"name": "elsewhere", "dialect": "OpenAI", "url": url}]});
    ai.bench.put("AIGatewayConfig", "other", other).await;
    ai.model("here", &[("openai", "echo")]).await;
    ai.model("there", &[("elsewhere", "echo")]).await;
    let list = async |path: &str| {
        let told = ai.bench.send(Request::get(path).header("authorization", "Bearer secret")).await;
        let models = told.json()["data"].as_array().unwrap().clone();
        models.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list("/v1/models").await, ["here"]);
    assert_eq!(list("/other/v1/models").await, ["there"]);
    let told = ai.bench.send(Request::get("/v1/models/there").header("authorization", "Bearer secret")).await;
    assert_eq!(told.status, 404);
}

#[tokio::test]
async fn the_properties_of_a_schema_keep_their_order_across_dialects() {
    let ai = Ai::start().await;
    let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": "{\"zeta\": 1, \"alpha\": 2}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"}],
        "tools": [{"type": "function", "function": {"name": "answer", "parameters": {"type": "object",
        "properties": {"reasoning": {"type": "string"}, "answer": {"type": "string"}, "confidence": {"type": "number"}}, "required": ["reasoning"]}}}]}"#;
    for provider in ["anthropic", "gemini"] {
        ai.model("m", &[(provider, "echo")]).await;
        let request = Request::post("/v1/chat/completions").header("host", "a").header("x-api-key", "secret");
        let told = send(ai.bench.address, request.body(Body::whole(body)).unwrap()).await;
        assert_eq!(told.status, 200, "{}", told.text());
        let sent = String::from_utf8(ai.mock.last().unwrap().1.to_vec()).unwrap();
        let at = |name: &str| sent.find(&format!("\"{name}\":{{\"type\"")).unwrap();
        assert!(at("reasoning") < at("answer") && at("answer") < at("confidence"), "{provider}: {sent}");
    }
}

#[tokio::test]
async fn what_the_other_dialect_cannot_say_is_refused_in_that_of_the_client() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    ai.model("other", &[("gemini", "echo")]).await;
    let mut body = chat("other", "hi");
    body["web_search_options"] = json!({"search_context_size": "low"});
    let told = ai.post("/v1/chat/completions", &body).await;
    assert!(told.status == 400 && told.text().contains("web_search_options"), "{}", told.text());
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}], "cachedContent": "c"});
    let told = ai.post("/v1beta/models/m:generateContent", &body).await;
    assert!(told.status == 400 && told.json()["error"]["status"] == "INVALID_ARGUMENT", "{}", told.text());
}

/// The type of an error, if its body has the form of the dialect of a path.
fn word(path: &str, told: &Value) -> Option<String> {
    let error = &told["error"];
    let word = if path.starts_with("/v1/messages") {
        (told["type"] == "error").then_some(&error["type"])
    } else if path.starts_with("/v1beta") {
        error["code"].is_u64().then_some(&error["status"])
    } else {
        error.get("param").map(|_| &error["type"])
    };
    error["message"].as_str().filter(|message| !message.is_empty())?;
    word?.as_str().map(str::to_owned)
}

#[tokio::test]
async fn what_is_wrong_is_said_in_the_dialect_of_the_client() {
    let ai = Ai::with(json!({"retry": {"attempts": 0}})).await;
    ai.model("m", &[("anthropic", "echo")]).await;
    ai.model("other", &[("openai", "echo")]).await;
    ai.model("html", &[("gemini", "echo,html=yes")]).await;
    ai.model("html-too", &[("openai", "echo,html=yes")]).await;
    let looping = vec!["{messages: ., b: .}"; 60].join(" | ");
    let mapping =
        json!({"model": "loop", "targets": [{"provider": "openai", "model": "echo"}], "request": looping});
    ai.bench.put("ModelContextMapping", "loop", mapping).await;
    // A request of each dialect for a model with a text, and what its tools are if they are malformed.
    let body = |dialect: usize, model: &str, text: &str| match dialect {
        0 => ("/v1/chat/completions".to_owned(), chat(model, text)),
        1 => ("/v1/responses".to_owned(), json!({"model": model, "input": text})),
        2 => (
            "/v1/messages".to_owned(),
            json!({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": text}]}),
        ),
        _ => (
            format!("/v1beta/models/{model}:generateContent"),
            json!({"contents": [{"parts": [{"text": text}]}]}),
        ),
    };
    let tools = [
        json!([{"type": "function"}]),
        json!([{"type": "function", "parameters": {}}]),
        json!([{"description": "no name"}]),
        json!([{"functionDeclarations": [{"description": "no name"}]}]),
    ];
    for (dialect, tools) in tools.into_iter().enumerate() {
        let check = |what: &str, path: &str, told: &crate::support::Answer, codes: &[u16]| {
            assert!(codes.contains(&told.status.as_u16()), "{what} {path}: {} {}", told.status, told.text());
            assert!(word(path, &told.json()).is_some(), "{what} {path}: {}", told.text());
        };
        let (path, unknown) = body(dialect, "nobody", "hi");
        check("an unknown model", &path, &ai.post(&path, &unknown).await, &[404]);
        let (path, mut malformed) = body(dialect, if dialect == 2 { "other" } else { "m" }, "hi");
        malformed["tools"] = tools;
        check("malformed tools", &path, &ai.post(&path, &malformed).await, &[400]);
        let (path, large) = body(dialect, "m", &"x".repeat(10 << 20));
        check("ten megabytes", &path, &ai.post(&path, &large).await, &[413]);
        let (path, text) = body(dialect, "m", "CANARY");
        let bytes: Vec<u8> = text.to_string().replace("CANARY", "\u{1}").into_bytes();
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
        let request = Request::post(&*path).header("host", "a").header("x-api-key", "secret");
        let told = send(ai.bench.address, request.body(Body::whole(bytes)).unwrap()).await;
        check("invalid UTF-8", &path, &told, &[400]);
        let (path, looping) = body(dialect, "loop", "hi");
        check("a mapping that loops", &path, &ai.post(&path, &looping).await, &[500]);
        for model in ["html", "html-too"] {
            let (path, asked) = body(dialect, model, "hi");
            check("a page", &path, &ai.post(&path, &asked).await, &[502]);
        }
    }
}
