//! Calls of models, over real sockets, against a provider that has none.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use watchkeeper_front::Body;
use watchkeeper_gateway::ai::records::Destinations;
use watchkeeper_gateway::mock::Mock;

use crate::support::{Answer, Bench, open, send, within};

pub(crate) fn sha256(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) struct Ai {
    pub(crate) bench: Bench,
    pub(crate) mock: Mock,
}

pub(crate) fn mock() -> Mock {
    Mock::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).unwrap()
}

impl Ai {
    /// A gateway with a provider of each dialect, and one that has responses, too, all of them the same mock, and a key `secret` that may call everything.
    pub(crate) async fn start() -> Self {
        Self::with(json!({})).await
    }

    pub(crate) async fn with(settings: Value) -> Self {
        Self::over(Bench::start().await, mock(), settings).await
    }

    /// The same over a gateway and a mock that are there.
    pub(crate) async fn over(bench: Bench, mock: Mock, settings: Value) -> Self {
        let url = format!("http://{}", mock.address());
        let mut spec = json!({"providers": [
            {"name": "openai", "dialect": "OpenAI", "url": url},
            {"name": "anthropic", "dialect": "Anthropic", "url": url},
            {"name": "gemini", "dialect": "Gemini", "url": url},
            {"name": "responses", "dialect": "OpenAI", "url": url, "responses": true},
        ]});
        for (name, value) in settings.as_object().unwrap() {
            spec[name] = value.clone();
        }
        bench.put("AIGatewayConfig", "main", spec).await;
        let ai = Self { bench, mock };
        ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}]})).await;
        ai
    }

    pub(crate) async fn policy(&self, spec: Value) {
        self.bench.put("LLMGatewayPolicy", "keys", spec).await;
    }

    /// A model `name` that these serve: provider, and model there.
    pub(crate) async fn model(&self, name: &str, targets: &[(&str, &str)]) {
        let targets = targets.iter().enumerate();
        let targets: Vec<Value> = targets
            .map(|(at, (provider, model))| json!({"provider": provider, "model": model, "priority": at}))
            .collect();
        let object = name.replace([',', '='], "-");
        self.bench
            .put(
                "ModelContextMapping",
                &object,
                json!({"model": name, "targets": targets, "maxOutputTokens": 100}),
            )
            .await;
    }

    pub(crate) fn request(path: &str, body: &Value, key: Option<&str>) -> Request<Body> {
        let mut request = Request::builder().method(Method::POST).uri(path).header("host", "gateway.test");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.body(Body::whole(body.to_string())).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.bench.address, Self::request(path, body, Some("secret"))).await
    }

    pub(crate) async fn chat(&self, model: &str) -> Answer {
        self.post("/v1/chat/completions", &chat(model, "hello there")).await
    }

    pub(crate) async fn open(&self, path: &str, body: &Value) -> Response<Incoming> {
        open(self.bench.address, Self::request(path, body, Some("secret"))).await
    }
}

pub(crate) fn chat(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

pub(crate) fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}

#[tokio::test]
async fn every_dialect_reaches_every_provider() {
    let ai = Ai::start().await;
    for provider in ["openai", "anthropic", "gemini"] {
        ai.model(provider, &[(provider, "echo")]).await;
        let told = ai.chat(provider).await;
        assert_eq!(told.status, 200, "{}", told.text());
        assert_eq!(told.json()["choices"][0]["message"]["content"], "You said: hello there", "{provider}");
        assert!(told.json()["usage"]["total_tokens"].as_u64().unwrap() > 0);
        let body = json!({"model": provider, "max_tokens": 50, "messages": [{"role": "user", "content": "hello there"}]});
        let told = ai.post("/v1/messages", &body).await;
        assert_eq!(told.json()["content"][0]["text"], "You said: hello there", "{provider} {}", told.text());
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "hello there"}]}]});
        let told = ai.post(&format!("/v1beta/models/{provider}:generateContent"), &body).await;
        let said = &told.json()["candidates"][0]["content"]["parts"][0]["text"];
        assert_eq!(said, "You said: hello there", "{provider} {}", told.text());
        let told = ai.post("/v1/responses", &json!({"model": provider, "input": "hello there"})).await;
        assert_eq!(
            told.json()["output"][0]["content"][0]["text"],
            "You said: hello there",
            "{provider} {}",
            told.text()
        );
    }
    for provider in ["openai", "gemini"] {
        let told = ai.post("/v1/embeddings", &json!({"model": provider, "input": ["a", "b"]})).await;
        assert_eq!(told.json()["data"].as_array().unwrap().len(), 2, "{}", told.text());
        let body = json!({"content": {"parts": [{"text": "a"}]}});
        let told = ai.post(&format!("/v1beta/models/{provider}:embedContent"), &body).await;
        assert_eq!(told.json()["embedding"]["values"].as_array().unwrap().len(), 8, "{}", told.text());
    }
    let told = ai.post("/v1/embeddings", &json!({"model": "anthropic", "input": "a"})).await;
    assert_eq!(
        (told.status.as_u16(), told.json()["error"]["message"].clone()),
        (400, "model \"anthropic\" makes no vectors".into())
    );
}

#[tokio::test]
async fn the_same_dialect_passes_byte_by_byte() {
    let ai = Ai::start().await;
    ai.model("echo", &[("openai", "echo")]).await;
    let mut body = chat("echo", "hello there, you");
    body["future_field"] = json!({"deep": [1, 2.50]});
    let direct = send(ai.mock.address(), Ai::request("/v1/chat/completions", &body, None)).await;
    let through = ai.post("/v1/chat/completions", &body).await;
    let masked = |text: &str| text.replace("mock-1", "mock-N").replace("mock-2", "mock-N");
    assert_eq!(masked(through.text()), masked(direct.text()));
    let (_, sent) = ai.mock.last().unwrap();
    assert_eq!(sent, body.to_string(), "the provider gets what the client wrote");
    let mut body = streamed(body);
    body["stream_options"] = json!({"include_usage": true});
    let direct = send(ai.mock.address(), Ai::request("/v1/chat/completions", &body, None)).await;
    let through = ai.post("/v1/chat/completions", &body).await;
    let masked = |text: &str| text.replace("mock-3", "mock-N").replace("mock-4", "mock-N");
    assert_eq!(masked(through.text()), masked(direct.text()));
    assert!(through.header("content-type").unwrap().starts_with("text/event-stream"));
    assert_eq!(through.header("x-accel-buffering"), Some("no"));
    // Another name is the only thing that differs.
    ai.model("alias", &[("openai", "echo")]).await;
    let text = body.to_string().replace("\"echo\"", "\"alias\"");
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat/completions")
        .header("host", "a")
        .header("x-api-key", "secret");
    send(ai.bench.address, request.body(Body::whole(text)).unwrap()).await;
    assert_eq!(ai.mock.last().unwrap().1, body.to_string());
}

#[tokio::test]
async fn usage_that_nobody_asked_for_is_asked_of_the_provider_and_not_shown() {
    let ai = Ai::start().await;
    ai.model("echo", &[("openai", "echo")]).await;
    let told = ai.post("/v1/chat/completions", &streamed(chat("echo", "hi"))).await;
    let sent: Value = serde_json::from_slice(&ai.mock.last().unwrap().1).unwrap();
    assert_eq!(sent["stream_options"]["include_usage"], true);
    assert!(!told.text().contains("prompt_tokens"), "{}", told.text());
    assert!(told.text().contains("You") && told.text().ends_with("data: [DONE]\n\n"), "{}", told.text());
}

#[tokio::test]
async fn keys_models_and_errors_have_the_form_of_the_dialect() {
    let ai = Ai::start().await;
    ai.model("cheap-a", &[("openai", "echo")]).await;
    ai.model("cheap-b", &[("openai", "echo")]).await;
    ai.model("dear", &[("anthropic", "echo")]).await;
    ai.policy(json!({"models": ["cheap-*"], "keys": [
        {"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other"), "models": ["cheap-b"]},
        {"name": "off", "sha256": sha256("suspended"), "suspended": true}, {"name": "old", "sha256": sha256("expired"), "expires": "2020-01-01T00:00:00Z"},
    ]})).await;
    let get = |path: &'static str, key: &'static str| {
        Request::get(path).header("authorization", format!("Bearer {key}"))
    };
    let names = |answer: &Answer| -> Vec<String> {
        answer.json()["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&ai.bench.send(get("/v1/models", "secret")).await), ["cheap-a", "cheap-b"]);
    assert_eq!(names(&ai.bench.send(get("/v1/models", "other")).await), ["cheap-b"]);
    assert_eq!(ai.bench.send(get("/v1/models/dear", "secret")).await.status, 404);
    let told = ai.bench.send(get("/v1beta/models", "other")).await;
    assert_eq!(told.json()["models"][0]["name"], "models/cheap-b");
    let told = ai.chat("dear").await;
    assert_eq!((told.status.as_u16(), told.json()["error"]["code"].clone()), (404, "model_not_found".into()));
    for key in ["wrong", "suspended", "expired"] {
        let told =
            send(ai.bench.address, Ai::request("/v1/messages", &chat("cheap-a", "x"), Some(key))).await;
        assert_eq!(
            (told.status.as_u16(), told.json()["error"]["type"].clone()),
            (401, "authentication_error".into()),
            "{key}"
        );
    }
    let told =
        send(ai.bench.address, Ai::request("/v1beta/models/cheap-a:generateContent", &json!({}), None)).await;
    assert_eq!(
        (told.status.as_u16(), told.json()["error"]["status"].clone()),
        (401, "UNAUTHENTICATED".into())
    );
    for (body, expected) in
        [("{", "not valid JSON"), ("{}", "model: is missing"), ("{\"model\":\"\u{0}\"}", "not valid JSON")]
    {
        let request = Request::post("/v1/chat/completions").header("host", "a").header("x-api-key", "secret");
        let told = send(ai.bench.address, request.body(Body::whole(body)).unwrap()).await;
        assert_eq!(told.status, 400);
        assert!(told.text().contains(expected), "{}", told.text());
    }
    let large = chat("cheap-a", &"x".repeat(10 << 20));
    let told = ai.post("/v1/messages", &large).await;
    assert_eq!(
        (told.status.as_u16(), told.json()["error"]["type"].clone()),
        (413, "request_too_large".into())
    );
    assert_eq!(ai.mock.requests(), 0, "no provider heard of any of this");
}

#[tokio::test]
async fn a_provider_that_fails_before_the_first_token_is_made_up_for() {
    let ai =
        Ai::with(json!({"timeouts": {"firstToken": "300ms"}, "retry": {"attempts": 3, "backoff": "1ms"}}))
            .await;
    for broken in [
        "echo,status=503",
        "echo,status=429",
        "echo,status=401",
        "echo,error=0",
        "echo,cut=0",
        "echo,delay=1m",
        "echo,html=yes",
    ] {
        ai.model("m", &[("anthropic", broken), ("gemini", "echo")]).await;
        let told = ai.post("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
        assert_eq!(told.status, 200, "{broken}: {}", told.text());
        assert!(
            told.text().contains("You") && told.text().ends_with("[DONE]\n\n"),
            "{broken}: {}",
            told.text()
        );
        assert!(!told.text().contains("error"), "{broken}: {}", told.text());
    }
    ai.model("m", &[("openai", "echo,fail=2")]).await;
    assert_eq!(ai.chat("m").await.status, 200, "the same provider, once it works");
    ai.model("m", &[("openai", "echo,status=400"), ("gemini", "echo")]).await;
    let told = ai.chat("m").await;
    assert_eq!(told.status, 400, "what is wrong with a request is wrong everywhere");
    ai.model("m", &[("openai", "echo,html=yes")]).await;
    let told = ai.chat("m").await;
    assert_eq!(told.status, 502);
    assert!(told.json()["error"]["message"].as_str().unwrap().contains("not JSON"), "{}", told.text());
    ai.model("m", &[("openai", "echo,status=401")]).await;
    let told = ai.chat("m").await;
    assert!(
        told.status == 502 && told.text().contains("refused the gateway's credentials"),
        "{}",
        told.text()
    );
}

#[tokio::test]
async fn after_the_first_token_an_error_ends_the_stream() {
    let ai = Ai::with(json!({"timeouts": {"betweenTokens": "200ms"}})).await;
    for provider in ["openai", "anthropic", "gemini"] {
        for (script, expected) in
            [("error=3", "scripted to fail"), ("cut=3", "broke off"), ("pace=300ms", "silent")]
        {
            let script = format!("echo,words=20,{script}");
            ai.model("m", &[(provider, &script)]).await;
            for (path, body) in [
                ("/v1/chat/completions", streamed(chat("m", "hi"))),
                (
                    "/v1/messages",
                    streamed(
                        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
                    ),
                ),
                (
                    "/v1beta/models/m:streamGenerateContent?alt=sse",
                    json!({"contents": [{"parts": [{"text": "hi"}]}]}),
                ),
                ("/v1/responses", streamed(json!({"model": "m", "input": "hi"}))),
            ] {
                let told = ai.post(path, &body).await;
                assert_eq!(told.status, 200);
                assert!(told.text().contains("word1"), "{provider} {script} {path}: {}", told.text());
                let last = told.text().trim_end().rsplit("\n\n").next().unwrap();
                assert!(
                    last.contains("error") && last.contains(expected),
                    "{provider} {script} {path}: {}",
                    told.text()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_budget_is_used_up_and_an_edit_forgets_nothing() {
    let ai = Ai::start().await;
    ai.model("echo", &[("openai", "echo")]).await;
    let policy = |tokens: u64| {
        json!({
            "keys": [{"name": "jane", "sha256": sha256("secret")}],
            "limits": [{"per": "Month", "tokens": tokens}],
        })
    };
    // 16 for the frame, the body, and 100 for the answer are reserved; about 10 are used.
    ai.policy(policy(200)).await;
    let mut served = 0;
    let refused = loop {
        let told = ai.chat("echo").await;
        if told.status != 200 {
            break told;
        }
        served += 1;
        assert!(served < 50);
    };
    assert!(served > 1, "what was not used comes back");
    assert_eq!(
        (refused.status.as_u16(), refused.json()["error"]["code"].clone()),
        (429, "insufficient_quota".into())
    );
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    assert!(refused.text().contains("200 tokens a month"), "{}", refused.text());
    ai.policy(policy(201)).await;
    assert_eq!(ai.chat("echo").await.status, 429, "an edit forgets nothing");
    ai.policy(policy(400)).await;
    assert_eq!(ai.chat("echo").await.status, 200);
}

#[tokio::test]
async fn what_nobody_knows_counts_as_used() {
    let ai = Ai::start().await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "tokens": 1000}]})).await;
    ai.model("silent", &[("openai", "echo,usage=none")]).await;
    ai.model("refused", &[("openai", "echo,status=400")]).await;
    for _ in 0..20 {
        assert_eq!(ai.chat("refused").await.status, 400, "what was refused costs nothing");
    }
    let served = async |body: Value| {
        let mut served = 0;
        while ai.post("/v1/chat/completions", &body).await.status == 200 {
            served += 1;
            assert!(served < 20);
        }
        served
    };
    // About 130 are reserved each time, and kept.
    let count = served(streamed(chat("silent", "hi"))).await;
    assert!((6..=8).contains(&count), "{count}");
}

#[tokio::test]
async fn two_hundred_clients_at_once_do_not_exceed_a_cap() {
    let ai = Ai::start().await;
    ai.policy(json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}],
        "limits": [{"per": "Month", "requests": 50, "by": "Policy"}],
    }))
    .await;
    ai.model("echo", &[("openai", "echo,delay=20ms"), ("gemini", "echo")]).await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (address, key) = (ai.bench.address, if number % 2 == 0 { "secret" } else { "other" });
        let body = if number % 3 == 0 { streamed(chat("echo", "hi")) } else { chat("echo", "hi") };
        clients.spawn(async move {
            send(address, Ai::request("/v1/chat/completions", &body, Some(key))).await.status.as_u16()
        });
    }
    let codes = clients.join_all().await;
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 50);
    assert_eq!(codes.iter().filter(|code| **code == 429).count(), 150);
    assert_eq!(ai.mock.requests(), 50);
}

#[tokio::test]
async fn a_key_that_is_revoked_is_refused_at_once_and_its_streams_are_cut() {
    let ai = Ai::start().await;
    ai.model("slow", &[("openai", "echo,words=1000,pace=20ms")]).await;
    let policy = |keys: Value| json!({"keys": keys, "cutStreams": true});
    ai.policy(policy(json!([{"name": "jane", "sha256": sha256("secret")}]))).await;
    let mut response = ai.open("/v1/chat/completions", &streamed(chat("slow", "hi"))).await;
    assert!(response.body_mut().frame().await.unwrap().is_ok());
    let begin = Instant::now();
    ai.policy(policy(json!([]))).await;
    let programmed = begin.elapsed();
    assert_eq!(ai.chat("slow").await.status, 401);
    let rest = within("the end", response.into_body().collect()).await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&rest);
    assert!(text.contains("the key was revoked"), "{text}");
    assert!(programmed < Duration::from_millis(500), "{programmed:?}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_of_the_provider() {
    let ai = Ai::start().await;
    ai.model("slow", &[("anthropic", "echo,words=1000,pace=20ms")]).await;
    let mut client = crate::support::connect(ai.bench.address).await;
    let request = Ai::request("/v1/chat/completions", &streamed(chat("slow", "hi")), Some("secret"));
    let mut response = client.send_request(request).await.unwrap();
    assert!(response.body_mut().frame().await.unwrap().is_ok());
    let begin = Instant::now();
    drop((response, client));
    within("cancelling", async {
        while ai.mock.cancelled() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn pieces_leave_as_they_come() {
    let ai = Ai::start().await;
    for provider in ["openai", "gemini"] {
        ai.model("paced", &[(provider, "echo,words=5,pace=100ms")]).await;
        let mut response = ai.open("/v1/chat/completions", &streamed(chat("paced", "hi"))).await;
        let mut times = Vec::new();
        while let Some(Ok(frame)) = response.body_mut().frame().await {
            if frame
                .data_ref()
                .is_some_and(|data| String::from_utf8_lossy(data).contains("\"content\":\"word"))
            {
                times.push(Instant::now());
            }
        }
        assert_eq!(times.len(), 5, "{provider}: each piece of its own");
        let spread = times[4] - times[0];
        assert!(spread >= Duration::from_millis(350), "{provider}: {spread:?}");
    }
}

#[tokio::test]
async fn a_client_that_waits_gets_comments() {
    let ai = Ai::with(json!({"keepAlive": "50ms"})).await;
    ai.model("slow", &[("anthropic", "echo,delay=300ms,status=503"), ("gemini", "echo,delay=200ms")]).await;
    let told = ai.post("/v1/chat/completions", &streamed(chat("slow", "hi"))).await;
    assert!(
        told.text().starts_with(": keep-alive\n\n") && told.text().ends_with("[DONE]\n\n"),
        "{}",
        told.text()
    );
    ai.model("slow", &[("openai", "echo,delay=200ms,status=400")]).await;
    let told = ai.post("/v1/chat/completions", &streamed(chat("slow", "hi"))).await;
    assert!(told.status == 200 && told.text().contains("scripted to refuse"), "{}", told.text());
}

#[tokio::test]
async fn tools_are_called_across_dialects() {
    let ai = Ai::start().await;
    for provider in ["openai", "anthropic", "gemini"] {
        ai.model(provider, &[(provider, "echo")]).await;
        let tool = |name: &str| {
            json!({"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}})
        };
        let mut body = chat(provider, "weather?");
        body["tools"] = json!([tool("weather"), tool("time")]);
        let told = ai.post("/v1/chat/completions", &body).await.json();
        let calls = told["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone();
        assert_eq!(
            (calls.len(), told["choices"][0]["finish_reason"].clone()),
            (2, "tool_calls".into()),
            "{told}"
        );
        assert_eq!(calls[1]["function"]["arguments"], "{\"city\":\"Paris\"}");
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(told["choices"][0]["message"].clone());
        for call in &calls {
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "sunny"}));
        }
        let told = ai.post("/v1/chat/completions", &body).await.json();
        assert_eq!(told["choices"][0]["message"]["content"], "You said: sunny sunny", "{provider}");
        body["messages"].as_array_mut().unwrap().truncate(1);
        let told = ai.post("/v1/chat/completions", &streamed(body)).await;
        assert!(
            told.text().contains("\"name\":\"time\"")
                && told.text().contains("\"finish_reason\":\"tool_calls\""),
            "{}",
            told.text()
        );
    }
}

#[tokio::test]
async fn guardrails_hold_back_requests_answers_and_streams() {
    let ai = Ai::start().await;
    ai.model("echo", &[("openai", "echo")]).await;
    ai.model("across", &[("gemini", "echo")]).await;
    ai.policy(json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}],
        "guardrails": [{"name": "cards", "pattern": "\\d{4}-\\d{4}"}, {"name": "words", "on": "Response", "pattern": "very bad"}],
    })).await;
    let told = ai.post("/v1/chat/completions", &chat("echo", "my card is 1234-5678")).await;
    assert!(told.status == 400 && told.text().contains("guardrail \\\"cards\\\""), "{}", told.text());
    assert!(!told.text().contains("1234-5678"));
    assert_eq!(ai.mock.requests(), 0);
    for model in ["echo", "across"] {
        let told = ai.post("/v1/chat/completions", &chat(model, "say very bad things")).await;
        assert!(told.status == 400 && told.text().contains("words"), "{}", told.text());
        let told = ai.post("/v1/chat/completions", &streamed(chat(model, "say very bad things"))).await;
        assert!(told.text().contains("guardrail") && !told.text().contains("bad "), "{}", told.text());
        assert_eq!(ai.post("/v1/chat/completions", &chat(model, "say very good things")).await.status, 200);
    }
}

#[tokio::test]
async fn a_prompt_is_an_api_with_versions_and_a_description() {
    let ai = Ai::start().await;
    ai.model("writer", &[("anthropic", "echo")]).await;
    let spec = |version: &str, template: &str| {
        json!({
            "gateway": "main", "prompt": "greet", "version": version, "model": "writer", "template": template, "description": "Greets",
            "inputs": {"name": {"description": "Whom", "maxLength": 10}, "loud": {"type": "Boolean", "optional": true}},
        })
    };
    ai.bench
        .put("PromptTemplate", "greet-2", spec("v2", "Say hi to {{ name }}{% if loud %}!{% endif %}"))
        .await;
    ai.bench.put("PromptTemplate", "greet-10", spec("v10", "Greet {{ name }}")).await;
    let told = ai.post("/v1/prompts/greet", &json!({"name": "Jo"})).await;
    assert_eq!(told.json()["output"], "You said: Greet Jo", "{}", told.text());
    assert!(told.json()["usage"]["outputTokens"].as_u64().unwrap() > 0);
    let told = ai.post("/v1/prompts/greet/v2", &json!({"name": "Jo", "loud": true})).await;
    assert_eq!(told.json()["output"], "You said: Say hi to Jo!", "{}", told.text());
    for (inputs, expected) in [
        (json!({}), "name: is missing"),
        (json!({"name": 7}), "name: has to be a text"),
        (json!({"name": "x".repeat(11)}), "at most 10 bytes"),
        (json!({"name": "Jo", "nmae": 1}), "nmae: is not an input"),
        (json!([]), "has to be a JSON object"),
    ] {
        let told = ai.post("/v1/prompts/greet", &inputs).await;
        assert!(told.status == 400 && told.text().contains(expected), "{}", told.text());
    }
    let get = |path: &'static str| Request::get(path).header("authorization", "Bearer secret");
    let described = ai.bench.send(get("/v1/prompts/greet/v2/openapi.json")).await.json();
    let schema = &described["paths"]["/v1/prompts/greet/v2"]["post"]["requestBody"]["content"]["application/json"]
        ["schema"];
    assert_eq!(
        (schema["required"].clone(), schema["properties"]["loud"]["type"].clone()),
        (json!(["name"]), "boolean".into())
    );
    assert_eq!(ai.post("/v1/prompts/greet/v3", &json!({"name": "Jo"})).await.status, 404);
    // A mistake leaves the last good form.
    ai.bench.put("PromptTemplate", "greet-10", spec("v10", "Greet {{ nobody }}")).await;
    let report = ai.bench.handle.report(&crate::support::id("PromptTemplate", "greet-10")).unwrap();
    assert!(report.accepted.message.contains("nobody is not among spec.inputs"), "{report}");
    assert_eq!(
        ai.post("/v1/prompts/greet", &json!({"name": "Jo"})).await.json()["output"],
        "You said: Greet Jo"
    );
}

#[tokio::test]
async fn a_gateway_that_starts_again_knows_what_was_used() {
    let records = tempfile::tempdir().unwrap();
    let mock = mock();
    let start = async || {
        let (objects, source) = watchkeeper_sources::channel::channel("test");
        let put = |kind: &str, name: &str, spec: Value| {
            let key = watchkeeper_core::Key::new(Some(kind), name);
            objects.put(&key, &crate::support::object(kind, name, spec)).unwrap();
        };
        put("GatewayListener", "web", json!({"port": 0}));
        put(
            "AIGatewayConfig",
            "main",
            json!({"providers": [{"name": "openai", "dialect": "OpenAI", "url": format!("http://{}", mock.address())}]}),
        );
        put("ModelContextMapping", "echo", json!({"model": "echo", "targets": [{"provider": "openai"}]}));
        put(
            "LLMGatewayPolicy",
            "keys",
            json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "requests": 3}]}),
        );
        let options = watchkeeper_gateway::Options {
            from: vec![watchkeeper_gateway::From::Source(std::sync::Arc::new(source))],
            records: Destinations { directory: Some(records.path().to_owned()), table: None },
            ..Default::default()
        };
        let gateway = watchkeeper_gateway::Gateway::start(options).unwrap();
        let mut handle = gateway.handle().clone();
        within("starting", handle.ready()).await;
        let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
        (objects, gateway, address)
    };
    let ask = async |address| {
        send(address, Ai::request("/v1/chat/completions", &chat("echo", "hi"), Some("secret")))
            .await
            .status
            .as_u16()
    };
    let (objects, gateway, address) = start().await;
    assert_eq!((ask(address).await, ask(address).await), (200, 200));
    gateway.stop(Duration::from_secs(1)).await;
    drop(objects);
    within("records", async {
        let mut lines = 0;
        while lines < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            lines = 0;
            watchkeeper_gateway::ai::records::read(records.path(), |_| lines += 1).unwrap();
        }
    })
    .await;
    let (_objects, _gateway, address) = start().await;
    assert_eq!((ask(address).await, ask(address).await), (200, 429));
}

#[tokio::test]
async fn an_attempt_that_nobody_knows_of_is_paid_for_before_the_next() {
    let ai =
        Ai::with(json!({"timeouts": {"firstToken": "100ms"}, "retry": {"attempts": 5, "backoff": "1ms"}}))
            .await;
    ai.model("m", &[("openai", "echo,delay=1m"), ("gemini", "echo")]).await;
    let policy = |requests: u64| {
        json!({
            "keys": [{"name": "jane", "sha256": sha256("secret")}],
            "limits": [{"per": "Month", "requests": requests, "by": "Policy"}, {"per": "Month", "tokens": 100000}],
        })
    };
    ai.policy(policy(1)).await;
    let told = ai.chat("m").await;
    assert_eq!((told.status.as_u16(), ai.mock.requests()), (429, 1), "{}", told.text());
    ai.policy(policy(3)).await;
    assert_eq!(ai.chat("m").await.status, 200, "one for each try");
    assert_eq!(ai.chat("m").await.status, 429);
}

#[tokio::test]
async fn a_tenant_shares_a_limit_and_can_be_suspended() {
    let ai = Ai::start().await;
    ai.model("echo", &[("openai", "echo")]).await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}]})).await;
    let ask = async |key: &str| {
        send(ai.bench.address, Ai::request("/v1/chat/completions", &chat("echo", "hi"), Some(key)))
            .await
            .status
            .as_u16()
    };
    ai.bench.put("Tenant", "default", json!({"limits": [{"per": "Month", "requests": 2}]})).await;
    assert_eq!((ask("secret").await, ask("other").await, ask("secret").await), (200, 200, 429));
    ai.bench.put("Tenant", "default", json!({"suspended": true})).await;
    assert_eq!(ask("other").await, 403);
    ai.bench.remove("Tenant", "default").await;
    assert_eq!(ask("other").await, 200);
}

#[tokio::test]
async fn expressions_of_a_mapping_change_what_providers_get_and_give() {
    let ai = Ai::start().await;
    let mapping = |request: &str, response: &str| {
        json!({
            "model": "m", "targets": [{"provider": "openai", "model": "echo"}], "request": request, "response": response,
        })
    };
    let spec = mapping(
        ".messages |= map(.content += \" (sent)\") | del(.user)",
        ".choices[].message.content += \"!\"",
    );
    ai.bench.put("ModelContextMapping", "m", spec).await;
    let mut body = chat("m", "hi");
    body["user"] = "jane".into();
    let told = ai.post("/v1/chat/completions", &body).await;
    assert_eq!(told.json()["choices"][0]["message"]["content"], "You said: hi (sent)!", "{}", told.text());
    let sent: Value = serde_json::from_slice(&ai.mock.last().unwrap().1).unwrap();
    assert_eq!(sent.get("user"), None);
    let told = ai
        .post(
            "/v1/messages",
            &json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
        )
        .await;
    assert_eq!(told.json()["content"][0]["text"], "You said: hi (sent)!", "after and before the translation");
    let looping = vec!["{messages: ., b: .}"; 60].join(" | ");
    ai.bench.put("ModelContextMapping", "m", mapping(&looping, ".")).await;
    let told = ai.chat("m").await;
    assert!(told.status == 500 && told.text().contains("steps"), "{}", told.text());
    ai.bench.put("ModelContextMapping", "m", mapping("def f: f; f", ".")).await;
    let report = ai.bench.handle.report(&crate::support::id("ModelContextMapping", "m")).unwrap();
    assert!(report.accepted.message.contains("spec.request: unexpected def"), "{report}");
}
