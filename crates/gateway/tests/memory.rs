//! What streams take of memory: alone in its process, so that nothing else is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "gateway/support.rs"]
mod support;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
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

#[tokio::test]
async fn streams_leave_no_memory_behind() {
    let _alone = ALONE.lock().await;
    let (bench, mock) = start().await;
    model(&bench, "echo,words=100").await;
    let mut sizes = Vec::new();
    for round in 0..16 {
        // Every fourth round has clients that leave, or providers that break off.
        let script = [
            "echo,words=100",
            "echo,words=100,pace=1ms",
            "echo,words=100,cut=50",
            "echo,words=1000,pace=5ms",
        ];
        model(&bench, script[round % script.len()]).await;
        let mut clients = JoinSet::new();
        for number in 0..STREAMS {
            let address = bench.address;
            clients.spawn(async move {
                let mut client = connect(address).await;
                let mut response = client.send_request(asked(number)).await.unwrap();
                assert_eq!(response.status(), 200);
                match round % 4 {
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
        sizes.push(resident());
    }
    let megabytes: Vec<usize> = sizes.iter().map(|size| size >> 20).collect();
    println!("{STREAMS} streams a round; MiB after each: {megabytes:?}");
    // After rounds of the same kind.
    let growth = sizes[15].saturating_sub(sizes[7]);
    assert!(growth < GROWTH, "{megabytes:?}");

    assert!(mock.requests() > 0);
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
    let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"; // of `secret`
    let policy = json!({"keys": [{"name": "jane", "sha256": digest}], "guardrails": [{"name": "slow", "on": "Response", "webhook": webhook}]});
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
