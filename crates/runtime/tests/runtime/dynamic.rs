//! Controllers of kinds that are known at run time only.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use watchkeeper_client::{Client, DynamicKind, DynamicObject, ready};
use watchkeeper_runtime::{Action, Context, Controller, Manager, Result};
use watchkeeper_testkit::fixtures::{Widget, key, widget};
use watchkeeper_testkit::{TestEnv, eventually};

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
