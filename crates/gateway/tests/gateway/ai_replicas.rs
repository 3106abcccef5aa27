//! Budgets that replicas share, by objects in an API server.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use watchkeeper_connection::Connection;
use watchkeeper_gateway::kinds::LLMBudget;
use watchkeeper_gateway::{Options, description};
use watchkeeper_testkit::TestEnv;

use crate::ai::{Ai, chat, mock, sha256, streamed};
use crate::support::{Bench, send};

fn policy(requests: u64) -> Value {
    json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}],
        "limits": [{"per": "Month", "requests": requests, "by": "Policy"}, {"per": "Day", "tokens": 1_000_000}],
    })
}

/// An API server, and a connection with the rights that the gateway says it needs.
async fn cluster() -> (TestEnv, Connection) {
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<LLMBudget>().await;
    let connection = env.connection_for(&description()).await;
    (env, connection)
}

/// A replica, whose provider is this mock.
async fn replica(cluster: Connection, limit: u64, url: &str) -> (Bench, SocketAddr) {
    let options = Options { share_budgets: Some(cluster), ..Options::default() };
    let bench = Bench::start_with(json!({"port": 0}), options).await;
    let provider = json!([{"name": "openai", "dialect": "OpenAI", "url": url}]);
    bench.put("AIGatewayConfig", "main", json!({"providers": provider})).await;
    let model = json!({"model": "m", "targets": [{"provider": "openai", "model": "echo,delay=5ms"}], "maxOutputTokens": 100});
    bench.put("ModelContextMapping", "m", model).await;
    bench.put("LLMGatewayPolicy", "keys", policy(limit)).await;
    let address = bench.address;
    (bench, address)
}

/// Calls at once, every third a stream. Those that broke off are left out.
async fn codes(address: SocketAddr, count: usize) -> Vec<u16> {
    let mut clients = JoinSet::new();
    for number in 0..count {
        let key = if number % 2 == 0 { "secret" } else { "other" };
        let body = if number % 3 == 0 { streamed(chat("m", "hi")) } else { chat("m", "hi") };
        clients.spawn(async move {
            send(address, Ai::request("/v1/chat/completions", &body, Some(key))).await.status.as_u16()
        });
    }
    let mut codes = Vec::new();
    while let Some(ended) = clients.join_next().await {
        codes.extend(ended);
    }
    codes
}

fn served(codes: &[u16]) -> usize {
    assert!(codes.iter().all(|code| [200, 429].contains(code)), "{codes:?}");
    codes.iter().filter(|code| **code == 200).count()
}

#[tokio::test]
async fn two_replicas_together_serve_as_much_as_a_limit_allows() {
    let ((env, cluster), mock) = (cluster().await, mock());
    let url = format!("http://{}", mock.address());
    let (_first, one) = replica(cluster.clone(), 50, &url).await;
    let (_second, other) = replica(cluster.clone(), 50, &url).await;
    let (here, there) = tokio::join!(codes(one, 100), codes(other, 100));
    let total = served(&here) + served(&there);
    assert!((40..=50).contains(&total), "{total}");
    assert_eq!(mock.requests(), total as u64);
    let writes = env.count(|request| request.call.is_write() && request.call.is_of("llmbudgets"));
    assert!(writes < 100, "many calls are one write: {writes}");
}

#[tokio::test]
async fn a_replica_that_is_killed_and_an_edit_exceed_nothing() {
    let ((_env, cluster), mock) = (cluster().await, mock());
    let url = format!("http://{}", mock.address());
    let (second, other) = replica(cluster.clone(), 60, &url).await;
    // A runtime that is dropped is a process that is killed: nothing is given back.
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (told, first) = oneshot::channel();
    doomed.spawn(async move {
        let (bench, address) = replica(cluster, 60, &url).await;
        let _ = told.send(address);
        std::future::pending::<()>().await;
        drop(bench);
    });
    let first = first.await.unwrap();
    let before = served(&codes(first, 10).await);
    assert_eq!(before, 10);
    doomed.shutdown_background();
    assert!(served(&codes(other, 100).await) <= 50);
    second.put("LLMGatewayPolicy", "keys", policy(100)).await;
    // What was refused a second ago is refused until then.
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    codes(other, 200).await;
    let total = mock.requests();
    assert!(total <= 100, "{total} of 100");
    assert!(total >= 90, "a slice is lost with the one that was killed, no more: {total}");
}

#[tokio::test]
async fn a_replica_that_cannot_lease_spends_what_it_has_and_no_more() {
    let ((env, cluster), mock) = (cluster().await, mock());
    let (_bench, address) = replica(cluster, 320, &format!("http://{}", mock.address())).await;
    assert_eq!(served(&codes(address, 1).await), 1);
    let _fault = env.deny(|call| call.is_of("llmbudgets"));
    let told = codes(address, 30).await;
    // One of 32 slices was leased: ten calls, one of which is made.
    assert_eq!(told.iter().filter(|code| **code == 200).count(), 9, "{told:?}");
    assert!(told.iter().all(|code| [200, 503].contains(code)), "{told:?}");
}
