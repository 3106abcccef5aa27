//! Controllers of kinds that are known at run time only.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;
use watchkeeper_client::{Cache, Client, DynamicKind, DynamicObject, ready};
use watchkeeper_runtime::{Action, Context, Controller, ControllerBuilder, Manager, Primary, Result, Verbs};
use watchkeeper_testkit::fixtures::{Widget, key, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

async fn reconcile(object: Arc<DynamicObject>, cx: Context<DynamicObject>) -> Result<Action> {
    let size = object.get("/spec/size").map(ToString::to_string).unwrap_or_default();
    let page = ConfigMap { data: Some([("size".to_owned(), size)].into()), ..cx.named() };
    cx.children().apply([page]).await?;
    cx.status().condition(ready("Written")).await?;
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_type_is_reconciled_cleaned_up_and_woken_by_what_it_owns() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let kind = DynamicKind::namespaced("test.watchkeeper.dev", "v1", "Widget", "widgets");
    let controller = Controller::dynamic(kind.clone())
        .owns::<ConfigMap>()
        .writes_status_dynamic(&kind)
        .finalizer("test.dev/dynamic")
        .reconcile(reconcile);
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    let client = Client::new(env.connection());
    let size = || async {
        let page = client.live().get::<ConfigMap>(&key("a")).await.unwrap()?;
        page.data.clone()?.get("size").cloned()
    };
    client.create(&widget("a", 3)).await.unwrap();
    eventually(|| async { size().await.as_deref() == Some("3") }).await;
    client.delete_key::<ConfigMap>(&key("a")).await.unwrap();
    eventually(|| async { size().await.as_deref() == Some("3") }).await;
    let status = || async { client.live().get::<Widget>(&key("a")).await.unwrap()?.status.clone() };
    eventually(|| async { status().await.is_some_and(|status| status.conditions.len() == 1) }).await;
    client.modify::<Widget>(&key("a"), |widget| widget.spec.size = 4).await.unwrap();
    eventually(|| async { size().await.as_deref() == Some("4") }).await;
    let held = client.live().get::<Widget>(&key("a")).await.unwrap().unwrap();
    assert_eq!(json!(held.metadata.finalizers), json!(["test.dev/dynamic"]));
    client.delete_key::<Widget>(&key("a")).await.unwrap();
    eventually(|| async { client.live().get::<Widget>(&key("a")).await.unwrap().is_none() }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn children_of_kinds_without_a_type_are_applied_put_back_and_pruned() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let owner = DynamicKind::namespaced("", "v1", "ConfigMap", "configmaps");
    let widgets = DynamicKind::namespaced("test.watchkeeper.dev", "v1", "Widget", "widgets");
    let child = widgets.clone();
    let reconcile = move |map: Arc<DynamicObject>, cx: Context<DynamicObject>| {
        let child = child.clone();
        async move {
            let names = map.get("/data/widgets").and_then(|names| names.as_str()).unwrap_or_default();
            let wanted: Vec<_> = names
                .split_whitespace()
                .map(|name| {
                    let mut widget = child.object(None, name);
                    widget.fields.insert("spec".into(), json!({"size": 1}));
                    widget
                })
                .collect();
            cx.children().apply(wanted).prunes_dynamic(&child).await?;
            Ok(Action::done())
        }
    };
    let controller = Controller::dynamic(owner).owns_dynamic(&widgets).reconcile(reconcile);
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    let client = Client::new(env.connection());
    let there = || async {
        let mut names: Vec<_> = client
            .live()
            .list::<Widget>()
            .await
            .unwrap()
            .iter()
            .map(|w| w.metadata.name.clone().unwrap())
            .collect();
        names.sort();
        names.join(" ")
    };
    let map = |names: &str| {
        let mut map = ConfigMap {
            data: Some([("widgets".to_owned(), names.to_owned())].into()),
            ..ConfigMap::default()
        };
        map.metadata.name = Some("set".into());
        map.metadata.namespace = Some("default".into());
        map
    };
    client.apply(&map("a b")).await.unwrap();
    eventually(|| async { there().await == "a b" }).await;
    client.delete_key::<Widget>(&key("a")).await.unwrap();
    eventually(|| async { there().await == "a b" }).await;
    client.apply(&map("b")).await.unwrap();
    eventually(|| async { there().await == "b" }).await;
    client.apply(&map("")).await.unwrap();
    eventually(|| async { there().await.is_empty() }).await;
    running.stop().await;
}

fn widgets() -> DynamicKind {
    DynamicKind::namespaced("test.watchkeeper.dev", "v1", "Widget", "widgets")
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_a_kind_without_a_type_is_read_by_tasks_with_its_options() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let person = Client::new(env.connection());
    person.create(&widget("a", 3)).await.unwrap();
    let mut marked = widget("b", 4);
    marked.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    person.create(&marked).await.unwrap();
    let log = Log::default();
    let said = log.clone();
    let manager = Manager::new("test", env.connection())
        .cache_dynamic(&widgets(), Cache::of::<DynamicObject>().namespaces(["default"]).labels("app=web"))
        .task("list", async move |client, _stop| {
            client.synced().await?;
            // The first list may be older than the objects.
            let known = loop {
                let known = client.dynamic(&widgets()).list::<DynamicObject>().await?;
                if !known.is_empty() {
                    break known;
                }
                sleep(Duration::from_millis(10)).await;
            };
            for widget in known {
                said.say(widget.metadata.name.clone().unwrap());
            }
            Ok(())
        });
    let description = manager.description();
    let right = description.rights.iter().find(|right| right.target() == "widgets").unwrap();
    assert_eq!(right.verbs, Verbs::READ);
    assert_eq!(format!("{:?}", right.namespaces), r#"These(["default"])"#);
    let running = manager.start().await.unwrap();
    running.ready().await;
    eventually(|| async { log.lines() == ["b"] }).await;
    running.stop().await;
}

#[test]
fn what_is_declared_of_a_kind_without_a_type_is_what_would_be_declared_of_its_type() {
    let manager = || Manager::from_environment("test");
    let rights = |manager: Manager| manager.description().rights;
    let kind = widgets();
    for (dynamic, typed) in [
        (manager().cache_dynamic(&kind, Cache::of()), manager().cache(Cache::of::<Widget>())),
        (manager().reads_live_dynamic(&kind), manager().reads_live::<Widget>()),
        (manager().writes_dynamic(&kind, Verbs::CREATE), manager().writes::<Widget>(Verbs::CREATE)),
        (manager().writes_status_dynamic(&kind), manager().writes_status::<Widget>()),
        (
            manager().uses_subresource_dynamic(&kind, "scale", Verbs::UPDATE),
            manager().uses_subresource::<Widget>("scale", Verbs::UPDATE),
        ),
    ] {
        assert_eq!(rights(dynamic), rights(typed));
    }
    let of_controller = |builder: ControllerBuilder<Primary<ConfigMap>>| {
        rights(manager().controller(builder.reconcile(nothing)))
    };
    let maps = Controller::of::<ConfigMap>;
    for (dynamic, typed) in [
        (maps().owns_dynamic(&kind), maps().owns::<Widget>()),
        (maps().reads_dynamic(&kind), maps().reads::<Widget>()),
        (maps().reads_live_dynamic(&kind), maps().reads_live::<Widget>()),
        (maps().writes_dynamic(&kind, Verbs::CREATE), maps().writes::<Widget>(Verbs::CREATE)),
        (maps().writes_status_dynamic(&kind), maps().writes_status::<Widget>()),
        (
            maps().uses_subresource_dynamic(&kind, "scale", Verbs::UPDATE),
            maps().uses_subresource::<Widget>("scale", Verbs::UPDATE),
        ),
    ] {
        assert_eq!(of_controller(dynamic), of_controller(typed));
    }
}

async fn nothing(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Action> {
    Ok(Action::done())
}
