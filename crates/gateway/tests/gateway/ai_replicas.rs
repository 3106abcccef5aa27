//! Budgets that replicas share, by objects in an API server or a table of a database.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use watchkeeper_connection::Connection;
use watchkeeper_gateway::kinds::LLMBudget;
use watchkeeper_gateway::{BudgetStore, Options, description};
use watchkeeper_testkit::TestEnv;

use crate::ai::{Ai, chat, mock, sha256, streamed};
use crate::postgres::{Database, Server};
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

/// Where budgets are kept.
#[derive(Clone)]
enum Keeper {
    Cluster(Connection),
    /// Its URL.
    Database(String),
}

/// A database that nobody else uses.
async fn database() -> (Database, Keeper) {
    let database = Server::shared().database().await;
    let keeper = Keeper::Database(database.url.clone());
    (database, keeper)
}

/// A gateway without objects.
async fn bench(keeper: Keeper) -> Bench {
    let store = match keeper {
        Keeper::Cluster(connection) => BudgetStore::Kubernetes(connection),
        Keeper::Database(url) => BudgetStore::from_url(&url).unwrap(),
    };
    Bench::start_with(json!({"port": 0}), Options { share_budgets: Some(store), ..Options::default() }).await
}

/// A replica, whose provider is this mock.
async fn replica(keeper: Keeper, limit: u64, url: &str) -> (Bench, SocketAddr) {
    let bench = bench(keeper).await;
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

/// The code of a call; `None` if its gateway is gone.
async fn code(address: SocketAddr, body: &Value, key: &str) -> Option<u16> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let response = client.send_request(Ai::request("/v1/chat/completions", body, Some(key))).await.ok()?;
    let code = response.status().as_u16();
    response.into_body().collect().await.ok()?;
    Some(code)
}

fn served(codes: &[u16]) -> usize {
    assert!(codes.iter().all(|code| [200, 429].contains(code)), "{codes:?}");
    codes.iter().filter(|code| **code == 200).count()
}

async fn serve_together(keeper: Keeper) {
    let mock = mock();
    let url = format!("http://{}", mock.address());
    let (_first, one) = replica(keeper.clone(), 50, &url).await;
    let (_second, other) = replica(keeper, 50, &url).await;
    let (here, there) = tokio::join!(codes(one, 100), codes(other, 100));
    let total = served(&here) + served(&there);
    assert!((40..=50).contains(&total), "{total}");
    assert_eq!(mock.requests(), total as u64);
}

#[tokio::test]
async fn two_replicas_together_serve_as_much_as_a_limit_allows() {
    let (env, cluster) = cluster().await;
    serve_together(Keeper::Cluster(cluster)).await;
    let writes = env.count(|request| request.call.is_write() && request.call.is_of("llmbudgets"));
    assert!(writes < 100, "many calls are one write: {writes}");
}

#[tokio::test]
async fn two_replicas_share_a_limit_through_a_database() {
    let (database, keeper) = database().await;
    serve_together(keeper).await;
    let leased = "SELECT sum((lease->>'leased')::bigint)::bigint FROM watchkeeper_ai_budgets, jsonb_array_elements(leases) AS lease WHERE lease->>'unit' = 'Requests'";
    let leased = database.number(leased).await;
    assert!((40..=50).contains(&leased), "{leased}");
}

async fn kill_and_edit(keeper: Keeper) {
    let mock = mock();
    let url = format!("http://{}", mock.address());
    let (second, other) = replica(keeper.clone(), 60, &url).await;
    // A runtime that is dropped is a process that is killed: nothing is given back.
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (told, first) = oneshot::channel();
    doomed.spawn(async move {
        let (bench, address) = replica(keeper, 60, &url).await;
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
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    codes(other, 200).await;
    let total = mock.requests();
    assert!(total <= 100, "{total} of 100");
    assert!(total >= 90, "a slice is lost with the one that was killed, no more: {total}");
}

#[tokio::test]
async fn a_replica_that_is_killed_and_an_edit_exceed_nothing() {
    let (_env, cluster) = cluster().await;
    kill_and_edit(Keeper::Cluster(cluster)).await;
}

#[tokio::test]
async fn a_replica_that_is_killed_and_an_edit_exceed_nothing_through_a_database() {
    let (_database, keeper) = database().await;
    kill_and_edit(keeper).await;
}

/// What a replica serves that has leased one of 32 slices, which is ten calls, one of which is made, and can lease no more.
async fn spend_the_rest(address: SocketAddr) {
    let told = codes(address, 30).await;
    assert_eq!(told.iter().filter(|code| **code == 200).count(), 9, "{told:?}");
    assert!(told.iter().all(|code| [200, 503].contains(code)), "{told:?}");
}

#[tokio::test]
async fn a_replica_that_cannot_lease_spends_what_it_has_and_no_more() {
    let ((env, cluster), mock) = (cluster().await, mock());
    let (_bench, address) =
        replica(Keeper::Cluster(cluster), 320, &format!("http://{}", mock.address())).await;
    assert_eq!(served(&codes(address, 1).await), 1);
    let _fault = env.deny(|call| call.is_of("llmbudgets"));
    spend_the_rest(address).await;
}

#[tokio::test]
async fn a_replica_whose_database_is_gone_spends_what_it_has_until_it_is_back() {
    let mut server = Server::start(&[]);
    let database = server.database().await;
    let mock = mock();
    let keeper = Keeper::Database(database.url.clone());
    let (_bench, address) = replica(keeper, 320, &format!("http://{}", mock.address())).await;
    assert_eq!(served(&codes(address, 1).await), 1);
    drop(database);
    server.kill();
    spend_the_rest(address).await;
    server.restart();
    assert_eq!(served(&codes(address, 5).await), 5, "a new connection, and another slice");
}

/// Calls that are answered, that say nothing of usage, that break off and are tried again, in the middle of which policies are edited and replicas are killed.
#[tokio::test]
async fn two_hundred_clients_of_replicas_that_are_killed_make_no_more_requests_than_allowed() {
    const CAP: u64 = 300;
    let scripts = ["echo", "echo,usage=none", "echo,words=9,cut=4", "echo,cut=0", "echo,words=50,pace=1ms"];
    let (_database, keeper) = database().await;
    let mock = mock();
    let url = format!("http://{}", mock.address());
    let policy = |number: u64| {
        json!({
            "keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}],
            // The cap stays; what else is edited says nothing of it.
            "limits": [{"per": "Month", "requests": CAP, "by": "Policy"}, {"per": "Day", "requests": 1_000_000 + number}],
        })
    };
    let started = move |keeper: Keeper| {
        let url = url.clone();
        async move {
            let bench = bench(keeper).await;
            let provider = |name: &str, dialect: &str| json!({"name": name, "dialect": dialect, "url": url});
            let spec = json!({
                "providers": [provider("one", "OpenAI"), provider("other", "Anthropic")],
                "retry": {"attempts": 2, "backoff": "1ms"}, "health": {"failures": 100},
            });
            bench.put("AIGatewayConfig", "main", spec).await;
            for (number, script) in scripts.iter().enumerate() {
                let other = json!({"provider": "other", "model": "echo,usage=none", "priority": 1});
                let targets = json!([{"provider": "one", "model": script}, other]);
                let spec = json!({"model": format!("m{number}"), "targets": targets, "maxOutputTokens": 100});
                bench.put("ModelContextMapping", &format!("m{number}"), spec).await;
            }
            bench.put("LLMGatewayPolicy", "keys", policy(0)).await;
            assert!(bench.handle.reports().iter().all(watchkeeper_gateway::Report::is_good));
            bench
        }
    };
    let stays = started(keeper.clone()).await;
    let mut limited = 0;
    for round in 1..4 {
        let doomed =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (told, dies) = oneshot::channel();
        let starting = started(keeper.clone());
        doomed.spawn(async move {
            let bench = starting.await;
            let _ = told.send(bench.address);
            std::future::pending::<()>().await;
            drop(bench);
        });
        let dies = dies.await.unwrap();
        let before = mock.requests();
        let mut clients = JoinSet::new();
        for number in 0..200_usize {
            let address = if number % 2 == 0 { stays.address } else { dies };
            let key = if number % 3 == 0 { "secret" } else { "other" };
            let body = chat(&format!("m{}", number % scripts.len()), "hi");
            let body = if number % 4 == 0 { body } else { streamed(body) };
            clients.spawn(async move { code(address, &body, key).await });
        }
        // In the middle of them.
        for _ in 0..500 {
            if mock.requests() >= before + 20 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        doomed.shutdown_background();
        stays.put("LLMGatewayPolicy", "keys", policy(round)).await;
        while let Some(ended) = clients.join_next().await {
            // Those of the one that was killed broke off.
            limited += u64::from(ended.unwrap() == Some(429));
        }
    }
    let total = mock.requests();
    assert!(total <= CAP, "{total} of {CAP}");
    assert!(limited > 0 && total > CAP / 2, "{total} of {CAP}, {limited} refused");
}
