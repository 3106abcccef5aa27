//! Authorities are replaced under load while replicas come and go, and no admission fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use watchkeeper::prelude::*;
use watchkeeper::runtime::Running;
use watchkeeper::webhooks::{Certificates, Reached, Rotation, WebhookOptions};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::certificates::{SECRET, replica};
use crate::world::{APPS_V1, APPS_V2, ask};

/// The replicas behind a Service: those that are ready, in turn, as kube-proxy chooses them.
#[derive(Clone, Default)]
pub(crate) struct Endpoints {
    ready: Arc<Mutex<Vec<SocketAddr>>>,
    turn: Arc<AtomicUsize>,
}

impl Endpoints {
    /// Listens for the Service.
    pub(crate) async fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = self.clone();
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let target = {
                    let ready = this.ready.lock();
                    let turn = this.turn.fetch_add(1, Ordering::Relaxed);
                    if ready.is_empty() { None } else { Some(ready[turn % ready.len()]) }
                };
                tokio::spawn(async move {
                    if let Some(target) = target
                        && let Ok(mut to) = TcpStream::connect(target).await
                    {
                        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                    }
                });
            }
        });
        address
    }

    /// Starts a replica, which is an endpoint as soon as it is ready.
    pub(crate) async fn join(&self, env: &TestEnv, rotation: Rotation) -> (Running, SocketAddr) {
        let running = replica_of(env.connection(), rotation).start().await.unwrap();
        tokio::time::timeout(Duration::from_secs(60), running.ready()).await.unwrap();
        let address = running.webhook_address().unwrap();
        self.ready.lock().push(address);
        (running, address)
    }

    /// Stops a replica in order: it is no endpoint any more, and serves on for a while.
    async fn leave(&self, (running, address): (Running, SocketAddr)) {
        self.ready.lock().retain(|other| *other != address);
        running.stop().await;
    }
}

/// A replica behind the Service, with certificates of its own.
pub(crate) fn replica_of(connection: Connection, rotation: Rotation) -> Manager {
    let mut options = WebhookOptions::default();
    options.address = Some(([127, 0, 0, 1], 0).into());
    options.reached = Reached::Service("apps-webhook".into());
    options.certificates = Certificates::Own(rotation);
    replica(connection).webhook_options(options)
}

/// A server that finds these replicas.
pub(crate) async fn options(endpoints: &Endpoints) -> watchkeeper_apiserver::Options {
    let mut options = watchkeeper_apiserver::Options::default();
    options.authorization = watchkeeper_apiserver::Authorization::None;
    options.service_addresses.insert("default/apps-webhook".into(), endpoints.serve().await);
    options
}

/// Asks for a rotation, and waits until the authority that signs is another one and the old one is forgotten.
async fn rotate(env: &TestEnv) {
    let before = ask(env, "GET", SECRET, &Value::Null).await.1["data"]["current.crt"].clone();
    let asks = json!({"metadata": {"annotations": {"webhook.watchkeeper.dev/rotate": "now"}}});
    assert_eq!(ask(env, "PATCH", SECRET, &asks).await.0, 200);
    eventually(|| async {
        let (_, secret) = ask(env, "GET", SECRET, &Value::Null).await;
        let data = &secret["data"];
        data["current.crt"] != before && data["previous.crt"].is_null() && data["next.crt"].is_null()
    })
    .within(Duration::from_secs(120))
    .await;
}

async fn rotate_under_load(rotations: usize, overlap: Duration) {
    let endpoints = Endpoints::default();
    let env = Arc::new(TestEnv::builder().options(options(&endpoints).await).start().await);
    let mut rotation = Rotation::default();
    (rotation.settle, rotation.overlap) = (Duration::from_millis(300), overlap);
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(endpoints.join(&env, rotation).await);
    }

    // 50 admissions a second: every other one in the old version, which is converted, too.
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let failures: Arc<Mutex<Vec<String>>> = Arc::default();
    let begin = Instant::now();
    let load = {
        let (env, stop, asked, failures) =
            (Arc::clone(&env), Arc::clone(&stop), Arc::clone(&asked), Arc::clone(&failures));
        tokio::spawn(async move {
            let mut requests = JoinSet::new();
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            while !stop.load(Ordering::Relaxed) {
                ticks.tick().await;
                let number = asked.fetch_add(1, Ordering::Relaxed);
                let (env, failures) = (Arc::clone(&env), Arc::clone(&failures));
                requests.spawn(async move {
                    let (path, version, field) =
                        if number % 2 == 0 { (APPS_V2, "v2", "replicas") } else { (APPS_V1, "v1", "size") };
                    // Some are to be refused by the webhook: so it was asked.
                    let (size, wanted) = if number % 5 == 0 { (11, 422) } else { (3, 201) };
                    let app = json!({
                        "apiVersion": format!("example.com/{version}"), "kind": "App",
                        "metadata": {"name": format!("a{number}")}, "spec": {field: size},
                    });
                    let (code, answer) = ask(&env, "POST", &format!("{path}?dryRun=All"), &app).await;
                    if code != wanted {
                        failures.lock().push(format!("{number}: {code} {}", answer["message"]));
                    }
                });
                while requests.try_join_next().is_some() {}
            }
            while requests.join_next().await.is_some() {}
        })
    };

    for number in 0..rotations {
        let change = async {
            // One leaves in the middle of it and another one comes, before or after.
            let gone = replicas.remove(0);
            match number % 3 {
                0 => {
                    endpoints.leave(gone).await;
                    replicas.push(endpoints.join(&env, rotation).await);
                }
                1 => {
                    replicas.push(endpoints.join(&env, rotation).await);
                    endpoints.leave(gone).await;
                }
                _ => replicas.push(gone),
            }
        };
        tokio::join!(rotate(&env), change);
        let failures = failures.lock().clone();
        assert!(failures.is_empty(), "in rotation {number}: {failures:#?}");
    }
    stop.store(true, Ordering::Relaxed);
    load.await.unwrap();
    assert_eq!(*failures.lock(), Vec::<String>::new());
    let (asked, seconds) = (asked.load(Ordering::Relaxed), begin.elapsed().as_secs_f64());
    println!("{asked} admissions in {seconds:.1} s, {rotations} rotations");
    assert!(asked as f64 > seconds * 40.0, "{asked} admissions in {seconds} s, not 50 a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_admission_fails_while_authorities_are_replaced_and_replicas_come_and_go() {
    rotate_under_load(4, Duration::from_secs(3)).await;
}

/// The same for long:
/// `cargo test -p watchkeeper-webhook --test webhook -- --ignored --exact rotation::no_admission_fails_in_a_hundred_rotations`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes"]
async fn no_admission_fails_in_a_hundred_rotations() {
    rotate_under_load(100, Duration::from_secs(3)).await;
}
