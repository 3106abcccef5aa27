//! Controllers over sources that are no Kubernetes kinds: files, channels, etcd, and unions of them.

use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_client::Client;
use watchkeeper_core::Key;
use watchkeeper_etcd::testing::Server;
use watchkeeper_etcd::{Keys, Put, Range};
use watchkeeper_runtime::{Action, Context, Controller, Manager, Predicate, Reconciler};
use watchkeeper_sources::channel::channel;
use watchkeeper_sources::etcd::Etcd;
use watchkeeper_sources::files::Files;
use watchkeeper_sources::kubernetes::Kubernetes;
use watchkeeper_sources::union::Union;
use watchkeeper_testkit::fixtures::{Widget, widget};
use watchkeeper_testkit::{TestEnv, consistently, eventually};

use crate::log::Log;

/// Notes the value, and the source that it came from.
fn noting(log: &Log) -> impl Reconciler<Value> + use<> {
    let log = log.clone();
    move |object: Arc<Value>, cx: Context<Value>| {
        let source = cx.cause().map(|cause| cause.source.to_string()).unwrap_or_default();
        log.say(format!("{source} {}", object["value"]));
        async { Ok(Action::done()) }
    }
}

#[tokio::test(start_paused = true)]
async fn the_cause_names_the_member_of_a_union_that_an_object_came_from() {
    let env = TestEnv::start().await;
    let log = Log::default();
    let ((first, one), (second, two)) = (channel("first"), channel("second"));
    second.put(&Key::new(None, "a"), &json!({"value": 2})).unwrap();
    let union = Union::of("both").member(one).member(two).overriding();
    let controller = Controller::over::<Value>("both", union).reconcile(noting(&log));
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    eventually(|| async { log.lines() == ["second 2"] }).await;
    first.put(&Key::new(None, "a"), &json!({"value": 1})).unwrap();
    eventually(|| async { log.lines() == ["second 2", "first 1"] }).await;
    second.put(&Key::new(None, "a"), &json!({"value": 3})).unwrap();
    first.remove(&Key::new(None, "a"));
    eventually(|| async { log.lines() == ["second 2", "first 1", "second 3"] }).await;
    running.stop().await;
}

#[tokio::test]
async fn a_controller_works_over_files_and_etcd_at_once_and_its_status_goes_back_to_etcd() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let env = TestEnv::start().await;
    let client = server.builder().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.yaml"), "value: 1\n").unwrap();
    client.put(&Put::new("/a/b", "value: 2")).await.unwrap();
    let etcd = Etcd::prefix([server.endpoint()], "/a/").status_suffix(".status");
    let union = Union::of("both").member(Files::directory(directory.path()).by_path()).member(etcd);
    let log = Log::default();
    let said = log.clone();
    let controller =
        Controller::over::<Value>("both", union).reconcile(move |object: Arc<Value>, cx: Context<Value>| {
            let log = said.clone();
            async move {
                log.say(format!("{}", object["value"]));
                if cx.cause().is_some_and(|cause| cause.source.starts_with("etcd:")) {
                    cx.write_status(&json!({"seen": object["value"]})).await?;
                }
                Ok(Action::done())
            }
        });
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    let status = async || {
        let found = client.range(&Range::of(Keys::one("/a/b.status"))).await.unwrap();
        found.kvs.first().map(|pair| String::from_utf8(pair.value.to_vec()).unwrap())
    };
    eventually(|| async { status().await.as_deref() == Some(r#"{"seen":2}"#) }).await;
    client.put(&Put::new("/a/b", "value: 3")).await.unwrap();
    eventually(|| async { status().await.as_deref() == Some(r#"{"seen":3}"#) }).await;
    // What was written wakes nobody.
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["1", "2", "3"]);
    consistently(|| async { log.lines().len() == 3 }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_goes_back_to_the_cluster_that_an_object_came_from() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let client = Client::new(env.connection());
    client.create(&widget("a", 1)).await.unwrap();
    let (sender, other) = channel("other");
    sender.put(&Key::new(Some("default"), "b"), &json!({"spec": {"size": 2}})).unwrap();
    let union = Union::of("widgets").member(other).member(Kubernetes::of::<Widget>(env.connection()));
    let log = Log::default();
    let said = log.clone();
    let controller = Controller::over::<Value>("widgets", union)
        .filter(Predicate::generation_changed())
        .reconcile(move |object: Arc<Value>, cx: Context<Value>| {
            let log = said.clone();
            async move {
                let written = cx.write_status(&json!({"seen": object["spec"]["size"]})).await;
                log.say(format!("{} {}", object["spec"]["size"], written.is_ok()));
                Ok(Action::done())
            }
        });
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    let seen = async || {
        let found = client.live().get::<Widget>(&Key::new(Some("default"), "a")).await.unwrap().unwrap();
        found.status.as_ref().map(|status| status.seen)
    };
    eventually(|| async { seen().await == Some(1) }).await;
    eventually(|| async {
        let mut lines = log.lines();
        lines.sort();
        lines == ["1 true", "2 false"]
    })
    .await;
    running.stop().await;
}
