//! How soon things happen that have to happen soon, and what those are told who send nonsense.

use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use watchkeeper::client::{Client, Patch};
use watchkeeper_core::Key;
use watchkeeper_front::Body;
use watchkeeper_gateway::From;
use watchkeeper_gateway::kinds::ApiSubscription;

use crate::ai::{Ai, chat, mock, sha256, streamed};
use crate::support::{Answer, Bench, Control, cluster, connect, id, object, send, within};

/// How soon keys work and do not.
const KEYS: Duration = Duration::from_millis(50);
/// How soon the call of a provider ends whose client has left.
const GONE: Duration = Duration::from_millis(100);
/// How often each is measured.
const ROUNDS: usize = 15;

/// Half of all took no longer than this, and none longer than that and the longest stall of the machine.
pub(crate) fn check(what: &str, mut times: Vec<Duration>, most: Duration, control: &Control) {
    times.sort();
    let (half, last) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{what}: half within {half:?}, all within {last:?}; the longest stall of the machine was {:?}",
        control.longest()
    );
    assert!(half < most, "{what}: {times:?}");
    assert!(last < most + 2 * control.longest(), "{what}: {times:?}, stalled for {:?}", control.longest());
}

/// How long it takes from now until requests have this code.
async fn until(code: u16, ask: impl AsyncFn() -> Answer) -> Duration {
    let begin = Instant::now();
    within("another answer", async {
        loop {
            let sent = begin.elapsed();
            // What counts is when the first request was sent that was served so.
            if ask().await.status == code {
                return sent;
            }
        }
    })
    .await
}

#[tokio::test]
async fn keys_work_and_are_refused_within_fifty_milliseconds() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    let control = Control::start();
    let keys = |keys: Value| json!({"keys": keys});
    let jane = json!([{"name": "jane", "sha256": sha256("secret")}]);
    let suspended = json!([{"name": "jane", "sha256": sha256("secret"), "suspended": true}]);
    let (mut revoked, mut back) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let without = if round % 2 == 0 { json!([]) } else { suspended.clone() };
        ai.bench.tell("LLMGatewayPolicy", "keys", keys(without));
        revoked.push(until(401, async || ai.chat("m").await).await);
        ai.bench.tell("LLMGatewayPolicy", "keys", keys(jane.clone()));
        back.push(until(200, async || ai.chat("m").await).await);
    }
    check("a revoked key is refused", revoked, KEYS, &control);
    check("a key works", back, KEYS, &control);
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    let spec = json!({"model": "m", "targets": [{"provider": "openai", "model": "echo"}]});
    for _ in 0..ROUNDS {
        assert!(ai.bench.objects.remove(&Key::new(Some("ModelContextMapping"), "m")));
        gone.push(until(404, async || ai.chat("m").await).await);
        ai.bench.tell("ModelContextMapping", "m", spec.clone());
        there.push(until(200, async || ai.chat("m").await).await);
    }
    check("a model is gone", gone, KEYS, &control);
    check("a model is there", there, KEYS, &control);
}

#[tokio::test]
async fn a_subscription_works_and_is_refused_within_fifty_milliseconds() {
    let ai = Ai::start().await;
    ai.model("m", &[("openai", "echo")]).await;
    let api = json!({"gateways": ["main"], "state": "Published", "subscription": "Approved"});
    ai.bench.put("ApiDefinition", "llm", api).await;
    let control = Control::start();
    let (mut approved, mut revoked) = (Vec::new(), Vec::new());
    let tell = |is_approved: bool, generation: i64| {
        let spec = json!({"api": "llm", "consumer": "team", "keys": [sha256("secret")]});
        let mut subscription = object("ApiSubscription", "team", spec);
        subscription["metadata"]["generation"] = generation.into();
        let status = if is_approved { "True" } else { "False" };
        let condition = json!({"type": "Approved", "status": status, "reason": "Reviewed", "message": "", "lastTransitionTime": "2026-11-18T00:00:00Z"});
        subscription["status"] = json!({"conditions": [condition]});
        ai.bench.objects.put(&Key::new(Some("ApiSubscription"), "team"), &subscription).unwrap();
    };
    for round in 0..ROUNDS as i64 {
        tell(true, 2 * round + 1);
        approved.push(until(200, async || ai.chat("m").await).await);
        tell(false, 2 * round + 2);
        revoked.push(until(401, async || ai.chat("m").await).await);
    }
    check("a subscription is approved", approved, KEYS, &control);
    check("a subscription is revoked", revoked, KEYS, &control);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_in_a_cluster_works_and_is_withdrawn_within_fifty_milliseconds() {
    let env = cluster().await;
    let client = Client::new(env.connection());
    let bench = Bench::among(vec![From::Kubernetes(env.connection())]).await;
    let ai = Ai::over(bench, mock(), json!({})).await;
    ai.model("m", &[("openai", "echo")]).await;
    let api = json!({"gateways": ["main"], "state": "Published", "subscription": "Approved"});
    ai.bench.put("ApiDefinition", "llm", api).await;
    let spec = json!({"api": "llm", "consumer": "team", "keys": [sha256("secret")]});
    let mut subscription = ApiSubscription::new("team", serde_json::from_value(spec).unwrap());
    subscription.metadata.namespace = Some("default".into());
    client.create(&subscription).await.unwrap();
    let key = Key::new(Some("default"), "team");
    let tell = async |is_approved: bool| {
        let status = if is_approved { "True" } else { "False" };
        let condition = json!({"type": "Approved", "status": status, "reason": "Reviewed", "message": "", "lastTransitionTime": "2026-11-18T00:00:00Z"});
        let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        client.patch_status::<ApiSubscription>(&key, patch).await.unwrap();
    };
    let control = Control::start();
    let (mut approved, mut revoked) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // From the moment the API server has confirmed it.
        tell(true).await;
        approved.push(until(200, async || ai.chat("m").await).await);
        tell(false).await;
        revoked.push(until(401, async || ai.chat("m").await).await);
    }
    check("an approval in a cluster", approved, KEYS, &control);
    check("the end of an approval in a cluster", revoked, KEYS, &control);
}

/// How many calls have ended because their clients left, as metrics tell it.
fn gone(metrics: &str) -> u64 {
    let lines = metrics.lines().filter(|line| {
        line.starts_with("gen_ai_client_operation_duration_seconds_count{")
            && line.contains("error_type=\"client_gone\"")
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_within_a_hundred_milliseconds() {
    let ai = Ai::start().await;
    ai.policy(json!({"keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "tokens": 10_000_000}]})).await;
    let control = Control::start();
    for provider in ["openai", "gemini"] {
        // One that writes now and then, and one that says nothing for long: it is not the next piece that tells.
        for script in ["echo,words=1000,pace=20ms", "echo,words=1000,hang=3"] {
            ai.model("slow", &[(provider, script)]).await;
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let (before, settled) = (ai.mock.cancelled(), gone(&ai.bench.handle.metrics()));
                let mut client = connect(ai.bench.address).await;
                let request =
                    Ai::request("/v1/chat/completions", &streamed(chat("slow", "hi")), Some("secret"));
                let mut response = client.send_request(request).await.unwrap();
                assert!(response.body_mut().frame().await.unwrap().is_ok());
                let begin = Instant::now();
                drop((response, client));
                within("cancelling", async {
                    while ai.mock.cancelled() == before {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                })
                .await;
                times.push(begin.elapsed());
                within("settling", async {
                    while gone(&ai.bench.handle.metrics()) == settled {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                })
                .await;
            }
            check(&format!("the call of {provider} ends, {script}"), times, GONE, &control);
        }
    }
}

/// How an error looks to the library of a client.
fn is_error(path: &str, told: &Answer) -> bool {
    let value = told.json();
    let text = |value: &Value| value.as_str().is_some_and(|text| text.len() > 10);
    match path {
        "/v1/messages" => {
            value["type"] == "error" && value["error"]["type"].is_string() && text(&value["error"]["message"])
        }
        path if path.starts_with("/v1beta") => {
            let error = &value["error"];
            error["code"] == told.status.as_u16() && error["status"].is_string() && text(&error["message"])
        }
        _ => value["error"]["type"].is_string() && text(&value["error"]["message"]),
    }
}

#[tokio::test]
async fn nonsense_is_an_error_in_the_dialect_of_the_client() {
    let ai = Ai::start().await;
    for provider in ["openai", "anthropic", "gemini"] {
        ai.model(provider, &[(provider, "echo")]).await;
    }
    let looping = vec!["{messages: ., b: .}"; 60].join(" | ");
    let spec =
        json!({"model": "looping", "targets": [{"provider": "openai", "model": "echo"}], "request": looping});
    ai.bench.put("ModelContextMapping", "looping", spec).await;
    ai.model("page", &[("anthropic", "echo,html=yes")]).await;
    let say = json!([{"role": "user", "content": "hi"}]);
    let contents = json!([{"parts": [{"text": "hi"}]}]);
    let paths = |model: &str| {
        [
            ("/v1/chat/completions".to_owned(), json!({"model": model, "messages": say})),
            ("/v1/responses".to_owned(), json!({"model": model, "input": "hi"})),
            ("/v1/messages".to_owned(), json!({"model": model, "max_tokens": 9, "messages": say})),
            (format!("/v1beta/models/{model}:generateContent"), json!({"contents": contents})),
        ]
    };
    let ask = async |path: &str, body: Vec<u8>| {
        let request = Request::post(path).header("host", "a").header("x-api-key", "secret");
        send(ai.bench.address, request.body(Body::whole(body)).unwrap()).await
    };
    // Whatever model is meant: what the client sends is read before anybody is asked, except for what passes as it is.
    for model in ["openai", "anthropic", "gemini"] {
        for (path, good) in paths(model) {
            assert_eq!(ask(&path, good.to_string().into()).await.status, 200, "{model} {path}");
            let text = good.to_string();
            let mut broken = text.clone().into_bytes();
            let at = broken.iter().rposition(|byte| *byte == b'h').unwrap();
            broken[at] = 0xff;
            let bodies: [(&str, Vec<u8>, &[u16]); 6] = [
                ("invalid UTF-8", broken, &[400]),
                ("half of it", text.as_bytes()[..text.len() / 2].to_vec(), &[400]),
                ("a list", b"[]".to_vec(), &[400]),
                ("nothing", Vec::new(), &[400]),
                ("depth", [b"[".repeat(100_000), text.clone().into_bytes()].concat(), &[400]),
                ("10 MB", text.replace("hi", &"x".repeat(10 << 20)).into_bytes(), &[413]),
            ];
            for (what, body, codes) in bodies {
                let told = ask(&path, body).await;
                assert!(
                    codes.contains(&told.status.as_u16()) && is_error(&path, &told),
                    "{what} {model} {path}: {} {}",
                    told.status,
                    told.text()
                );
            }
        }
    }
    for (model, code, says) in
        [("unknown", 404, "/v1/models"), ("looping", 500, "steps"), ("page", 502, "not JSON")]
    {
        for (path, body) in paths(model) {
            let told = ask(&path, body.to_string().into()).await;
            assert!(
                told.status == code && is_error(&path, &told) && told.text().contains(says),
                "{model} {path}: {} {}",
                told.status,
                told.text()
            );
        }
    }
    // Tools that are none, of a model of another vendor. What passes as it is, is for the provider to judge.
    let malformed = [
        (
            "/v1/chat/completions",
            "anthropic",
            json!({"model": "anthropic", "messages": say, "tools": [{"type": "function"}]}),
        ),
        ("/v1/chat/completions", "anthropic", json!({"model": "anthropic", "messages": say, "tools": "all"})),
        (
            "/v1/messages",
            "openai",
            json!({"model": "openai", "max_tokens": 9, "messages": say, "tools": [{"input_schema": {}}]}),
        ),
        ("/v1/messages", "openai", json!({"model": "openai", "max_tokens": 9, "messages": say, "tools": 7})),
        (
            "/v1beta/models/openai:generateContent",
            "openai",
            json!({"contents": contents, "tools": [{"functionDeclarations": [{}]}]}),
        ),
        ("/v1beta/models/openai:generateContent", "openai", json!({"contents": contents, "tools": {"a": 1}})),
        (
            "/v1/responses",
            "anthropic",
            json!({"model": "anthropic", "input": "hi", "tools": [{"type": "function"}]}),
        ),
        ("/v1/responses", "anthropic", json!({"model": "anthropic", "input": "hi", "tools": true})),
    ];
    let before = ai.mock.requests();
    for (path, model, body) in malformed {
        let told = ask(path, body.to_string().into()).await;
        assert!(
            told.status == 400 && is_error(path, &told) && told.text().contains("tools"),
            "{model} {path} {body}: {} {}",
            told.status,
            told.text()
        );
    }
    assert_eq!(ai.mock.requests(), before, "nobody was asked");
    assert!(ai.bench.handle.report(&id("ModelContextMapping", "looping")).unwrap().is_good());
}
