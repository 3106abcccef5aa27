//! Operators as processes of their own, which can be killed.
//!
//! The process is this very test binary, called for the one test that is ignored otherwise.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{Client, Patch, ready};
use watchkeeper_core::Key;
use watchkeeper_election::ElectionOptions;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Result};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

const KUBECONFIG: &str = "WATCHKEEPER_TEST_KUBECONFIG";
const LEASE_SECONDS: &str = "WATCHKEEPER_TEST_LEASE_SECONDS";
const IDENTITY: &str = "WATCHKEEPER_TEST_IDENTITY";

/// Writes a map for each widget with its size and the name of the process.
async fn reconcile(object: Arc<Widget>, cx: Context<Widget>) -> Result<Action> {
    let name = object.metadata.name.clone().unwrap();
    if name == "endless" {
        cx.client().apply(&config_map("endless", &[])).await?;
        std::future::pending::<()>().await;
    }
    let (size, by) = (object.spec.size.to_string(), std::env::var(IDENTITY).unwrap_or_default());
    let data = if by.is_empty() {
        vec![("size", size.as_str())]
    } else {
        vec![("size", size.as_str()), ("by", &by)]
    };
    cx.children().apply([config_map(&name, &data)]).await?;
    cx.status().condition(ready("Written")).await?;
    Ok(Action::done())
}

/// Not a test: what runs in the process.
#[tokio::test]
#[ignore = "run by the other tests of this file, in a process of its own"]
async fn operator() {
    let Ok(kubeconfig) = std::env::var(KUBECONFIG) else { return };
    let manager = Manager::try_from_args(["operator", "--kubeconfig", &kubeconfig]).unwrap();
    let mut manager = manager.controller(
        Controller::of::<Widget>()
            .owns::<ConfigMap>()
            .writes_status::<Widget>()
            .finalizer("test.dev/operator")
            .reconcile(reconcile),
    );
    if let Ok(seconds) = std::env::var(LEASE_SECONDS) {
        let seconds: u64 = seconds.parse().unwrap();
        let mut options = ElectionOptions::default();
        options.identity = std::env::var(IDENTITY).unwrap();
        options.lease_duration = Duration::from_secs(seconds);
        options.renew_deadline = Duration::from_millis(seconds * 600);
        options.retry_period = Duration::from_millis(seconds * 100);
        manager = manager.leader_election(options);
    }
    if manager.run().await.is_err() {
        std::process::exit(130);
    }
}

/// An operator in a process. Killed when it is dropped.
struct Operator(Child);

impl Operator {
    fn start(env: &TestEnv, lease: Option<(&str, u64)>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::operator", "--ignored", "--nocapture"]);
        command.env(KUBECONFIG, env.kubeconfig()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((identity, seconds)) = lease {
            command.env(IDENTITY, identity).env(LEASE_SECONDS, seconds.to_string());
        }
        Self(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    async fn ended(&mut self, within: Duration) -> std::process::ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the process does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn env() -> (TestEnv, Client) {
    let env = TestEnv::builder().listening().start().await;
    env.install::<Widget>().await;
    let client = Client::new(env.connection());
    (env, client)
}

/// How many of the widgets have a map of this size.
async fn written(client: &Client, size: u32) -> usize {
    let maps = client.live().list::<ConfigMap>().in_namespace("default").await.unwrap();
    let size = size.to_string();
    maps.iter().filter(|map| map.data.as_ref().and_then(|data| data.get("size")) == Some(&size)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_of_a_thousand_changes_is_lost_when_the_process_is_killed_in_the_middle() {
    const MANY: usize = 1000;
    let (env, client) = env().await;
    for number in 0..MANY {
        client.create(&widget(&format!("w{number}"), 1)).await.unwrap();
    }
    let operator = Operator::start(&env, None);
    eventually(|| async { written(&client, 1).await > 0 }).within(Duration::from_secs(60)).await;
    let mut operator = Some(operator);
    for number in 0..MANY {
        let key = Key::new(Some("default"), &format!("w{number}"));
        let patch = Patch::Merge(serde_json::json!({ "spec": { "size": 2 } }));
        client.patch::<Widget>(&key, patch).await.unwrap();
        if number == MANY / 2 {
            operator.take().unwrap().kill();
        }
        if number == MANY * 3 / 4 {
            operator = Some(Operator::start(&env, None));
        }
    }
    eventually(|| async {
        let written = written(&client, 2).await;
        if written == MANY { Ok(()) } else { Err(format!("{written} of {MANY}")) }
    })
    .within(Duration::from_secs(120))
    .await;
}

/// Who has written the map of widget `a` last.
async fn writer(client: &Client) -> Option<String> {
    let map = client.live().get::<ConfigMap>(&Key::new(Some("default"), "a")).await.unwrap()?;
    map.data.as_ref()?.get("by").cloned()
}

/// A leader `one` and a standby `two`, with a lease of so many seconds.
async fn pair(lease: u64) -> (TestEnv, Client, Operator, Operator) {
    let (env, client) = env().await;
    client.create(&widget("a", 1)).await.unwrap();
    let one = Operator::start(&env, Some(("one", lease)));
    eventually(|| async { writer(&client).await.as_deref() == Some("one") })
        .within(Duration::from_secs(60))
        .await;
    let two = Operator::start(&env, Some(("two", lease)));
    // The standby is warm when it has listed and watches.
    eventually(|| async { env.count(|seen| seen.call.is_of("widgets") && seen.call.verb == "watch") >= 2 })
        .within(Duration::from_secs(60))
        .await;
    (env, client, one, two)
}

/// How long it takes until the standby has reconciled after the leader was ended. Other work on the machine can make it look
/// slower than it is, so the best of three counts.
async fn failover(lease: u64, limit: Duration, end: impl Fn(&mut Operator)) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let (_env, client, mut one, _two) = pair(lease).await;
        end(&mut one);
        let ended = Instant::now();
        eventually(|| async { writer(&client).await.as_deref() == Some("two") })
            .within(Duration::from_secs(60))
            .await;
        best = best.min(ended.elapsed());
        one.ended(Duration::from_secs(10)).await;
        if best <= limit {
            break;
        }
    }
    best
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_standby_reconciles_within_the_lease_and_a_second() {
    let lease = 3;
    let limit = Duration::from_secs(lease + 1);
    let took = failover(lease, limit, |one| one.0.kill().unwrap()).await;
    assert!(took <= limit, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_sigterm_the_standby_reconciles_within_a_second() {
    let limit = Duration::from_secs(1);
    let took = failover(15, limit, |one| one.signal("TERM")).await;
    assert!(took <= limit, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_sigterm_ends_a_process_whose_reconcile_does_not() {
    let (env, client) = env().await;
    let mut operator = Operator::start(&env, None);
    client.create(&widget("endless", 1)).await.unwrap();
    let begun = || async {
        client.live().get::<ConfigMap>(&Key::new(Some("default"), "endless")).await.unwrap().is_some()
    };
    eventually(begun).within(Duration::from_secs(60)).await;
    operator.signal("TERM");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(operator.0.try_wait().unwrap().is_none(), "the first one lets it end");
    operator.signal("TERM");
    assert_eq!(operator.ended(Duration::from_secs(5)).await.code(), Some(130));
}
