//! What is reserved for calls of models, and what they are charged with.

use serde_json::{Value, json};
use watchkeeper_ai::tokens_of;

use crate::ai::{Ai, chat, sha256, streamed};
use crate::ai_records::{files, recording, stopped};
use crate::support::{id, within};

/// How much the models of these tests write at most.
const MOST: u64 = 100;

/// A call of the model `m` in each dialect, as a whole and as a stream. It may write as much as the model.
fn asked() -> Vec<(&'static str, Value)> {
    let chat = chat("m", "hi");
    let responses = json!({"model": "m", "input": "hi"});
    let messages = json!({"model": "m", "max_tokens": MOST, "messages": [{"role": "user", "content": "hi"}]});
    let generate = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let mut asked = Vec::new();
    for (path, body) in
        [("/v1/chat/completions", chat), ("/v1/responses", responses), ("/v1/messages", messages)]
    {
        asked.extend([(path, body.clone()), (path, streamed(body))]);
    }
    asked.push(("/v1beta/models/m:generateContent", generate.clone()));
    asked.push(("/v1beta/models/m:streamGenerateContent?alt=sse", generate));
    asked
}

/// What is reserved for a call, in tokens.
fn reserved(body: &Value) -> u64 {
    tokens_of(body.to_string().as_bytes()) + MOST
}

#[tokio::test]
async fn usage_that_is_missing_or_is_told_of_the_prompt_only_keeps_the_reservation() {
    let directory = tempfile::tempdir().unwrap();
    let ai = recording(files(directory.path())).await;
    let mut expected = Vec::new();
    for provider in ["openai", "anthropic", "gemini", "responses"] {
        for script in ["echo", "echo,usage=none", "echo,usage=input"] {
            ai.model("m", &[(provider, script)]).await;
            for (path, body) in asked() {
                let told = ai.post(path, &body).await;
                assert!(told.status == 200 && told.text().contains("You"), "{path}: {}", told.text());
                expected.push((format!("{provider} {script} {path} {body}"), script, reserved(&body)));
            }
        }
    }
    let read = stopped(ai, directory.path()).await;
    assert_eq!(read.len(), expected.len());
    for (record, (what, script, reserved)) in read.iter().zip(&expected) {
        let number = |name: &str| record[name].as_u64();
        match *script {
            "echo" => {
                let used = number("inputTokens").zip(number("outputTokens"));
                let used = used.map(|(input, output)| input + output);
                assert!(used.is_some_and(|used| used > 0 && used < *reserved), "{what}: {record}");
                assert_eq!(number("chargedTokens"), used, "{what}: {record}");
            }
            _ => {
                assert_eq!(record["inputTokens"], Value::Null, "{what}: {record}");
                assert_eq!(number("chargedTokens"), Some(*reserved), "{what}: {record}");
            }
        }
    }
}

#[tokio::test]
async fn vectors_are_charged_by_their_prompt() {
    let directory = tempfile::tempdir().unwrap();
    let ai = recording(files(directory.path())).await;
    let body = json!({"model": "m", "input": "three little words"});
    for script in ["echo", "echo,usage=none"] {
        ai.model("m", &[("openai", script)]).await;
        assert_eq!(ai.post("/v1/embeddings", &body).await.status, 200);
    }
    let read = stopped(ai, directory.path()).await;
    assert_eq!((&read[0]["inputTokens"], &read[0]["chargedTokens"]), (&json!(3), &json!(3)));
    let reserved = tokens_of(body.to_string().as_bytes());
    assert_eq!((&read[1]["inputTokens"], &read[1]["chargedTokens"]), (&Value::Null, &json!(reserved)));
}

#[tokio::test]
async fn an_attempt_that_failed_says_nothing_of_what_the_next_one_used() {
    let directory = tempfile::tempdir().unwrap();
    let ai = recording(files(directory.path())).await;
    // The first provider says what it used and answers with nothing that could be read.
    let spec = json!({
        "model": "m", "maxOutputTokens": MOST,
        "targets": [{"provider": "openai", "model": "echo"}, {"provider": "openai", "model": "echo,usage=none", "priority": 1}],
        "response": "if .usage then del(.choices) else . end",
    });
    ai.bench.put("ModelContextMapping", "m", spec).await;
    let (path, body) = (
        "/v1/messages",
        json!({"model": "m", "max_tokens": MOST, "messages": [{"role": "user", "content": "hi"}]}),
    );
    let told = ai.post(path, &body).await;
    assert_eq!((told.status.as_u16(), ai.mock.requests()), (200, 2), "{}", told.text());
    let read = stopped(ai, directory.path()).await;
    let charged = read[0]["chargedTokens"].as_u64().unwrap();
    assert!(
        charged > reserved(&body),
        "what the first used, and what is reserved for the second: {}",
        read[0]
    );
    assert_eq!(read[0]["inputTokens"], Value::Null);
}

#[tokio::test]
async fn the_most_that_a_prompt_may_cost_is_reserved() {
    let ai = Ai::start().await;
    let policy = json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "cost": "10.00"}]});
    ai.policy(policy).await;
    // A token of the dear price costs 1; the prompt has more than ten.
    for (prices, code) in [
        (json!({"input": "1.00", "output": "0.00"}), 200),
        (json!({"input": "1.00", "output": "0.00", "cachedInput": "0.00", "cacheWrite": "2.00"}), 200),
        (json!({"input": "0.00", "output": "0.00", "cacheWrite": "1000000.00"}), 429),
        (json!({"input": "0.00", "output": "0.00", "cachedInput": "1000000.00"}), 429),
        (json!({"input": "1000000.00", "output": "0.00", "cachedInput": "0.00", "cacheWrite": "0.00"}), 429),
    ] {
        let spec = json!({"model": "m", "targets": [{"provider": "openai", "model": "echo"}], "maxOutputTokens": MOST, "prices": prices});
        ai.bench.put("ModelContextMapping", "m", spec).await;
        let told = ai.chat("m").await;
        assert_eq!(told.status, code, "{prices}: {}", told.text());
    }
}

#[tokio::test]
async fn a_model_without_prices_is_refused_where_cost_is_limited() {
    let ai = Ai::start().await;
    let model = |prices: Option<Value>| {
        let mut spec = json!({"model": "m", "targets": [{"provider": "openai", "model": "echo"}], "maxOutputTokens": MOST});
        if let Some(prices) = prices {
            spec["prices"] = prices;
        }
        spec
    };
    let policy =
        |limits: Value| json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": limits});
    ai.bench.put("ModelContextMapping", "mapped", model(None)).await;
    ai.policy(policy(json!([{"per": "Month", "tokens": 100_000}]))).await;
    assert_eq!(ai.chat("m").await.status, 200, "nobody asks what it costs");
    let before = ai.mock.requests();
    let resolved = async |kind: &str, name: &str, is_true: bool| {
        let mut handle = ai.bench.handle.clone();
        let report = async {
            loop {
                if let Some(report) = handle.report(&id(kind, name))
                    && report.resolved.is_true == is_true
                {
                    return report.resolved;
                }
                handle.changed().await;
            }
        };
        within("the condition", report).await
    };
    let listed = async || {
        let request = http::Request::get("/v1/models").header("authorization", "Bearer secret");
        ai.bench.send(request).await.json()["data"].as_array().unwrap().len()
    };
    assert_eq!(listed().await, 1);
    for limits in [
        json!([{"per": "Month", "cost": "5.00"}]),
        json!([{"per": "Day", "requests": 9}, {"per": "Month", "cost": "5.00", "by": "Policy"}]),
    ] {
        ai.policy(policy(limits)).await;
        for (path, body) in asked() {
            let told = ai.post(path, &body).await;
            assert_eq!(told.status, 403, "{path}: {}", told.text());
            let message = told.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(
                message.contains("spec.prices of ModelContextMapping default/mapped"),
                "{path}: {message}"
            );
        }
        let condition = resolved("LLMGatewayPolicy", "keys", false).await;
        assert_eq!(condition.reason, "PricesMissing");
        assert!(condition.message.contains("mapped"), "{}", condition.message);
        assert_eq!(listed().await, 0, "what is refused is not listed");
    }
    ai.policy(policy(json!([]))).await;
    assert_eq!(ai.chat("m").await.status, 200);
    ai.bench.put("Tenant", "default", json!({"limits": [{"per": "Month", "cost": "5.00"}]})).await;
    assert_eq!(ai.chat("m").await.status, 403);
    assert_eq!(resolved("Tenant", "default", false).await.reason, "PricesMissing");
    assert_eq!(ai.mock.requests(), before + 1);
    ai.bench
        .put("ModelContextMapping", "mapped", model(Some(json!({"input": "0.00", "output": "0.00"}))))
        .await;
    assert_eq!(ai.chat("m").await.status, 200, "a price of nothing is one");
    resolved("Tenant", "default", true).await;
    assert_eq!(listed().await, 1);
}
