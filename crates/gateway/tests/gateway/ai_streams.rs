//! Streams of models: what leaves when, and what becomes of those that fail.

use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use watchkeeper_ai::tokens_of;

use crate::ai::{Ai, chat, sha256, streamed};
use crate::ai_promises::check;
use crate::ai_records::{files, recording, stopped};
use crate::support::{Answer, Control, send, within};

/// How soon a piece leaves after it came.
const PIECE: Duration = Duration::from_millis(2);

/// A request for a stream in each dialect, by the provider that speaks it.
fn asked() -> [(&'static str, &'static str, Value); 4] {
    [
        ("openai", "/v1/chat/completions", streamed(chat("m", "hi"))),
        (
            "anthropic",
            "/v1/messages",
            streamed(
                json!({"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}),
            ),
        ),
        (
            "gemini",
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"contents": [{"parts": [{"text": "hi"}]}]}),
        ),
        ("responses", "/v1/responses", streamed(json!({"model": "m", "input": "hi"}))),
    ]
}

#[tokio::test]
async fn an_error_after_half_an_event_is_an_event_of_its_own() {
    let ai = Ai::start().await;
    for (provider, path, body) in asked() {
        ai.model("m", &[(provider, "echo,words=20,tear=3")]).await;
        let told = ai.post(path, &body).await;
        assert!(told.text().contains("word2"), "{provider}: {}", told.text());
        let events: Vec<&str> = told.text().trim_end().split("\n\n").collect();
        for event in &events {
            let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            assert!(data.len() == 1 && serde_json::from_str::<Value>(data[0]).is_ok(), "{provider}: {event}");
        }
        assert!(events.last().unwrap().contains("broke off"), "{provider}: {}", told.text());
    }
}

#[tokio::test]
async fn nothing_of_an_event_leaves_before_guardrails_have_seen_all_of_it() {
    let ai = Ai::start().await;
    ai.policy(json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}],
        "guardrails": [{"name": "words", "on": "Response", "pattern": "word3"}],
    }))
    .await;
    for (provider, path, body) in asked() {
        for script in ["echo,words=20,tear=3", "echo,words=20"] {
            ai.model("m", &[(provider, script)]).await;
            let told = ai.post(path, &body).await;
            assert!(!told.text().contains("word3"), "{provider} {script}: {}", told.text());
            assert!(told.text().contains("word2"), "{provider} {script}: {}", told.text());
        }
    }
}

#[tokio::test]
async fn a_provider_that_sends_headers_and_hangs_is_left_out() {
    let settings = json!({
        "timeouts": {"firstToken": "1s", "betweenTokens": "1s"}, "retry": {"attempts": 0},
        "health": {"failures": 2, "ejectFor": "10m"},
    });
    for script in ["echo,hang=0", "echo,words=9,hang=2"] {
        let ai = Ai::with(settings.clone()).await;
        ai.model("m", &[("openai", script), ("gemini", "echo")]).await;
        for _ in 0..2 {
            let told = ai.post("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
            assert!(told.text().contains("error"), "{script}: {}", told.text());
        }
        let told = ai.post("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
        assert!(told.text().contains("You"), "{script}: {}", told.text());
    }
}

#[tokio::test]
async fn usage_is_asked_for_once_whatever_the_client_says_of_streams() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    for options in
        [json!(null), json!({}), json!({"include_usage": false}), json!({"include_obfuscation": false})]
    {
        let mut body = streamed(chat("m", "hi"));
        body["stream_options"] = options.clone();
        let told = ai.post("/v1/chat/completions", &body).await;
        let (_, sent) = ai.mock.last().unwrap();
        let sent = String::from_utf8(sent.to_vec()).unwrap();
        assert_eq!(sent.matches("stream_options").count(), 1, "{sent}");
        assert!(sent.contains("\"include_usage\":true"), "{sent}");
        assert!(!told.text().contains("prompt_tokens"), "{options}: {}", told.text());
    }
}

/// What becomes of a stream that runs, and of a call whose provider has not begun to answer, when something is done.
async fn cut(ai: &Ai, done: impl AsyncFnOnce()) -> (String, Answer) {
    ai.model("slow", &[("openai", "echo,words=1000,pace=20ms")]).await;
    ai.model("late", &[("openai", "echo,delay=10m")]).await;
    let mut running = ai.open("/v1/chat/completions", &streamed(chat("slow", "hi"))).await;
    assert!(running.body_mut().frame().await.unwrap().is_ok());
    let late = Ai::request("/v1/chat/completions", &streamed(chat("late", "hi")), Some("secret"));
    let waiting = tokio::spawn(send(ai.bench.address, late));
    within("both calls", async {
        while ai.mock.requests() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    done().await;
    let rest = within("the end", running.into_body().collect()).await.unwrap().to_bytes();
    (String::from_utf8_lossy(&rest).into_owned(), within("the answer", waiting).await.unwrap())
}

#[tokio::test]
async fn a_key_that_is_revoked_cuts_streams_and_calls_that_wait() {
    let ai = Ai::start().await;
    let policy = |keys: Value| json!({"keys": keys, "cutStreams": true});
    ai.policy(policy(json!([{"name": "jane", "sha256": sha256("secret")}]))).await;
    let (rest, waiting) = cut(&ai, async || ai.policy(policy(json!([]))).await).await;
    assert!(rest.contains("the key was revoked"), "{rest}");
    assert!(waiting.status == 401 && waiting.text().contains("the key was revoked"), "{}", waiting.text());
}

#[tokio::test]
async fn a_key_that_is_revoked_cuts_prompts_that_wait() {
    let ai = Ai::start().await;
    let policy = |keys: Value| json!({"keys": keys, "cutStreams": true});
    ai.policy(policy(json!([{"name": "jane", "sha256": sha256("secret")}]))).await;
    ai.model("late", &[("openai", "echo,delay=10m")]).await;
    ai.model("soon", &[("openai", "echo")]).await;
    for model in ["late", "soon"] {
        let spec =
            json!({"gateway": "main", "prompt": model, "version": "v1", "model": model, "template": "hi"});
        ai.bench.put("PromptTemplate", model, spec).await;
    }
    let told = ai.post("/v1/prompts/soon", &json!({})).await;
    assert!(told.status == 200 && told.header("x-request-id").is_some(), "{}", told.text());
    let late = Ai::request("/v1/prompts/late", &json!({}), Some("secret"));
    let waiting = tokio::spawn(send(ai.bench.address, late));
    within("the provider being asked", async {
        while ai.mock.requests() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    ai.policy(policy(json!([]))).await;
    let told = within("the answer", waiting).await.unwrap();
    assert!(told.status == 401 && told.text().contains("the key was revoked"), "{}", told.text());
    assert!(told.header("x-request-id").is_some());
}

#[tokio::test]
async fn a_tenant_that_is_suspended_cuts_streams_if_it_says_so() {
    let ai = Ai::start().await;
    ai.bench.put("Tenant", "default", json!({"cutStreams": true})).await;
    let suspended =
        async || ai.bench.put("Tenant", "default", json!({"suspended": true, "cutStreams": true})).await;
    let (rest, waiting) = cut(&ai, suspended).await;
    assert!(rest.contains("the tenant was suspended"), "{rest}");
    assert_eq!(waiting.status, 403, "{}", waiting.text());
    ai.bench.put("Tenant", "default", json!({"cutStreams": true})).await;
    assert_eq!(ai.chat("slow,words=1").await.status, 404, "no longer suspended");
}

#[tokio::test]
async fn a_subscription_that_is_revoked_cuts_streams_if_its_api_says_so() {
    let ai = Ai::start().await;
    let api =
        json!({"gateways": ["main"], "state": "Published", "subscription": "Automatic", "cutStreams": true});
    ai.bench.put("ApiDefinition", "llm", api).await;
    let subscription = |suspended: bool| json!({"api": "llm", "consumer": "team", "keys": [sha256("secret")], "suspended": suspended});
    ai.bench.put("ApiSubscription", "team", subscription(false)).await;
    let (rest, waiting) =
        cut(&ai, async || ai.bench.put("ApiSubscription", "team", subscription(true)).await).await;
    assert!(rest.contains("the subscription was revoked"), "{rest}");
    assert!(waiting.status == 401 && waiting.text().contains("revoked"), "{}", waiting.text());
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_soon_and_it_is_settled() {
    let directory = tempfile::tempdir().unwrap();
    let ai = recording(files(directory.path())).await;
    let body = streamed(chat("m", "hi"));
    let reserved = tokens_of(body.to_string().as_bytes()) + 100;
    // Room for what this call keeps and for the reservation of one more, which keeps it, too: a call that is charged twice leaves no room for it, and one
    // that is charged with less leaves room for two.
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "tokens": 2 * reserved}]})).await;
    ai.model("m", &[("openai", "echo,words=1000,pace=20ms")]).await;
    let mut client = crate::support::connect(ai.bench.address).await;
    let request = Ai::request("/v1/chat/completions", &body, Some("secret"));
    let mut response = client.send_request(request).await.unwrap();
    assert!(response.body_mut().frame().await.unwrap().is_ok());
    let begin = Instant::now();
    drop((response, client));
    within("cancelling", async {
        while ai.mock.cancelled() == 0 || !ai.bench.handle.metrics().contains("error_type=\"client_gone\"") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    println!("the provider's call ended, and the budget was settled, after {:?}", begin.elapsed());
    ai.model("m", &[("openai", "echo,usage=none")]).await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        codes.push(ai.post("/v1/chat/completions", &body).await.status.as_u16());
    }
    assert_eq!(codes, [200, 429]);
    let read = stopped(ai, directory.path()).await;
    assert_eq!((&read[0]["error"], &read[0]["inputTokens"]), (&json!("client_gone"), &Value::Null));
    let charged: Vec<u64> = read.iter().map(|record| record["chargedTokens"].as_u64().unwrap()).collect();
    assert_eq!(charged, [reserved, reserved, 0]);
}

#[tokio::test]
async fn the_same_dialect_passes_byte_by_byte_for_every_vendor() {
    let ai = Ai::with(json!({"access": "Open"})).await;
    let url = format!("http://{}", ai.mock.address());
    let providers = json!([
        {"name": "openai", "dialect": "OpenAI", "url": url, "responses": true},
        {"name": "anthropic", "dialect": "Anthropic", "url": url},
        {"name": "gemini", "dialect": "Gemini", "url": url},
    ]);
    ai.bench.put("AIGatewayConfig", "main", json!({"providers": providers})).await;
    let messages = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "future": {"z": 1, "a": [1.50]}});
    let generate = json!({"contents": [{"parts": [{"text": "hi"}]}], "future": {"z": 1}});
    for (provider, path, body) in [
        ("anthropic", "/v1/messages", messages.clone()),
        ("anthropic", "/v1/messages", streamed(messages)),
        ("gemini", "/v1beta/models/m:generateContent", generate.clone()),
        ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", generate),
        ("openai", "/v1/responses", json!({"model": "m", "input": "hi", "future": true})),
        ("openai", "/v1/responses", streamed(json!({"model": "m", "input": "hi", "future": true}))),
    ] {
        ai.model("m", &[(provider, "m")]).await;
        let direct = send(ai.mock.address(), Ai::request(path, &body, None)).await;
        let through = ai.post(path, &body).await;
        assert_eq!(ai.mock.last().unwrap().1, body.to_string(), "{provider} {path}");
        let masked = |text: &str| {
            let parts: Vec<&str> = text.split("mock-").collect();
            let rest =
                |part: &&str| part.trim_start_matches(|letter: char| letter.is_ascii_digit()).to_owned();
            parts.iter().map(rest).collect::<Vec<_>>().join("mock-N")
        };
        assert_eq!(masked(through.text()), masked(direct.text()), "{provider} {path}");
    }
}

#[tokio::test]
async fn a_piece_is_passed_on_within_two_milliseconds() {
    const WORDS: usize = 60;
    let ai = Ai::start().await;
    let across = ["anthropic", "gemini"].map(|provider| {
        let [(_, path, body), ..] = asked();
        (provider, path, body)
    });
    for (provider, path, body) in asked().into_iter().chain(across) {
        ai.model("m", &[(provider, &format!("echo,words={WORDS},pace=5ms"))]).await;
        let control = Control::start();
        let mut response = ai.open(path, &body).await;
        let mut came = Vec::new();
        let piece = match path {
            "/v1/chat/completions" => "\"content\":\"word",
            "/v1/responses" => "\"delta\":\"word",
            _ => "\"text\":\"word",
        };
        while let Some(Ok(frame)) = response.body_mut().frame().await {
            let Ok(data) = frame.into_data() else { continue };
            // What is said once more at the end has all words.
            let data = String::from_utf8_lossy(&data);
            came.extend(data.matches(piece).map(|_| Instant::now()).take(WORDS - came.len()));
        }
        // The first piece of the mock only begins, the last only ends.
        let sent = ai.mock.sent();
        assert_eq!((sent.len(), came.len()), (WORDS + 2, WORDS), "{provider} {path}");
        let delays = sent[1..].iter().zip(&came).map(|(sent, came)| came.saturating_duration_since(*sent));
        check(&format!("a piece of {provider} for {path}"), delays.collect(), PIECE, &control);
    }
}
