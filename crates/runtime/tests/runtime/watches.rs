//! Watches that come and go while a controller runs, and sources that are no Kubernetes kinds.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;
use watchkeeper_core::Key;
use watchkeeper_core::contract::Memory;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Watch};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

fn noting(log: &Log) -> impl watchkeeper_runtime::Reconciler<Widget> + use<> {
    let log = log.clone();
    move |widget: Arc<Widget>, _cx: Context<Widget>| {
        log.say(widget.metadata.name.clone().unwrap());
        async { Ok(Action::done()) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_be_added_and_removed_while_the_controller_runs() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let log = Log::default();
    let builder = Controller::of::<Widget>();
    let watches = builder.dynamic_watches();
    let manager = Manager::new("test", env.connection()).controller(builder.reconcile(noting(&log)));
    let running = manager.start().await.unwrap();
    running.ready().await;
    let client = running.client();
    client.create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines() == ["a"] }).await;

    let mut secret = Secret { metadata: config_map("a", &[]).metadata, ..Secret::default() };
    let by_name = || Watch::by_metadata(|key: &Key, _| Some(key.clone()));
    let id = watches.add::<Secret>(by_name()).unwrap();
    let mut made = client.create(&secret).await.unwrap().into_object();
    eventually(|| async { log.lines() == ["a", "a"] }).await;

    watches.remove(id).await;
    made.string_data = Some([("x".to_owned(), "y".to_owned())].into());
    client.update(&made).await.unwrap();
    secret.metadata.name = Some("b".into());
    client.create(&secret).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.lines(), ["a", "a"]);

    // Added again, it says again what is there.
    watches.add::<Secret>(by_name()).unwrap();
    eventually(|| async { log.lines() == ["a", "a", "a"] }).await;
    running.stop().await;
}

/// A row somewhere.
#[derive(Debug, Deserialize)]
struct Row {
    spec: RowSpec,
}

#[derive(Debug, Deserialize)]
struct RowSpec {
    widget: String,
}

fn put(rows: &Memory, name: &str, widget: &str) {
    rows.put_json(&Key::new(None, name), None, &format!(r#""spec":{{"widget":"{widget}"}}"#));
}

#[tokio::test(start_paused = true)]
async fn any_source_can_wake_a_controller() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let log = Log::default();
    let rows = Memory::new();
    let wake = Watch::over(rows.clone(), |row: &Row| Some(Key::new(Some("default"), &row.spec.widget)));
    let controller = Controller::of::<Widget>().watch(wake).reconcile(noting(&log));
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines() == ["a"] }).await;
    put(&rows, "r", "a");
    eventually(|| async { log.lines() == ["a", "a"] }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn any_source_can_be_what_a_controller_works_on() {
    let env = TestEnv::start().await;
    let log = Log::default();
    let rows = Memory::new();
    put(&rows, "r", "a");
    let (seen, gone) = (log.clone(), log.clone());
    let controller = Controller::over::<Row>("rows", rows.clone())
        .deleted(move |row: Arc<Row>, _cx: Context<Row>| {
            gone.say(format!("{} gone", row.spec.widget));
            async { Ok(Action::done()) }
        })
        .reconcile(move |row: Arc<Row>, _cx: Context<Row>| {
            seen.say(row.spec.widget.clone());
            async { Ok(Action::done()) }
        });
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    eventually(|| async { log.lines() == ["a"] }).await;
    put(&rows, "r", "b");
    eventually(|| async { log.lines() == ["a", "b"] }).await;
    rows.delete(&Key::new(None, "r"));
    eventually(|| async { log.lines() == ["a", "b", "b gone"] }).await;
    running.stop().await;
}
