//! Budgets of calls of models, and what is told of them.

use serde_json::{Value, json};

use crate::ai::{Ai, chat, sha256, streamed};

fn budget(tokens: u64) -> Value {
    json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "tokens": tokens}]})
}

#[tokio::test]
async fn no_answer_is_longer_than_what_is_reserved_for_it() {
    let ai = Ai::start().await;
    let gemini = json!({"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"topK": 1}});
    let asked = [
        ("/v1/chat/completions", chat("m", "hi")),
        ("/v1/responses", json!({"model": "m", "input": "hi"})),
        ("/v1beta/models/m:generateContent", gemini),
    ];
    for provider in ["openai", "anthropic", "gemini"] {
        ai.model("m", &[(provider, "echo,words=500")]).await;
        for (path, body) in &asked {
            ai.policy(budget(1_000_000)).await;
            ai.post(path, body).await;
            let sent: Value = serde_json::from_slice(&ai.mock.last().unwrap().1).unwrap();
            let limit = match provider {
                "openai" => &sent["max_completion_tokens"],
                "anthropic" => &sent["max_tokens"],
                _ => &sent["generationConfig"]["maxOutputTokens"],
            };
            assert_eq!(limit, 100, "{provider} {path}: {sent}");
        }
    }
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Minute", "requests": 99}]})).await;
    ai.model("m", &[("openai", "m")]).await;
    ai.post("/v1/chat/completions", &chat("m", "hi")).await;
    assert_eq!(
        ai.mock.last().unwrap().1,
        chat("m", "hi").to_string(),
        "nothing is added where nothing is limited"
    );
}

#[tokio::test]
async fn a_limit_of_another_dialect_limits_nothing() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    ai.policy(budget(100)).await;
    let mut body = chat("m", "hi");
    body["max_output_tokens"] = 1.into();
    let told = ai.post("/v1/chat/completions", &body).await;
    assert_eq!(told.status, 429, "100 for the answer do not fit: {}", told.text());
    body["max_tokens"] = 1.into();
    assert_eq!(ai.post("/v1/chat/completions", &body).await.status, 200);
}

#[tokio::test]
async fn what_nobody_confirmed_is_told_as_cost() {
    let ai = Ai::start().await;
    let spec = json!({
        "model": "silent", "targets": [{"provider": "openai", "model": "echo,usage=none"}], "maxOutputTokens": 1_000,
        "prices": {"input": "0.00", "output": "1000.00"},
    });
    ai.bench.put("ModelContextMapping", "silent", spec).await;
    let told = ai.post("/v1/chat/completions", &streamed(chat("silent", "hi"))).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let metrics = ai.bench.handle.metrics();
    for name in ["gateway_ai_cost_total", "gateway_ai_cost_unconfirmed_total"] {
        let line = format!("{name}{{namespace=\"default\",key=\"jane\",model=\"silent\"}} 1\n");
        assert!(metrics.contains(&line), "{name}: {metrics}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_for_those_of_the_same_policy_who_ask_the_same() {
    let ai = Ai::start().await;
    let policy = |guard: &str| {
        json!({
            "keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}],
            "cache": {"ttl": "1h"}, "limits": [{"per": "Month", "tokens": 1_000_000}, {"per": "Minute", "requests": 1_000}],
            "guardrails": [{"name": "g", "pattern": guard}],
        })
    };
    ai.policy(policy("x")).await;
    let stranger = json!({"keys": [{"name": "jim", "sha256": sha256("stranger")}], "cache": {"ttl": "1h"}});
    ai.bench.put("LLMGatewayPolicy", "others", stranger).await;
    ai.model("m", &[("openai", "echo")]).await;
    let ask = async |key: &str, body: Value, control: &str| {
        let mut request = Ai::request("/v1/chat/completions", &body, Some(key));
        request.headers_mut().insert("cache-control", control.parse().unwrap());
        let told = crate::support::send(ai.bench.address, request).await;
        assert_eq!(told.status, 200, "{}", told.text());
        (told.header("x-cache").is_some(), told.text().to_owned(), ai.mock.requests())
    };
    for body in [chat("m", "hi"), streamed(chat("m", "hi"))] {
        let (hit, first, before) = ask("secret", body.clone(), "max-age=0").await;
        assert!(!hit);
        assert_eq!(ask("secret", body.clone(), "max-age=0").await, (true, first.clone(), before));
        assert_eq!(
            ask("other", body.clone(), "max-age=0").await,
            (true, first, before),
            "another key of the policy"
        );
        assert!(!ask("secret", body.clone(), "no-cache").await.0);
        assert!(!ask("stranger", body, "max-age=0").await.0, "another policy");
    }
    assert!(!ask("secret", chat("m", "hi "), "max-age=0").await.0, "a space more");
    ai.policy(policy("y")).await;
    assert!(!ask("secret", chat("m", "hi"), "max-age=0").await.0, "an edit of the policy forgets");
    assert!(ask("secret", chat("m", "hi"), "max-age=0").await.0);
    ai.model("m", &[("gemini", "echo")]).await;
    assert!(!ask("secret", chat("m", "hi"), "max-age=0").await.0, "an edit of the model forgets");
    ai.model("broken", &[("openai", "echo,words=9,error=3")]).await;
    for _ in 0..2 {
        assert!(!ask("secret", streamed(chat("broken", "hi")), "max-age=0").await.0, "a stream that failed");
    }
    assert!(
        ai.bench.handle.metrics().contains("gateway_ai_cache_hits_total 5\n"),
        "{}",
        ai.bench.handle.metrics()
    );
}

#[tokio::test]
async fn an_answer_is_kept_for_the_same_headers_and_the_same_variant() {
    let ai = Ai::start().await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "cache": {"ttl": "1h"}})).await;
    ai.model("m", &[("anthropic", "echo")]).await;
    let messages = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let ask = async |path: &str, body: &Value, name: &'static str, value: &str| {
        let mut request = Ai::request(path, body, Some("secret"));
        request.headers_mut().insert(name, value.parse().unwrap());
        let told = crate::support::send(ai.bench.address, request).await;
        assert_eq!(told.status, 200, "{}", told.text());
        (told.header("x-cache").is_some(), ai.mock.last().unwrap().1)
    };
    for (name, values) in [
        ("anthropic-beta", ["one", "two"]),
        ("anthropic-version", ["2023-06-01", "2024-01-01"]),
        ("openai-beta", ["a", "b"]),
    ] {
        for value in values {
            assert!(!ask("/v1/messages", &messages, name, value).await.0, "{name}: {value}");
            assert!(ask("/v1/messages", &messages, name, value).await.0, "{name}: {value}");
        }
    }
    let targets = json!([{"provider": "openai", "model": "one"}, {"provider": "openai", "model": "two"}]);
    let spec = json!({"model": "ab", "targets": targets, "split": {"by": "Header", "header": "x-user"}});
    ai.bench.put("ModelContextMapping", "ab", spec).await;
    let mut asked = Vec::new();
    for user in 0..20 {
        let path = "/v1/chat/completions";
        let (hit, sent) = ask(path, &chat("ab", "hi"), "x-user", &format!("user-{user}")).await;
        if !hit {
            asked.push(sent);
        }
    }
    assert_eq!(asked.len(), 2, "each variant is asked once");
    assert_ne!(asked[0], asked[1]);
}

#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_is_refused_where_it_is_guarded() {
    let ai = Ai::start().await;
    ai.model("openai", &[("openai", "echo")]).await;
    ai.model("gemini", &[("gemini", "echo")]).await;
    let bodies = [
        (
            "/v1/chat/completions",
            r#"{"model":"openai","messages":[{"role":"user","content":"forbidden","content":"hi"}]}"#,
        ),
        (
            "/v1/chat/completions",
            r#"{"model":"openai","messages":[{"role":"user","content":"forbidden"}],"m\u0065ssages":[{"role":"user","content":"hi"}]}"#,
        ),
        (
            "/v1beta/models/gemini:generateContent",
            r#"{"contents":[{"parts":[{"text":"forbidden"}],"parts":[{"text":"hi"}]}]}"#,
        ),
    ];
    let ask = async |path: &str, body: &'static str| {
        let request = http::Request::post(path).header("host", "a").header("x-api-key", "secret");
        let body = watchkeeper_front::Body::whole(body);
        crate::support::send(ai.bench.address, request.body(body).unwrap()).await
    };
    for (path, body) in bodies {
        assert_eq!(ask(path, body).await.status, 200, "{body}");
    }
    let before = ai.mock.requests();
    ai.policy(json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}], "guardrails": [{"name": "words", "pattern": "forbidden"}],
    }))
    .await;
    for (path, body) in bodies {
        let told = ask(path, body).await;
        assert!(told.status == 400 && told.text().contains("twice"), "{body}: {}", told.text());
    }
    assert_eq!(ai.mock.requests(), before, "nobody was asked");
}
