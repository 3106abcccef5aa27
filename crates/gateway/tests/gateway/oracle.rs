//! Every answer is one that was right at some moment while it was asked for.
//!
//! The oracle knows the history of every object: which states it was told to have, and which of them it was reported to have. A request that begins when
//! state A is reported and ends when state B is told has to be answered by a state from A to B. An answer of before A is stale, one of two states is
//! torn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_front::Body;

use crate::support::{Bench, Server, connect, soak_time};

/// How many routes there are, each with a backend of its own.
const ROUTES: usize = 6;
/// How many servers a backend may be one of.
const SERVERS: usize = 3;

/// The states of an object, by number: how many it was told to have, and how many of them it was reported to have.
#[derive(Default)]
struct History {
    told: AtomicUsize,
    reported: AtomicUsize,
}

/// What a route is in a state: nothing, or one with this number.
fn is_absent(state: usize) -> bool {
    state % 5 == 4
}

struct World {
    bench: Bench,
    routes: [History; ROUTES],
    backends: [History; ROUTES],
    servers: [Server; SERVERS],
    stop: AtomicBool,
}

impl World {
    fn route(number: usize, state: usize) -> Value {
        json!({"rules": [{
            "matches": [{"path": {"prefix": format!("/r{number}")}}],
            "filters": {
                "requestHeaders": {"set": {"x-seen": state.to_string()}},
                "responseHeaders": {"set": {"x-state": state.to_string()}},
            },
            "backends": [{"name": format!("b{number}")}],
        }]})
    }

    fn backend(&self, state: usize) -> Value {
        json!({"url": format!("http://{}", self.servers[state % SERVERS].address)})
    }

    /// Edits an object again and again; waits for the report of some of its states.
    async fn edit(self: Arc<Self>, number: usize, is_route: bool) {
        let mut random = fastrand::Rng::with_seed(2 * number as u64 + u64::from(is_route));
        let (kind, name, history) = match is_route {
            true => ("GatewayRoute", format!("r{number}"), &self.routes[number]),
            false => ("GatewayBackend", format!("b{number}"), &self.backends[number]),
        };
        for state in 1.. {
            if self.stop.load(SeqCst) {
                return;
            }
            // Before it is told, so that nobody can see a state that is not in the history.
            history.told.store(state, SeqCst);
            match is_route && is_absent(state) {
                true => {
                    self.bench.objects.remove(&Key::new(Some(kind), &name));
                    // It may have been removed already: what is told next is waited for.
                }
                false => {
                    let spec = if is_route { Self::route(number, state) } else { self.backend(state) };
                    let generation = self.bench.tell(kind, &name, spec);
                    if random.bool() {
                        self.bench.reported(kind, &name, generation).await;
                        history.reported.store(state, SeqCst);
                    }
                }
            }
            tokio::time::sleep(Duration::from_micros(random.u64(..4_000))).await;
        }
    }

    /// Asks again and again, and judges every answer.
    async fn ask(self: Arc<Self>, seed: u64) -> (usize, Vec<String>) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut client = connect(self.bench.address).await;
        let (mut count, mut wrong) = (0, Vec::new());
        while !self.stop.load(SeqCst) {
            let number = random.usize(..ROUTES);
            let (route, backend) = (&self.routes[number], &self.backends[number]);
            let since = (route.reported.load(SeqCst), backend.reported.load(SeqCst));
            client.ready().await.expect("the connection was closed");
            let asked =
                Request::builder().method(Method::GET).uri(format!("/r{number}/x")).header("host", "a");
            let answer =
                client.send_request(asked.body(Body::empty()).unwrap()).await.expect("a request was reset");
            let status = answer.status().as_u16();
            let header = answer
                .headers()
                .get("x-state")
                .map(|value| value.to_str().unwrap().parse::<usize>().unwrap());
            let body = answer.into_body().collect().await.expect("a response was cut").to_bytes();
            let until = (route.told.load(SeqCst), backend.told.load(SeqCst));
            count += 1;
            let routes = since.0..=until.0;
            let said = match (status, header) {
                (200, Some(state)) => {
                    let told: Value = serde_json::from_slice(&body).unwrap();
                    let seen = told["headers"]["x-seen"].as_str().unwrap().parse::<usize>().unwrap();
                    let server = told["server"].as_str().unwrap().parse::<usize>().unwrap();
                    let is_server = |state: usize| state % SERVERS == server;
                    if seen != state {
                        Some(format!("torn: the request was of state {seen}, its response of {state}"))
                    } else if !routes.contains(&state) || is_absent(state) {
                        Some(format!("route {number} of state {state}, not of {routes:?}"))
                    } else if !(since.1..=until.1).any(is_server) {
                        Some(format!("backend {number} is server {server}, not of {:?}", since.1..=until.1))
                    } else {
                        None
                    }
                }
                (404, None) if routes.clone().any(is_absent) => None,
                other => Some(format!("{other:?} of route {number} in {routes:?}")),
            };
            wrong.extend(said);
        }
        (count, wrong)
    }
}

async fn oracle(time: Duration) {
    let bench = Bench::start().await;
    let servers = ["0", "1", "2"].map(Server::echo);
    let world = World {
        bench,
        routes: Default::default(),
        backends: Default::default(),
        servers,
        stop: AtomicBool::new(false),
    };
    for number in 0..ROUTES {
        world.bench.put("GatewayBackend", &format!("b{number}"), world.backend(0)).await;
        world.bench.put("GatewayRoute", &format!("r{number}"), World::route(number, 0)).await;
    }
    let world = Arc::new(world);
    let mut editors = tokio::task::JoinSet::new();
    for number in 0..ROUTES {
        editors.spawn(Arc::clone(&world).edit(number, true));
        editors.spawn(Arc::clone(&world).edit(number, false));
    }
    let mut clients = tokio::task::JoinSet::new();
    for seed in 0..8 {
        clients.spawn(Arc::clone(&world).ask(seed));
    }
    let begin = Instant::now();
    while begin.elapsed() < time && clients.try_join_next().is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.stop.store(true, SeqCst);
    let (mut asked, mut wrong) = (0, Vec::new());
    while let Some(ended) = clients.join_next().await {
        let (count, more) = ended.unwrap();
        asked += count;
        wrong.extend(more);
    }
    editors.join_all().await;
    let edits: usize =
        world.routes.iter().chain(&world.backends).map(|history| history.told.load(SeqCst)).sum();
    println!("{asked} answers, {edits} edits: {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{:#?}", &wrong[..wrong.len().min(10)]);
    assert!(asked > 100 && edits > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_was_right_while_it_was_asked_for() {
    oracle(soak_time()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "ten minutes; part of make soak"]
async fn every_answer_was_right_while_it_was_asked_for_for_ten_minutes() {
    oracle(Duration::from_secs(600)).await;
}
