//! What is declared, and what reads of it say.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use watchkeeper_client::{Cache, Client, Error, Policy};
use watchkeeper_core::{Key, Uid};
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{TestEnv, eventually};

use crate::world::{World, config_map, from};

#[tokio::test]
async fn reading_what_nobody_declared_is_an_error_and_asks_nobody() {
    let world = World::bare().await;
    let before = world.env.request_count();
    let error = world.client.get::<Secret>(&key("a")).await.unwrap_err();
    assert!(matches!(&error, Error::NotDeclared { kind } if kind == "Secret"), "{error}");
    assert!(matches!(world.client.list::<Secret>().await, Err(Error::NotDeclared { .. })));
    assert!(matches!(world.client.informer::<Secret>(), Err(Error::NotDeclared { .. })));
    assert_eq!(world.env.request_count(), before);
}

#[tokio::test]
async fn the_same_declaration_again_is_the_same_watch_and_another_is_an_error() {
    let world = World::bare().await;
    let web = || Cache::of::<Secret>().namespaces(["a", "b"]).labels("app=web");
    world.client.declare(web()).unwrap();
    world.client.clone().declare(web()).unwrap();
    let error = world.client.declare(web().policy(Policy::Typed)).unwrap_err();
    assert!(matches!(error, Error::DeclaredDifferently { .. }), "{error}");
    assert!(error.to_string().contains("namespaces a, b; labels app=web; Packed"), "{error}");
    world.client.synced().await.unwrap();
    assert_eq!(world.env.count(|seen| seen.call.is_of("secrets") && seen.call.verb == "watch"), 2);
    let bad = world.client.declare(Cache::of::<ConfigMap>().labels("a in b")).unwrap_err();
    assert!(matches!(bad, Error::Selector(_)), "{bad}");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_not_complete_never_says_absent() {
    let world = World::bare().await;
    let fault = world.env.deny(|call| call.is_of("secrets"));
    world.client.declare(Cache::of::<Secret>()).unwrap();
    let error = eventually(|| async {
        match world.client.get::<Secret>(&key("a")).await {
            Err(Error::NotSynced { reason: Some(reason), .. }) => Some(reason),
            Err(Error::NotSynced { reason: None, .. }) => None,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(error.await.class(), "denied");
    assert!(matches!(world.client.list::<Secret>().await, Err(Error::NotSynced { .. })));
    fault.lift();
    world.client.synced().await.unwrap();
    assert!(world.client.get::<Secret>(&key("a")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_namespace_that_is_not_watched_is_an_error_and_not_empty() {
    let world = World::bare().await;
    world.client.declare(Cache::of::<Secret>().namespaces(["default"])).unwrap();
    world.client.synced().await.unwrap();
    assert!(world.client.get::<Secret>(&key("a")).await.unwrap().is_none());
    let elsewhere = world.client.get::<Secret>(&Key::new(Some("kube-system"), "a")).await.unwrap_err();
    assert!(matches!(elsewhere, Error::OutsideCache { .. }), "{elsewhere}");
    assert!(world.client.list::<Secret>().in_namespace("kube-system").await.is_err());
    assert!(world.client.list::<Secret>().await.unwrap().is_empty());
}

#[tokio::test]
async fn lists_are_narrowed_by_namespace_labels_owner_and_function() {
    let world = World::start().await;
    world.env.create_namespace("other").await;
    let owner = json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10"}]);
    for (namespace, name, app, owners) in [
        ("default", "a", "web", json!([])),
        ("default", "b", "db", owner.clone()),
        ("other", "a", "web", owner),
    ] {
        let map: ConfigMap =
            from(json!({"metadata": {"name": name, "namespace": namespace, "labels": {"app": app},
            "ownerReferences": owners}, "data": {"k": name}}));
        world.client.create(&map).await.unwrap();
    }
    let uid = Uid::from("0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10");
    for round in ["from the answers", "from the cache"] {
        let names = |list: Vec<std::sync::Arc<ConfigMap>>| {
            let name = |map: &std::sync::Arc<ConfigMap>| {
                format!(
                    "{}/{}",
                    map.metadata.namespace.as_ref().unwrap(),
                    map.metadata.name.as_ref().unwrap()
                )
            };
            list.iter().map(name).filter(|name| !name.contains("kube-root")).collect::<Vec<_>>()
        };
        let list = || world.client.list::<ConfigMap>();
        assert_eq!(
            names(list().in_namespace("default").await.unwrap()),
            ["default/a", "default/b"],
            "{round}"
        );
        assert_eq!(names(list().labels("app=web").await.unwrap()), ["default/a", "other/a"], "{round}");
        assert_eq!(names(list().owned_by(&uid).await.unwrap()), ["default/b", "other/a"], "{round}");
        let both = list().owned_by(&uid).in_namespace("other").labels("app!=db");
        assert_eq!(names(both.await.unwrap()), ["other/a"], "{round}");
        let by_function =
            list().matching(|map| map.data.as_ref().is_some_and(|data| data.get("k") == Some(&"b".into())));
        assert_eq!(names(by_function.await.unwrap()), ["default/b"], "{round}");
        let live = world.client.live().list::<ConfigMap>().owned_by(&uid).labels("app=web");
        assert_eq!(names(live.await.unwrap()), ["other/a"], "{round}");
        world.client.barrier::<ConfigMap>().await.unwrap();
    }
}

#[tokio::test]
async fn an_index_sees_what_was_written() {
    let world = World::start().await;
    let by_value = world
        .client
        .index("value", |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("k").cloned()))
        .unwrap();
    let held = world.hold_watches();
    let created = world.client.create(&config_map("a", "one")).await.unwrap().into_object();
    assert_eq!(by_value.get(&"one".to_owned()).await.unwrap().len(), 1);
    let mut changed = created;
    changed.data.as_mut().unwrap().insert("k".into(), "two".into());
    world.client.update(&changed).await.unwrap();
    assert_eq!(by_value.get(&"one".to_owned()).await.unwrap().len(), 0);
    assert_eq!(by_value.get(&"two".to_owned()).await.unwrap().len(), 1);
    held.lift();
    let again = world.client.index("value", |_: &ConfigMap| Some(String::new())).unwrap();
    eventually(|| async { world.client.informer::<ConfigMap>().unwrap().store().contains(&key("a")) }).await;
    assert_eq!(again.get(&"two".to_owned()).await.unwrap().len(), 1, "the first function counts");
    assert!(world.client.index("value", |_: &ConfigMap| Some(1)).is_err());
}

#[tokio::test]
async fn live_lists_come_in_pages() {
    let env = TestEnv::start().await;
    let client = Client::new(env.connection());
    for number in 0..501 {
        client.create(&config_map(&format!("m{number}"), "v")).await.unwrap();
    }
    let all = client.live().list::<ConfigMap>().in_namespace("default").await.unwrap();
    assert!(all.len() >= 501, "{}", all.len());
    assert_eq!(env.count(|seen| seen.call.verb == "list" && seen.call.is_of("configmaps")), 2);
    assert!(client.live().get::<ConfigMap>(&key("m7")).await.unwrap().is_some());
    assert!(client.live().get::<ConfigMap>(&key("none")).await.unwrap().is_none());
}
