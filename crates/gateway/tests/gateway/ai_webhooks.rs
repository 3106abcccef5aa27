//! Guardrails that ask a service, over real sockets: what it says, and what becomes of calls when it says nothing of use.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_front::{Body, Request, Response};

use crate::ai::{Ai, chat, sha256, streamed};
use crate::support::{Server, within};

/// What a service was asked: the headers of the last question, and all questions.
#[derive(Clone, Default)]
struct Asked {
    questions: Arc<Mutex<Vec<Value>>>,
    headers: Arc<Mutex<http::HeaderMap>>,
}

impl Asked {
    fn count(&self) -> usize {
        self.questions.lock().len()
    }

    fn last(&self) -> Value {
        self.questions.lock().last().cloned().unwrap()
    }
}

/// A service that answers what this makes of a question.
fn service<F>(answer: impl Fn(Value) -> F + Send + Sync + 'static) -> (Server, Asked)
where
    F: Future<Output = Response> + Send + 'static,
{
    let (asked, answer) = (Asked::default(), Arc::new(answer));
    let known = asked.clone();
    let server = Server::start(move |request: Request| {
        let (asked, answer) = (known.clone(), Arc::clone(&answer));
        async move {
            let (head, body) = request.into_parts();
            let question: Value = serde_json::from_slice(&body.read(64 << 20).await.unwrap()).unwrap();
            *asked.headers.lock() = head.headers;
            asked.questions.lock().push(question.clone());
            answer(question).await
        }
    });
    (server, asked)
}

fn verdict(allowed: bool) -> Response {
    Response::new(Body::whole(json!({"allowed": allowed, "reason": "canary"}).to_string()))
}

/// A service that refuses texts with a word in them.
fn refuses(word: &'static str) -> (Server, Asked) {
    service(move |question| async move { verdict(!question["text"].as_str().unwrap().contains(word)) })
}

fn url(server: &Server) -> String {
    format!("http://{}/judge", server.address)
}

fn policy(on: &str, webhook: Value) -> Value {
    json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}],
        "guardrails": [{"name": "moderation", "on": on, "webhook": webhook}],
    })
}

/// A request for a stream in each dialect.
fn asked() -> [(&'static str, Value); 4] {
    let messages = json!({"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]});
    [
        ("/v1/chat/completions", streamed(chat("m", "hi"))),
        ("/v1/messages", streamed(messages)),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"contents": [{"parts": [{"text": "hi"}]}]}),
        ),
        ("/v1/responses", streamed(json!({"model": "m", "input": "hi"}))),
    ]
}

#[tokio::test]
async fn a_webhook_judges_requests_before_anybody_else_sees_them() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    let (server, asked) = refuses("forbidden");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "stringData": {"token": "hook-token"}});
    ai.bench.objects.put(&Key::new(Some("Secret"), "hook"), &secret).unwrap();
    let mut spec = policy(
        "Request",
        json!({
            "url": url(&server), "key": {"secretName": "hook", "secretKey": "token"}, "headers": {"x-team": "blue"},
        }),
    );
    spec["limits"] = json!([{"per": "Month", "requests": 3}]);
    ai.policy(spec).await;
    let told = ai.chat("m").await;
    assert_eq!(told.status, 200, "{}", told.text());
    let question = asked.last();
    let expected = json!({
        "guardrail": "moderation", "on": "Request", "namespace": "default", "key": "jane", "model": "m",
        "id": told.header("x-request-id"), "text": question["text"],
    });
    assert_eq!(question, expected);
    assert!(question["text"].as_str().unwrap().contains("hello there"), "{question}");
    let headers = asked.headers.lock().clone();
    assert_eq!(
        (&headers["authorization"], &headers["x-team"]),
        (&"Bearer hook-token".parse().unwrap(), &"blue".parse().unwrap())
    );
    for (path, body) in [
        ("/v1/chat/completions", chat("m", "something forbidden")),
        (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "forbidden"}]}),
        ),
    ] {
        let told = ai.post(path, &body).await;
        assert!(
            told.status == 400 && told.text().contains("guardrail \\\"moderation\\\""),
            "{}",
            told.text()
        );
        assert!(!told.text().contains("canary"), "what the service says is not passed on: {}", told.text());
    }
    assert_eq!(ai.mock.requests(), 1, "the provider has not seen what was refused");
    assert_eq!(ai.chat("m").await.status, 429, "what was refused counts as a request");
    let metrics = ai.bench.handle.metrics();
    let line = "gateway_ai_guardrail_webhook_total{namespace=\"default\",policy=\"keys\",guardrail=\"moderation\",verdict=\"refused\"} 2\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn a_webhook_judges_answers_whoever_gave_them() {
    let ai = Ai::start().await;
    let (server, asked) = refuses("very bad");
    ai.policy(policy("Response", json!({"url": url(&server)}))).await;
    for provider in ["openai", "anthropic", "gemini"] {
        ai.model("m", &[(provider, "echo")]).await;
        let told = ai.post("/v1/chat/completions", &chat("m", "say very bad things")).await;
        assert!(told.status == 400 && told.text().contains("the answer is refused"), "{}", told.text());
        let told = ai.post("/v1/chat/completions", &streamed(chat("m", "say very bad things"))).await;
        assert!(
            told.text().contains("the answer is refused") && !told.text().contains("bad"),
            "{}",
            told.text()
        );
        assert_eq!(ai.post("/v1/chat/completions", &chat("m", "say good things")).await.status, 200);
        assert_eq!(asked.last()["on"], "Response");
    }
    // The arguments of tools are said by the model, too.
    let (server, _asked) = refuses("Paris");
    ai.policy(policy("Response", json!({"url": url(&server)}))).await;
    for provider in ["openai", "anthropic"] {
        ai.model("m", &[(provider, "echo")]).await;
        let mut body = chat("m", "weather?");
        let parameters =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        body["tools"] =
            json!([{"type": "function", "function": {"name": "weather", "parameters": parameters}}]);
        for body in [body.clone(), streamed(body)] {
            let told = ai.post("/v1/chat/completions", &body).await;
            assert!(
                told.text().contains("refused") && !told.text().contains("Paris"),
                "{provider} {}",
                told.text()
            );
        }
    }
}

/// What a service does that gives no clear answer.
fn unclear(how: &'static str, redirected: &str) -> (Server, Asked) {
    let redirected = redirected.to_owned();
    service(move |_| {
        let redirected = redirected.clone();
        async move {
            match how {
                "slow" => {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    verdict(true)
                }
                "500" | "204" | "401" => {
                    let mut response = verdict(true);
                    *response.status_mut() = how.parse().unwrap();
                    response
                }
                "redirect" => {
                    let mut response = verdict(true);
                    *response.status_mut() = http::StatusCode::TEMPORARY_REDIRECT;
                    response.headers_mut().insert(LOCATION, redirected.parse().unwrap());
                    response
                }
                "oversized" => {
                    let padding = "x".repeat(1 << 20);
                    Response::new(Body::whole(json!({"allowed": true, "padding": padding}).to_string()))
                }
                "endless" => {
                    let pieces = futures_util::stream::repeat_with(|| {
                        Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(b"          ")))
                    });
                    Response::new(Body::wrap(http_body_util::StreamBody::new(pieces)))
                }
                "breaks off" => {
                    let pieces = futures_util::stream::iter([
                        Ok(http_body::Frame::data(Bytes::from_static(b"{\"allowed\": true"))),
                        Err(std::io::Error::other("scripted")),
                    ]);
                    Response::new(Body::wrap(http_body_util::StreamBody::new(pieces)))
                }
                said => Response::new(Body::whole(said)),
            }
        }
    })
}

const UNCLEAR: [&str; 15] = [
    "slow",
    "500",
    "204",
    "401",
    "redirect",
    "oversized",
    "endless",
    "breaks off",
    "",
    "<html>allowed: true</html>",
    "true",
    "{}",
    "{\"allowed\": \"true\"}",
    "{\"allowed\": true} {\"allowed\": false}",
    "{\"allowed\": 1}",
];

#[tokio::test]
async fn what_a_webhook_does_not_judge_does_not_pass_unless_the_policy_says_so() {
    // Providers are not blamed for it: one failure would have them left out.
    let ai = Ai::with(json!({"health": {"failures": 1, "ejectFor": "10m"}})).await;
    ai.model("m", &[("openai", "echo")]).await;
    let (allowing, elsewhere) = service(|_| async { verdict(true) });
    let mut passed = 0;
    for how in UNCLEAR {
        let (server, _asked) = unclear(how, &url(&allowing));
        let webhook =
            |policy: &str| json!({"url": url(&server), "timeout": "300ms", "failurePolicy": policy});
        for on in ["Request", "Response"] {
            let before = ai.mock.requests();
            ai.policy(policy(on, webhook("Fail"))).await;
            let told = ai.chat("m").await;
            assert_eq!(
                (told.status.as_u16(), told.json()["error"]["code"].clone()),
                (503, "guardrail_unavailable".into()),
                "{how}: {}",
                told.text()
            );
            assert_eq!(told.header("retry-after"), Some("1"));
            let told = ai.post("/v1/messages", &streamed(json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}))).await;
            assert!(
                told.text().contains("overloaded_error") && !told.text().contains("You said"),
                "{how} {on}: {}",
                told.text()
            );
            let asked = ai.mock.requests() - before;
            assert_eq!(asked, if on == "Request" { 0 } else { 2 }, "{how} {on}");
            ai.policy(policy(on, webhook("Ignore"))).await;
            let told = ai.post("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
            assert!(told.status == 200 && told.text().ends_with("[DONE]\n\n"), "{how} {on}: {}", told.text());
            passed += 1;
        }
    }
    assert_eq!((elsewhere.count(), passed), (0, UNCLEAR.len() * 2), "nobody follows redirections");
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}]})).await;
    ai.model("m", &[("openai", "echo"), ("gemini", "echo")]).await;
    assert_eq!(ai.chat("m").await.status, 200);
    assert_eq!(ai.mock.last().unwrap().0, "/v1/chat/completions", "the first provider is not left out");
    // One that is not there at all.
    let gone = Server::echo("gone");
    let address = url(&gone);
    drop(gone);
    ai.policy(policy("Request", json!({"url": address}))).await;
    assert_eq!(ai.chat("m").await.status, 503);
    ai.policy(policy("Request", json!({"url": url(&allowing), "key": {"secretName": "missing"}}))).await;
    assert_eq!(ai.chat("m").await.status, 503, "without its key it is not asked");
    assert_eq!(elsewhere.count(), 0);
    ai.policy(policy("Request", json!({"url": url(&allowing)}))).await;
    assert_eq!((ai.chat("m").await.status.as_u16(), elsewhere.count()), (200, 1), "and an edit mends it");
}

#[tokio::test]
async fn a_text_that_is_too_long_for_a_webhook_is_not_judged() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    let (server, asked) = service(|_| async { verdict(true) });
    ai.policy(policy("Request", json!({"url": url(&server), "maxBytes": 2048}))).await;
    assert_eq!(ai.post("/v1/chat/completions", &chat("m", &"x".repeat(3_000))).await.status, 503);
    assert_eq!(asked.count(), 0);
    assert_eq!(ai.post("/v1/chat/completions", &chat("m", &"x".repeat(1_000))).await.status, 200);
    ai.policy(policy("Request", json!({"url": "http://127.0.0.1:1/?token=x"}))).await;
    let report = ai.bench.handle.report(&crate::support::id("LLMGatewayPolicy", "keys")).unwrap();
    assert!(report.accepted.message.contains("spec.guardrails[0].webhook.url"), "{report}");
    ai.policy(json!({"guardrails": [{"name": "neither"}]})).await;
    let report = ai.bench.handle.report(&crate::support::id("LLMGatewayPolicy", "keys")).unwrap();
    assert!(report.accepted.message.contains("needs one of pattern and webhook"), "{report}");
}

#[tokio::test]
async fn nothing_of_a_stream_leaves_before_the_webhook_has_said_yes() {
    let ai = Ai::start().await;
    let (server, asked_about) = service(|question| async move {
        tokio::time::sleep(Duration::from_millis(10)).await;
        verdict(!question["text"].as_str().unwrap().contains("word7"))
    });
    ai.policy(policy("Response", json!({"url": url(&server)}))).await;
    for provider in ["openai", "anthropic", "gemini"] {
        for (path, body) in asked() {
            ai.model("m", &[(provider, "echo,words=20,pace=2ms")]).await;
            let told = ai.post(path, &body).await;
            assert_eq!(told.status, 200);
            assert!(!told.text().contains("word7"), "{provider} {path}: {}", told.text());
            let last = told.text().trim_end().rsplit("\n\n").next().unwrap();
            assert!(last.contains("moderation"), "{provider} {path}: {}", told.text());
        }
    }
    // What passes is passed on as it is, and many pieces are one question.
    for (provider, (path, body)) in ["openai", "anthropic", "gemini"].into_iter().zip(asked()) {
        ai.model("m", &[(provider, "m,words=6,pace=1ms")]).await;
        let mut direct = body.clone();
        direct["model"] = "m,words=6,pace=1ms".into();
        let direct = crate::support::send(
            ai.mock.address(),
            Ai::request(&path.replace("models/m:", "models/m,words=6,pace=1ms:"), &direct, None),
        )
        .await;
        let before = asked_about.count();
        let through = ai.post(path, &body).await;
        let masked = |text: &str| {
            let parts = text
                .split("mock-")
                .map(|part| part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
            parts.collect::<Vec<_>>().join("mock-N")
        };
        assert_eq!(masked(through.text()), masked(direct.text()), "{provider}");
        let questions = asked_about.count() - before;
        assert!((1..=7).contains(&questions), "{provider}: {questions}");
    }
}

#[tokio::test]
async fn a_webhook_sees_what_was_said_before() {
    let ai = Ai::start().await;
    // It answers at once: pieces come one by one.
    let (server, asked_about) = refuses("word4 word5 word6");
    ai.policy(policy("Response", json!({"url": url(&server)}))).await;
    ai.model("m", &[("openai", "echo,words=20,pace=20ms")]).await;
    let told = ai.post("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
    assert!(told.text().contains("word3") && !told.text().contains("word6"), "{}", told.text());
    assert!(asked_about.count() > 2);
}

#[tokio::test]
async fn a_webhook_that_fails_in_the_middle_of_a_stream_ends_it() {
    let ai = Ai::start().await;
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let (server, _asked) = service(move |_| {
        let is_first = counted.fetch_add(1, Relaxed) == 0;
        async move {
            let mut response = verdict(true);
            if !is_first {
                *response.status_mut() = http::StatusCode::BAD_GATEWAY;
            }
            response
        }
    });
    ai.model("m", &[("openai", "echo,words=20,pace=10ms")]).await;
    for (failure, ends) in [("Fail", "guardrail_unavailable"), ("Ignore", "[DONE]")] {
        count.store(0, Relaxed);
        ai.policy(policy("Response", json!({"url": url(&server), "failurePolicy": failure}))).await;
        let told = ai.post("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
        let last = told.text().trim_end().rsplit("\n\n").next().unwrap();
        assert!(told.text().contains("word") && last.contains(ends), "{failure}: {}", told.text());
        assert_eq!(told.text().contains("word19"), failure == "Ignore");
    }
}

#[tokio::test]
async fn a_key_that_is_revoked_cuts_calls_that_wait_for_a_webhook() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo,words=1000,pace=5ms")]).await;
    let holds = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&holds);
    let (server, asked_about) = service(move |_| {
        let holds = held.load(Relaxed);
        async move {
            if holds {
                std::future::pending::<()>().await;
            }
            verdict(true)
        }
    });
    let webhook = json!({"url": url(&server), "timeout": "10m"});
    let spec = |keys: Value| {
        json!({
            "keys": keys, "cutStreams": true,
            "guardrails": [{"name": "a", "webhook": webhook}, {"name": "b", "on": "Response", "webhook": webhook}],
        })
    };
    let jane = json!([{"name": "jane", "sha256": sha256("secret")}]);
    ai.policy(spec(jane.clone())).await;
    let mut running = ai.open("/v1/chat/completions", &streamed(chat("m", "hi"))).await;
    assert!(running.body_mut().frame().await.unwrap().is_ok());
    holds.store(true, Relaxed);
    let before = asked_about.count();
    let waiting = tokio::spawn(crate::support::send(
        ai.bench.address,
        Ai::request("/v1/chat/completions", &chat("m", "hi"), Some("secret")),
    ));
    within("the webhook being asked", async {
        while asked_about.count() < before + 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    ai.policy(spec(json!([]))).await;
    let told = within("the answer", waiting).await.unwrap();
    assert!(told.status == 401 && told.text().contains("the key was revoked"), "{}", told.text());
    let rest = within("the end", running.into_body().collect()).await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&rest).contains("the key was revoked"));
    within("the provider", async {
        while ai.mock.cancelled() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
