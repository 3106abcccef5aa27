//! Budgets that replicas share, by objects in an API server or a table of a database.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use watchkeeper_connection::Connection;
use watchkeeper_gateway::ai::records::{self, Destinations};
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
    recording(keeper, None).await
}

/// The same with records in a directory.
async fn recording(keeper: Keeper, directory: Option<PathBuf>) -> Bench {
    let store = match keeper {
        Keeper::Cluster(connection) => BudgetStore::Kubernetes(connection),
        Keeper::Database(url) => BudgetStore::from_url(&url).unwrap(),
    };
    let records = Destinations { directory, table: None };
    Bench::start_with(
        json!({"port": 0}),
        Options { share_budgets: Some(store), records, ..Options::default() },
    )
    .await
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

/// What a limit is of, and how much it allows.
#[derive(Clone, Copy)]
enum Cap {
    Requests(u64),
    Tokens(u64),
    /// In thousandths.
    Cost(u64),
}

impl Cap {
    fn limit(self) -> Value {
        match self {
            Self::Requests(most) => json!({"per": "Month", "requests": most, "by": "Policy"}),
            Self::Tokens(most) => json!({"per": "Month", "tokens": most, "by": "Policy"}),
            Self::Cost(most) => {
                let cost = format!("{}.{:03}", most / 1_000, most % 1_000);
                json!({"per": "Month", "cost": cost, "by": "Policy"})
            }
        }
    }

    fn most(self) -> u64 {
        match self {
            Self::Requests(most) | Self::Tokens(most) | Self::Cost(most) => most,
        }
    }

    /// What budgets were charged with, as all records together tell it.
    fn charged(self, directory: &Path) -> u64 {
        let mut charged = 0.0;
        for replica in std::fs::read_dir(directory).unwrap() {
            records::read(&replica.unwrap().path(), |record| {
                charged += match self {
                    Self::Requests(_) => record["chargedRequests"].as_f64().unwrap(),
                    Self::Tokens(_) => record["chargedTokens"].as_f64().unwrap(),
                    Self::Cost(_) => {
                        record["chargedCost"].as_str().unwrap().parse::<f64>().unwrap() * 1_000.0
                    }
                };
            })
            .unwrap();
        }
        charged.round() as u64
    }
}

/// What the models of these tests do.
const SCRIPTS: [&str; 5] =
    ["echo", "echo,usage=none", "echo,words=9,cut=4", "echo,cut=0", "echo,words=50,pace=1ms"];

/// The policy of a cap. What else is edited says nothing of it.
fn capped(cap: Cap, number: u64) -> Value {
    json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}],
        "limits": [cap.limit(), {"per": "Day", "requests": 1_000_000 + number}],
    })
}

/// A replica with models that answer, say nothing of usage, or break off, each with another provider to try.
async fn scripted(keeper: Keeper, url: String, cap: Cap, directory: PathBuf) -> Bench {
    let bench = recording(keeper, Some(directory)).await;
    let provider = |name: &str, dialect: &str| json!({"name": name, "dialect": dialect, "url": url});
    let spec = json!({
        "providers": [provider("one", "OpenAI"), provider("other", "Anthropic")],
        "retry": {"attempts": 2, "backoff": "1ms"}, "health": {"failures": 100},
    });
    bench.put("AIGatewayConfig", "main", spec).await;
    for (number, script) in SCRIPTS.iter().enumerate() {
        let other = json!({"provider": "other", "model": "echo,usage=none", "priority": 1});
        let spec = json!({
            "model": format!("m{number}"), "targets": [{"provider": "one", "model": script}, other], "maxOutputTokens": 100,
            "prices": {"input": "1000.00", "output": "1000.00"},
        });
        bench.put("ModelContextMapping", &format!("m{number}"), spec).await;
    }
    bench.put("LLMGatewayPolicy", "keys", capped(cap, 0)).await;
    assert!(bench.handle.reports().iter().all(watchkeeper_gateway::Report::is_good));
    bench
}

/// Two hundred clients at once of these replicas in turns: the codes they get, `None` if a replica is gone.
fn two_hundred(addresses: [SocketAddr; 2]) -> JoinSet<Option<u16>> {
    let mut clients = JoinSet::new();
    for number in 0..200_usize {
        let key = if number % 3 == 0 { "secret" } else { "other" };
        let body = chat(&format!("m{}", number % SCRIPTS.len()), "hi");
        let body = if number % 4 == 0 { body } else { streamed(body) };
        clients.spawn(async move { code(addresses[number % 2], &body, key).await });
    }
    clients
}

/// Three times two hundred clients, in the middle of which the policy is edited and one of two replicas is killed.
async fn storm(keeper: Keeper, cap: Cap) {
    let (mock, directory) = (mock(), tempfile::tempdir().unwrap());
    let url = format!("http://{}", mock.address());
    let place = |name: &str| directory.path().join(name);
    let stays = scripted(keeper.clone(), url.clone(), cap, place("stays")).await;
    let mut limited = 0;
    for round in 1..4 {
        let doomed =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (told, dies) = oneshot::channel();
        let starting = scripted(keeper.clone(), url.clone(), cap, place(&format!("dies-{round}")));
        doomed.spawn(async move {
            let bench = starting.await;
            let _ = told.send(bench.address);
            std::future::pending::<()>().await;
            drop(bench);
        });
        let dies = dies.await.unwrap();
        let before = mock.requests();
        let mut clients = two_hundred([stays.address, dies]);
        // In the middle of them.
        for _ in 0..500 {
            if mock.requests() >= before + 20 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Nothing is given back, but what was charged is to be read.
        let dead = tokio::task::spawn_blocking(move || doomed.shutdown_timeout(Duration::from_secs(10)));
        stays.put("LLMGatewayPolicy", "keys", capped(cap, round)).await;
        while let Some(ended) = clients.join_next().await {
            // Those of the one that was killed broke off.
            limited += u64::from(ended.unwrap() == Some(429));
        }
        dead.await.unwrap();
    }
    let (requests, most) = (mock.requests(), cap.most());
    stays.gateway.stop(Duration::from_secs(5)).await;
    let charged = cap.charged(directory.path());
    println!("{charged} of {most} charged, {requests} requests, {limited} refused");
    if let Cap::Requests(most) = cap {
        assert!(requests <= most, "{requests} of {most}");
    }
    assert!(charged <= most, "{charged} of {most}");
    assert!(limited > 0 && charged > most / 8, "{charged} of {most}, {limited} refused");
}

#[tokio::test]
async fn two_hundred_clients_of_replicas_that_are_killed_make_no_more_requests_than_allowed() {
    let (_database, keeper) = database().await;
    storm(keeper, Cap::Requests(300)).await;
    let (_env, cluster) = cluster().await;
    storm(Keeper::Cluster(cluster), Cap::Requests(300)).await;
}

#[tokio::test]
async fn two_hundred_clients_of_replicas_that_are_killed_use_no_more_tokens_than_allowed() {
    let (_database, keeper) = database().await;
    storm(keeper, Cap::Tokens(15_000)).await;
    let (_env, cluster) = cluster().await;
    storm(Keeper::Cluster(cluster), Cap::Tokens(15_000)).await;
}

#[tokio::test]
async fn two_hundred_clients_of_replicas_that_are_killed_spend_no_more_money_than_allowed() {
    let (_database, keeper) = database().await;
    storm(keeper, Cap::Cost(15_000)).await;
    let (_env, cluster) = cluster().await;
    storm(Keeper::Cluster(cluster), Cap::Cost(15_000)).await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_is_exceeded_by_no_more_than_what_is_leased() {
    let (database, keeper) = database().await;
    let (mock, directory) = (mock(), tempfile::tempdir().unwrap());
    let url = format!("http://{}", mock.address());
    let (before, after) = (Cap::Tokens(100_000), Cap::Tokens(10_000));
    let one = scripted(keeper.clone(), url.clone(), before, directory.path().join("one")).await;
    let other = scripted(keeper, url, before, directory.path().join("other")).await;
    let addresses = [one.address, other.address];
    two_hundred(addresses).join_all().await;
    for replica in [&one, &other] {
        replica.put("LLMGatewayPolicy", "keys", capped(after, 0)).await;
    }
    let leased = "SELECT sum((lease->>'leased')::bigint)::bigint FROM watchkeeper_ai_budgets, jsonb_array_elements(leases) AS lease WHERE lease->>'unit' = 'Tokens'";
    let leased = u64::try_from(database.number(leased).await).unwrap();
    assert!(leased > after.most(), "it is lowered below what is leased: {leased}");
    let codes = two_hundred(addresses).join_all().await;
    assert!(codes.contains(&Some(429)), "{codes:?}");
    for replica in [one, other] {
        replica.gateway.stop(Duration::from_secs(5)).await;
    }
    let charged = after.charged(directory.path());
    println!("{charged} charged; {leased} were leased when the limit was lowered to {}", after.most());
    assert!(charged <= leased, "{charged}, of which {leased} were leased");
}
