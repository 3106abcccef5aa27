//! Backends in trouble.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use http::{Method, StatusCode};
use serde_json::json;
use watchkeeper_front::Body;

use crate::support::{Bench, Server, id, request, send, within};

/// Answers 503 as long as it is told to, and counts.
struct Moody {
    server: Server,
    failing: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Moody {
    fn start() -> Self {
        let (failing, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let server = Server::start({
            let (failing, asked) = (Arc::clone(&failing), Arc::clone(&asked));
            move |_: watchkeeper_front::Request| {
                asked.fetch_add(1, Relaxed);
                let mut response = watchkeeper_front::Response::new(Body::whole("fine"));
                if failing.load(Relaxed) {
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                }
                async move { response }
            }
        });
        Self { server, failing, asked }
    }

    fn address(&self) -> String {
        self.server.address.to_string()
    }
}

/// An address that nobody listens on.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_passed_over() {
    let (bench, good) = (Bench::start().await, Moody::start());
    let spec = json!({"endpoints": [{"address": nobody()}, {"address": good.address()}]});
    bench.put("GatewayBackend", "b", spec).await;
    bench.route("all", "/", "b").await;
    for _ in 0..10 {
        let answer = send(bench.address, request(Method::POST, "/", Body::whole("x"))).await;
        assert_eq!(
            answer.text(),
            "fine",
            "nothing was sent to the other, so that even a POST may be sent anew"
        );
    }
    bench.put("GatewayBackend", "b", json!({"endpoints": [{"address": nobody()}]})).await;
    assert_eq!(bench.get("/").await.status, 502);
}

#[tokio::test]
async fn requests_are_repeated_as_the_route_says() {
    let (bench, bad, good) = (Bench::start().await, Moody::start(), Moody::start());
    bad.failing.store(true, Relaxed);
    bench.backend("b", &[&bad.server, &good.server]).await;
    let spec = |retry: serde_json::Value| json!({"rules": [{"backends": [{"name": "b"}], "retry": retry}]});
    bench.put("GatewayRoute", "all", spec(json!({"attempts": 1}))).await;
    for _ in 0..4 {
        assert_eq!(bench.get("/").await.text(), "fine");
    }
    assert!(bad.asked.load(Relaxed) >= 1);
    let mut refused = 0;
    for _ in 0..10 {
        refused += usize::from(
            send(bench.address, request(Method::POST, "/", Body::whole("x"))).await.status == 503,
        );
    }
    assert_eq!(refused, 5, "a POST is not repeated");
    bench.put("GatewayRoute", "all", spec(json!({"attempts": 1, "nonIdempotent": true}))).await;
    for _ in 0..4 {
        assert_eq!(send(bench.address, request(Method::POST, "/", Body::whole("x"))).await.text(), "fine");
    }
    // No more than a fifth of all requests is repeated.
    good.failing.store(true, Relaxed);
    let before = bad.asked.load(Relaxed) + good.asked.load(Relaxed);
    for _ in 0..100 {
        assert_eq!(bench.get("/").await.status, 503);
    }
    let sent = bad.asked.load(Relaxed) + good.asked.load(Relaxed) - before;
    assert!((100..=135).contains(&sent), "{sent}");
}

#[tokio::test]
async fn a_server_that_fails_is_left_out_and_edits_do_not_bring_it_back() {
    let (bench, bad, good) = (Bench::start().await, Moody::start(), Moody::start());
    bad.failing.store(true, Relaxed);
    let spec = |requests: u32| {
        json!({
            "endpoints": [{"address": bad.address()}, {"address": good.address()}],
            "health": {"passive": {"failures": 3, "ejectFor": "10m"}},
            "limits": {"requests": requests},
        })
    };
    bench.put("GatewayBackend", "b", spec(100)).await;
    bench.route("all", "/", "b").await;
    for _ in 0..20 {
        bench.get("/").await;
    }
    assert_eq!(bad.asked.load(Relaxed), 3);
    bad.failing.store(false, Relaxed);
    bench.put("GatewayBackend", "b", spec(200)).await;
    for _ in 0..20 {
        assert_eq!(bench.get("/").await.text(), "fine");
    }
    assert_eq!(bad.asked.load(Relaxed), 3, "what was learned outlives an edit");
}

#[tokio::test]
async fn servers_that_say_that_they_are_unwell_get_no_requests() {
    let (bench, one, two) = (Bench::start().await, Moody::start(), Moody::start());
    let spec = json!({
        "endpoints": [{"address": one.address()}, {"address": two.address()}],
        "health": {"active": {"path": "/healthz", "interval": "20ms", "unhealthyAfter": 2}},
    });
    bench.put("GatewayBackend", "b", spec).await;
    bench.route("all", "/", "b").await;
    let available = async |expected: usize| {
        within("health", async {
            loop {
                let table = bench.handle.table();
                let backend = table.backend(&id("GatewayBackend", "b").key).unwrap();
                if backend.endpoints.iter().filter(|endpoint| endpoint.state.is_available()).count()
                    == expected
                {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    one.failing.store(true, Relaxed);
    available(1).await;
    for _ in 0..10 {
        assert_eq!(bench.get("/").await.text(), "fine");
    }
    two.failing.store(true, Relaxed);
    available(0).await;
    assert_eq!(bench.get("/").await.status, 503);
    one.failing.store(false, Relaxed);
    two.failing.store(false, Relaxed);
    available(2).await;
}

#[tokio::test]
async fn checks_that_failed_before_an_edit_count_after_it() {
    let (bench, server) = (Bench::start().await, Moody::start());
    server.failing.store(true, Relaxed);
    // Edited after every check, so that there never are three without an edit between.
    let edits = async {
        for edit in 1.. {
            let spec = json!({
                "endpoints": [{"address": server.address()}],
                "limits": {"requests": 100 + edit},
                "health": {"active": {"path": "/", "interval": "1s", "unhealthyAfter": 3}},
            });
            let before = server.asked.load(Relaxed);
            bench.put("GatewayBackend", "b", spec).await;
            while server.asked.load(Relaxed) == before {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            // What is asked when it is edited has no answer.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            if !servers(&bench)[0].is_healthy() {
                break;
            }
        }
    };
    within("the server to be taken for unwell", edits).await;
}

#[tokio::test]
async fn no_more_requests_are_under_way_than_a_backend_may_have() {
    let bench = Bench::start().await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let server = Server::start({
        let gate = Arc::clone(&gate);
        move |_: watchkeeper_front::Request| {
            let gate = Arc::clone(&gate);
            async move {
                let _ = gate.acquire().await.unwrap();
                watchkeeper_front::Response::new(Body::whole("done"))
            }
        }
    });
    let spec = json!({"url": format!("http://{}", server.address), "limits": {"requests": 2}});
    bench.put("GatewayBackend", "b", spec).await;
    bench.route("all", "/", "b").await;
    let address = bench.address;
    let running: Vec<_> =
        (0..2).map(|_| tokio::spawn(send(address, request(Method::GET, "/", Body::empty())))).collect();
    let table = bench.handle.table();
    let state = &table.backend(&id("GatewayBackend", "b").key).unwrap().state;
    within("two requests", async {
        while state.active.load(Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let refused = bench.get("/").await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("1")));
    gate.add_permits(10);
    for request in running {
        assert_eq!(request.await.unwrap().text(), "done");
    }
    assert_eq!(bench.get("/").await.text(), "done");
}

#[tokio::test]
async fn a_backend_that_does_not_answer_in_time_is_given_up() {
    let bench = Bench::start().await;
    let server =
        Server::start(|_: watchkeeper_front::Request| std::future::pending::<watchkeeper_front::Response>());
    bench.backend("b", &[&server]).await;
    let spec = json!({"rules": [{"backends": [{"name": "b"}], "timeouts": {"request": "50ms"}}]});
    bench.put("GatewayRoute", "all", spec).await;
    assert_eq!(bench.get("/").await.status, 504);
}

#[tokio::test]
async fn connections_to_servers_are_used_again() {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("b", &[&server]).await;
    bench.route("all", "/", "b").await;
    for _ in 0..20 {
        assert_eq!(bench.get("/").await.status, 200);
    }
    let table = bench.handle.table();
    let state = &table.backend(&id("GatewayBackend", "b").key).unwrap().endpoints[0].state;
    assert!(state.connections.load(Relaxed) <= 2, "{}", state.connections.load(Relaxed));
}

/// The servers of the backend `b`.
fn servers(bench: &Bench) -> Vec<Arc<watchkeeper_gateway::upstream::EndpointState>> {
    let table = bench.handle.table();
    let backend = table.backend(&id("GatewayBackend", "b").key).unwrap();
    backend.endpoints.iter().map(|endpoint| Arc::clone(&endpoint.state)).collect()
}

#[tokio::test]
async fn a_server_that_does_not_answer_gets_fewer_requests() {
    let (bench, good) = (Bench::start().await, Moody::start());
    let silent =
        Server::start(|_: watchkeeper_front::Request| std::future::pending::<watchkeeper_front::Response>());
    let spec = json!({
        "endpoints": [{"address": silent.address.to_string()}, {"address": good.address()}],
        "balance": {"type": "LeastRequest"},
    });
    bench.put("GatewayBackend", "b", spec).await;
    bench.route("all", "/", "b").await;
    let (address, states) = (bench.address, servers(&bench));
    let sent = || states.iter().map(|state| state.requests.load(Relaxed)).sum::<u64>();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 1..=200 {
        waiting.spawn(send(address, request(Method::GET, "/", Body::empty())));
        within("the request is sent", async {
            while sent() < number {
                tokio::task::yield_now().await;
            }
        })
        .await;
        // Whoever was answered is not under way any more.
        within("the others have ended", async {
            while states[1].active.load(Relaxed) > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    let silent = states[0].requests.load(Relaxed);
    assert_eq!(u64::from(states[0].active.load(Relaxed)), silent);
    assert!(silent < 75, "{silent} of 200: only when it is drawn twice, which is a quarter");
}

#[tokio::test]
async fn requests_with_the_same_header_go_to_the_same_server() {
    let (bench, one, two) = (Bench::start().await, Server::echo("one"), Server::echo("two"));
    let spec = json!({
        "endpoints": [{"address": one.address.to_string()}, {"address": two.address.to_string()}],
        "balance": {"type": "Hash", "header": "x-user"},
    });
    bench.put("GatewayBackend", "b", spec).await;
    bench.route("all", "/", "b").await;
    let mut of = std::collections::BTreeMap::<u32, std::collections::BTreeSet<String>>::new();
    for number in 0..60 {
        let asked = http::Request::get("/").header("x-user", (number % 20).to_string());
        let server = bench.send(asked).await.json()["server"].as_str().unwrap().to_owned();
        of.entry(number % 20).or_default().insert(server);
    }
    assert!(of.values().all(|servers| servers.len() == 1), "{of:?}");
    let all: std::collections::BTreeSet<_> = of.into_values().flatten().collect();
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn a_backend_with_all_its_connections_in_use_is_full_and_not_ill() {
    let bench = Bench::start().await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let checks = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let (gate, checks) = (Arc::clone(&gate), Arc::clone(&checks));
        move |request: watchkeeper_front::Request| {
            let (gate, checks) = (Arc::clone(&gate), Arc::clone(&checks));
            async move {
                if request.uri().path() == "/healthz" {
                    checks.fetch_add(1, Relaxed);
                } else {
                    let _ = gate.acquire().await.unwrap();
                }
                watchkeeper_front::Response::new(Body::whole("done"))
            }
        }
    });
    let spec = json!({
        "endpoints": [{"address": server.address.to_string()}],
        "limits": {"connections": 1},
        "health": {
            "active": {"path": "/healthz", "interval": "20ms", "unhealthyAfter": 1},
            "passive": {"failures": 1, "ejectFor": "1h", "maxEjectedPercent": 100},
        },
    });
    bench.put("GatewayBackend", "b", spec).await;
    bench.route("all", "/", "b").await;
    let address = bench.address;
    let running = tokio::spawn(send(address, request(Method::GET, "/", Body::empty())));
    let state = Arc::clone(&servers(&bench)[0]);
    within("a request", async {
        while state.active.load(Relaxed) < 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let before = checks.load(Relaxed);
    let refused = bench.get("/").await;
    assert_eq!(
        (refused.status.as_u16(), refused.header("retry-after")),
        (503, Some("1")),
        "{}",
        refused.text()
    );
    within("health checks go on", async {
        while checks.load(Relaxed) < before + 3 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(state.is_healthy() && !state.is_ejected());
    assert_eq!(state.failures.load(Relaxed), 0);
    gate.add_permits(10);
    assert_eq!(running.await.unwrap().text(), "done");
    assert_eq!(bench.get("/").await.text(), "done");
}

#[tokio::test]
async fn a_server_that_is_too_slow_for_its_requests_is_left_out() {
    let bench = Bench::start().await;
    let server =
        Server::start(|_: watchkeeper_front::Request| std::future::pending::<watchkeeper_front::Response>());
    let spec = json!({
        "endpoints": [{"address": server.address.to_string()}],
        "health": {"passive": {"failures": 2, "ejectFor": "1h", "maxEjectedPercent": 100}},
    });
    bench.put("GatewayBackend", "b", spec).await;
    let spec = json!({"rules": [{"backends": [{"name": "b"}], "timeouts": {"request": "50ms"}}]});
    bench.put("GatewayRoute", "all", spec).await;
    assert_eq!(bench.get("/").await.status, 504);
    assert_eq!(bench.get("/").await.status, 504);
    assert!(servers(&bench)[0].is_ejected());
    assert_eq!(bench.get("/").await.status, 503, "at once");
}

#[tokio::test]
async fn a_copy_goes_where_its_backend_says() {
    let (bench, main) = (Bench::start().await, Server::echo("main"));
    let (sender, mut copies) = tokio::sync::mpsc::unbounded_channel();
    let mirror = Server::start(move |request: watchkeeper_front::Request| {
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        sender.send((request.uri().to_string(), host)).unwrap();
        async { watchkeeper_front::Response::new(Body::empty()) }
    });
    bench.put("GatewayBackend", "b", json!({"url": format!("http://{}/main", main.address)})).await;
    let spec = json!({"url": format!("http://{}/copy", mirror.address), "host": "mirror.test"});
    bench.put("GatewayBackend", "mirror", spec).await;
    let rule = json!({"backends": [{"name": "b"}], "filters": {"mirror": {"backend": "mirror"}}});
    bench.put("GatewayRoute", "all", json!({"rules": [rule]})).await;
    let told = bench.get("/x?y=1").await.json();
    assert_eq!((&told["target"], &told["headers"]["host"]), (&json!("/main/x?y=1"), &json!("gateway.test")));
    let copy = within("the copy", copies.recv()).await.unwrap();
    assert_eq!(copy, ("/copy/x?y=1".to_owned(), "mirror.test".to_owned()));
}
