//! What streams take of memory: alone in its process, so that nothing else is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "gateway/support.rs"]
mod support;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use watchkeeper_front::Body;
use watchkeeper_gateway::mock::Mock;

use support::{Bench, Server, connect, within};

/// Streams at a time.
const STREAMS: usize = 200;
/// What a stream that waits may take, in bytes: here, at its provider and at its client, all of which are in this process.
const EACH: usize = 2 << 20;
/// By how much memory may grow from the eighth round to the last, in bytes.
const GROWTH: usize = 8 << 20;

/// How long the soak is.
const SOAK: Duration = Duration::from_secs(600);
/// The digest of the key `secret`.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What is measured is that of the whole process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Resident memory, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn asked(number: usize) -> Request<Body> {
    let (path, body) = match number % 3 {
        0 => (
            "/v1/chat/completions",
            json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}),
        ),
        1 => (
            "/v1/messages",
            json!({"model": "m", "stream": true, "max_tokens": 100_000, "messages": [{"role": "user", "content": "hi"}]}),
        ),
        _ => ("/v1/responses", json!({"model": "m", "stream": true, "input": "hi"})),
    };
    Request::post(path).header("host", "a").body(Body::whole(body.to_string())).unwrap()
}

async fn start() -> (Bench, Mock) {
    let mock = Mock::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).unwrap();
    let bench = Bench::start().await;
    let url = format!("http://{}", mock.address());
    let providers = json!([{"name": "openai", "dialect": "OpenAI", "url": url}]);
    bench.put("AIGatewayConfig", "main", json!({"providers": providers, "access": "Open"})).await;
    (bench, mock)
}

async fn model(bench: &Bench, script: &str) {
    let targets: Value = json!([{"provider": "openai", "model": script}]);
    bench
        .put(
            "ModelContextMapping",
            "m",
            json!({"model": "m", "targets": targets, "maxOutputTokens": 100_000}),
        )
        .await;
}

/// What a provider does in a round; every fourth round has clients that leave, or providers that break off.
const SCRIPTS: [&str; 4] =
    ["echo,words=100", "echo,words=100,pace=1ms", "echo,words=100,cut=50", "echo,words=1000,pace=5ms"];

/// Streams at once, in the round of this number. Says how much memory is resident after it, in bytes.
async fn round(bench: &Bench, number: usize, key: Option<&'static str>) -> usize {
    model(bench, SCRIPTS[number % SCRIPTS.len()]).await;
    let mut clients = JoinSet::new();
    for client in 0..STREAMS {
        let address = bench.address;
        clients.spawn(async move {
            let mut connection = connect(address).await;
            let mut request = asked(client);
            request.headers_mut().extend(key.map(|key| (X_API_KEY, HeaderValue::from_static(key))));
            let mut response = connection.send_request(request).await.unwrap();
            assert_eq!(response.status(), 200);
            match number % SCRIPTS.len() {
                3 => drop(response.body_mut().frame().await),
                _ => drop(response.into_body().collect().await),
            }
        });
    }
    within("a round", async {
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
    })
    .await;
    resident()
}

#[tokio::test]
async fn streams_leave_no_memory_behind() {
    let _alone = ALONE.lock().await;
    let (bench, mock) = start().await;
    let mut sizes = Vec::new();
    for number in 0..16 {
        sizes.push(round(&bench, number, None).await);
    }
    let megabytes: Vec<usize> = sizes.iter().map(|size| size >> 20).collect();
    println!("{STREAMS} streams a round; MiB after each: {megabytes:?}");
    // After rounds of the same kind.
    let growth = sizes[15].saturating_sub(sizes[7]);
    assert!(growth < GROWTH, "{megabytes:?}");
    assert!(mock.requests() > 0);
}

/// The same for long, under a policy that looks at all that is said, and that has other keys in each round.
#[tokio::test]
#[ignore = "ten minutes; part of make soak"]
async fn streams_and_edits_leave_no_memory_behind_for_ten_minutes() {
    let _alone = ALONE.lock().await;
    let (bench, _mock) = start().await;
    let (begin, mut number, mut settled, mut last) = (Instant::now(), 0, 0, 0);
    while begin.elapsed() < SOAK {
        let digest = |key: usize| format!("{:064x}", number * 100 + key);
        let others =
            (0..100).map(|key| json!({"name": format!("key-{number}-{key}"), "sha256": digest(key)}));
        let keys: Vec<Value> = others.chain([json!({"name": "jane", "sha256": SECRET})]).collect();
        let policy = json!({
            "keys": keys, "limits": [{"per": "Minute", "requests": 1_000_000}],
            "guardrails": [{"name": "none", "on": "Response", "pattern": format!("forbidden{number}")}],
        });
        bench.put("LLMGatewayPolicy", "keys", policy).await;
        last = round(&bench, number, Some("secret")).await;
        number += 1;
        // By then, all that is kept on purpose is there.
        if begin.elapsed() < SOAK / 4 {
            settled = last;
        }
        if number % 16 == 0 {
            println!("{number} rounds of {STREAMS} streams: {} MiB", last >> 20);
        }
    }
    println!("{number} rounds: from {} to {} MiB", settled >> 20, last >> 20);
    // What is known of a hundred keys more a round, whose month is not over.
    let known = number * 100 * 2_048;
    assert!(last < settled + GROWTH + known, "{} MiB to {} MiB", settled >> 20, last >> 20);
}

/// A provider that never ends, and is never too slow.
fn endless() -> Server {
    Server::start(|_request: watchkeeper_front::Request| async {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": {"content": "word ".repeat(20)}}]});
        let event = Bytes::from(format!("data: {chunk}\n\n"));
        let pieces = futures_util::stream::repeat_with(move || {
            Ok::<_, Infallible>(http_body::Frame::data(event.clone()))
        });
        let mut response =
            watchkeeper_front::Response::new(Body::wrap(http_body_util::StreamBody::new(pieces)));
        response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
        response
    })
}

#[tokio::test]
async fn a_stream_that_nobody_reads_takes_no_more_than_it_may() {
    let _alone = ALONE.lock().await;
    let (bench, _mock) = start().await;
    let (provider, judge) =
        (endless(), Server::start(|_request: watchkeeper_front::Request| std::future::pending()));
    let providers =
        json!([{"name": "openai", "dialect": "OpenAI", "url": format!("http://{}", provider.address)}]);
    bench.put("AIGatewayConfig", "main", json!({"providers": providers, "access": "Open"})).await;
    let webhook = json!({"url": format!("http://{}", judge.address), "timeout": "10m"});
    let policy = json!({"keys": [{"name": "jane", "sha256": SECRET}], "guardrails": [{"name": "slow", "on": "Response", "webhook": webhook}]});
    bench.put("LLMGatewayPolicy", "keys", policy).await;
    model(&bench, "m").await;
    // Nobody reads what passes as it is and what is translated; and nobody judges what waits for a webhook.
    for key in [None, Some("secret")] {
        let before = resident();
        let mut held = Vec::new();
        for number in 0..STREAMS / 4 {
            let mut client = connect(bench.address).await;
            let mut request = asked(number);
            if let Some(key) = key {
                request.headers_mut().insert("x-api-key", key.parse().unwrap());
            }
            let response = within("a beginning", client.send_request(request)).await.unwrap();
            assert_eq!(response.status(), 200);
            held.push((client, response));
        }
        let mut each = 0;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            each = resident().saturating_sub(before) / held.len();
            assert!(each < EACH, "{key:?}: {each}");
        }
        println!("{} streams, {key:?}: {} KiB each", held.len(), each >> 10);
    }
}
