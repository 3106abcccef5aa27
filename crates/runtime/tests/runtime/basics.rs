//! What wakes a controller, and what it is given.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use watchkeeper_client::{key_of, ready};
use watchkeeper_core::Key;
use watchkeeper_runtime::{
    Action, Context, Controller, Manager, Predicate, Reconciler, Result, Running, Watch,
};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, consistently, eventually};

use crate::log::Log;

async fn env() -> TestEnv {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    env
}

async fn start(env: &TestEnv, controller: Controller) -> Running {
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    running
}

fn sizes(log: &Log) -> impl Reconciler<Widget> + use<> {
    let log = log.clone();
    move |widget: Arc<Widget>, _cx: Context<Widget>| {
        let log = log.clone();
        async move {
            log.say(format!("{} {}", widget.metadata.name.as_deref().unwrap(), widget.spec.size));
            Ok(Action::done())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_there_and_what_changes_is_reconciled() {
    let env = env().await;
    let log = Log::default();
    let client = watchkeeper_client::Client::new(env.connection());
    client.create(&widget("a", 1)).await.unwrap();
    let running = start(&env, Controller::of::<Widget>().reconcile(sizes(&log))).await;
    eventually(|| async { log.lines() == ["a 1"] }).await;
    client.create(&widget("b", 1)).await.unwrap();
    eventually(|| async { log.lines() == ["a 1", "b 1"] }).await;
    let change = |widget: &mut Widget| widget.spec.size = 2;
    client.modify::<Widget>(&Key::new(Some("default"), "a"), change).await.unwrap();
    eventually(|| async { log.lines() == ["a 1", "b 1", "a 2"] }).await;
    running.stop().await;
}

/// Writes one ConfigMap for each widget.
async fn write_map(widget: Arc<Widget>, cx: Context<Widget>) -> Result<Action> {
    let name = widget.metadata.name.clone().unwrap();
    let size = widget.spec.size.to_string();
    cx.children().apply([config_map(&name, &[("size", &size)])]).await?;
    cx.status().condition(ready("Written")).await?;
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn what_is_owned_is_put_back_when_somebody_changes_or_deletes_it() {
    let env = env().await;
    let running = start(
        &env,
        Controller::of::<Widget>().owns::<ConfigMap>().writes_status::<Widget>().reconcile(write_map),
    )
    .await;
    let live = running.client().live();
    let key = Key::new(Some("default"), "a");
    let size =
        || async { Some(live.get::<ConfigMap>(&key).await.unwrap()?.data.clone()?.get("size")?.clone()) };

    running.client().create(&widget("a", 7)).await.unwrap();
    eventually(|| async { size().await.as_deref() == Some("7") }).await;

    let mut edited = ConfigMap::clone(&live.get::<ConfigMap>(&key).await.unwrap().unwrap());
    edited.data.get_or_insert_default().insert("size".into(), "8".into());
    running.client().update(&edited).await.unwrap();
    eventually(|| async { size().await.as_deref() == Some("7") }).await;

    running.client().delete_key::<ConfigMap>(&key).await.unwrap();
    eventually(|| async { size().await.as_deref() == Some("7") }).await;

    let before = env.request_count();
    consistently(|| async { env.count(|seen| seen.call.number > before && seen.call.is_write()) == 0 }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_changes_wakes_the_old_one_and_the_new_one() {
    let env = env().await;
    let log = Log::default();
    let running = start(&env, Controller::of::<Widget>().owns::<ConfigMap>().reconcile(sizes(&log))).await;
    let client = running.client();
    let one = client.create(&widget("one", 1)).await.unwrap().into_object();
    let two = client.create(&widget("two", 2)).await.unwrap().into_object();
    let mut owned = config_map("m", &[]);
    owned.metadata.owner_references = Some(vec![watchkeeper_client::controller_reference(&one).unwrap()]);
    let mut owned = client.create(&owned).await.unwrap().into_object();
    eventually(|| async { log.lines().len() >= 2 }).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = log.lines().len();
    owned.metadata.owner_references = Some(vec![watchkeeper_client::controller_reference(&two).unwrap()]);
    client.update(&owned).await.unwrap();
    eventually(|| async {
        let mut woken = log.lines()[before..].to_vec();
        woken.sort();
        woken == ["one 1", "two 2"]
    })
    .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_wakes_what_it_names() {
    let env = env().await;
    let log = Log::default();
    let by_label = Watch::of(|secret: &Secret| {
        let name = secret.metadata.labels.as_ref()?.get("widget")?;
        Some(Key::new(secret.metadata.namespace.as_deref(), name))
    });
    let controller = Controller::of::<Widget>().watch(by_label).reconcile(sizes(&log));
    let running = start(&env, controller).await;
    let client = running.client();
    client.create(&widget("a", 1)).await.unwrap();
    client.create(&widget("b", 1)).await.unwrap();
    eventually(|| async { log.lines().len() == 2 }).await;
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".into());
    secret.metadata.namespace = Some("default".into());
    secret.metadata.labels = Some([("widget".to_owned(), "b".to_owned())].into());
    client.create(&secret).await.unwrap();
    eventually(|| async { log.lines().len() == 3 }).await;
    assert_eq!(log.lines()[2], "b 1");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_predicate_keeps_out_what_does_not_pass_but_not_a_deletion() {
    let env = env().await;
    let log = Log::default();
    let deleted = log.clone();
    let controller = Controller::of::<Widget>()
        .filter(Predicate::generation_changed())
        .deleted(move |last: Arc<Widget>, _cx: Context<Widget>| {
            let log = deleted.clone();
            async move {
                log.say(format!("{} gone", last.metadata.name.as_deref().unwrap()));
                Ok(Action::done())
            }
        })
        .reconcile(sizes(&log));
    let running = start(&env, controller).await;
    let client = running.client();
    let made = client.create(&widget("a", 1)).await.unwrap().into_object();
    eventually(|| async { log.lines() == ["a 1"] }).await;
    client
        .status(&made)
        .set(|widget: &mut Widget| widget.status.get_or_insert_default().seen = 5)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(log.lines(), ["a 1"], "the status moves no generation");
    client.modify::<Widget>(&key_of(&made), |widget| widget.spec.size = 2).await.unwrap();
    eventually(|| async { log.lines() == ["a 1", "a 2"] }).await;
    client.delete_key::<Widget>(&key_of(&made)).await.unwrap();
    eventually(|| async { log.lines() == ["a 1", "a 2", "a gone"] }).await;
    running.stop().await;
}

/// Cleans up twice: not before the second call is it done.
struct Careful {
    log: Log,
}

impl Reconciler<Widget> for Careful {
    async fn reconcile(&self, widget: Arc<Widget>, _cx: Context<Widget>) -> Result<Action> {
        assert_eq!(widget.metadata.finalizers.as_deref(), Some(&["test.dev/careful".to_owned()][..]));
        self.log.say("reconcile");
        Ok(Action::done())
    }

    async fn cleanup(&self, widget: Arc<Widget>, _cx: Context<Widget>) -> Result<Action> {
        assert!(widget.metadata.deletion_timestamp.is_some());
        self.log.say("cleanup");
        let first = self.log.lines().iter().filter(|line| *line == "cleanup").count() == 1;
        Ok(if first { Action::requeue_after(Duration::from_secs(5)) } else { Action::done() })
    }

    async fn deleted(&self, _last: Arc<Widget>, _cx: Context<Widget>) -> Result<Action> {
        self.log.say("deleted");
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_there_before_the_first_reconcile_and_goes_when_the_cleanup_is_done() {
    let env = env().await;
    let log = Log::default();
    let controller =
        Controller::of::<Widget>().finalizer("test.dev/careful").reconcile(Careful { log: log.clone() });
    let running = start(&env, controller).await;
    let client = running.client();
    let made = client.create(&widget("a", 1)).await.unwrap().into_object();
    eventually(|| async { log.lines().contains(&"reconcile".to_owned()) }).await;
    client.delete_key::<Widget>(&key_of(&made)).await.unwrap();
    eventually(|| async { log.lines().last().is_some_and(|line| line == "deleted") }).await;
    let cleanups = log.lines().iter().filter(|line| *line == "cleanup").count();
    assert_eq!(cleanups, 2);
    assert!(client.live().get::<Widget>(&key_of(&made)).await.unwrap().is_none());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_deleted_while_the_program_was_down_is_cleaned_up() {
    let env = env().await;
    let log = Log::default();
    let controller =
        || Controller::of::<Widget>().finalizer("test.dev/careful").reconcile(Careful { log: log.clone() });
    let running = start(&env, controller()).await;
    let made = running.client().create(&widget("a", 1)).await.unwrap().into_object();
    eventually(|| async { !log.lines().is_empty() }).await;
    running.stop().await;

    let client = watchkeeper_client::Client::new(env.connection());
    client.delete_key::<Widget>(&key_of(&made)).await.unwrap();
    assert!(client.live().get::<Widget>(&key_of(&made)).await.unwrap().is_some(), "the finalizer holds it");
    let running = start(&env, controller()).await;
    eventually(|| async { client.live().get::<Widget>(&key_of(&made)).await.unwrap().is_none() }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn foreign_finalizers_stay() {
    let env = env().await;
    let done = |_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) };
    let running =
        start(&env, Controller::of::<Widget>().cleanup("test.dev/ours", done).reconcile(done)).await;
    let client = running.client();
    let mut foreign = widget("a", 1);
    foreign.metadata.finalizers = Some(vec!["other.dev/x".into()]);
    let key = key_of(&*client.create(&foreign).await.unwrap());
    let live = client.live();
    let finalizers = || async { live.get::<Widget>(&key).await.unwrap()?.metadata.finalizers.clone() };
    eventually(|| async { finalizers().await.is_some_and(|all| all == ["other.dev/x", "test.dev/ours"]) })
        .await;
    client.delete_key::<Widget>(&key).await.unwrap();
    eventually(|| async { finalizers().await.is_some_and(|all| all == ["other.dev/x"]) }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_its_own_are_worked_on_once_for_all_their_objects() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::keyed::<String>("sizes")
        .watch(Watch::of(|widget: &Widget| Some(format!("size-{}", widget.spec.size))))
        .reconcile(move |size: String, cx: Context| {
            let log = seen.clone();
            async move {
                let all = cx.client().list::<Widget>().await?;
                let of_size =
                    all.iter().filter(|widget| format!("size-{}", widget.spec.size) == size).count();
                log.say(format!("{size}: {of_size}"));
                Ok(Action::done())
            }
        });
    let running = start(&env, controller).await;
    for name in ["a", "b", "c"] {
        running.client().create(&widget(name, 1)).await.unwrap();
    }
    eventually(|| async { log.lines().last().is_some_and(|line| line == "size-1: 3") }).await;
    let key = Key::new(Some("default"), "a");
    running.client().modify::<Widget>(&key, |widget| widget.spec.size = 2).await.unwrap();
    eventually(|| async {
        let mut last: Vec<_> = log.lines().iter().rev().take(2).cloned().collect();
        last.sort();
        last == ["size-1: 2", "size-2: 1"]
    })
    .await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_works_before_and_after_the_start() {
    let env = env().await;
    let log = Log::default();
    let builder = Controller::of::<Widget>();
    let trigger = builder.trigger();
    let client = watchkeeper_client::Client::new(env.connection());
    client.create(&widget("a", 1)).await.unwrap();
    trigger.fire(Key::new(Some("default"), "a"));
    let running = start(&env, builder.reconcile(sizes(&log))).await;
    eventually(|| async { !log.lines().is_empty() }).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = log.lines().len();
    trigger.fire_after(Key::new(Some("default"), "a"), Duration::from_secs(60));
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(log.lines().len(), before);
    eventually(|| async { log.lines().len() == before + 1 }).await;
    running.stop().await;
    trigger.fire(Key::new(Some("default"), "a"));
}

#[tokio::test(start_paused = true)]
async fn the_cause_and_the_attempt_are_told() {
    let env = env().await;
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::of::<Widget>().owns::<ConfigMap>().reconcile(
        move |widget: Arc<Widget>, cx: Context<Widget>| {
            let log = seen.clone();
            async move {
                log.say(cx.cause().map_or_else(|| "none".into(), ToString::to_string));
                let name = widget.metadata.name.clone().unwrap();
                cx.children().apply([config_map(&name, &[])]).await?;
                Ok(Action::done())
            }
        },
    );
    let running = start(&env, controller).await;
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines().len() == 2 }).await;
    assert_eq!(log.lines(), ["ADDED widgets.test.watchkeeper.dev default/a", "ADDED configmaps default/a"]);
    running.stop().await;
}
