//! Kinds that are known at run time only.

use serde_json::json;
use watchkeeper_client::{Cache, DynamicKind, DynamicObject, Informer, Outcome, ready};
use watchkeeper_sources::kubernetes::Kubernetes;
use watchkeeper_testkit::fixtures::key;

use crate::world::{World, config_map};

fn config_maps() -> DynamicKind {
    DynamicKind::namespaced("", "v1", "ConfigMap", "configmaps")
}

fn widgets() -> DynamicKind {
    DynamicKind::namespaced("test.watchkeeper.dev", "v1", "Widget", "widgets")
}

#[tokio::test]
async fn objects_without_a_type_are_cached_written_and_seen_as_typed_ones_are() {
    let world = World::bare().await;
    let maps = world.client.dynamic(&config_maps());
    let others = world.client.dynamic(&widgets());
    for client in [&maps, &others] {
        client.declare(Cache::of::<DynamicObject>()).unwrap();
        client.synced().await.unwrap();
    }
    world.client.create(&config_map("theirs", "1")).await.unwrap();
    maps.barrier::<DynamicObject>().await.unwrap();

    let held = world.hold_watches();
    let mut map = config_maps().object(Some("default"), "a");
    map.fields.insert("data".into(), json!({"k": "1"}));
    let created = maps.create(&map).await.unwrap();
    assert_eq!(
        (created.outcome, created.api_version.as_str(), created.kind.as_str()),
        (Outcome::Created, "v1", "ConfigMap")
    );
    // The cache has not heard of it, but of kinds that share the type, each has its own.
    let found = maps.get::<DynamicObject>(&key("a")).await.unwrap().unwrap();
    assert_eq!(found.get("/data/k"), Some(&json!("1")));
    assert_eq!(others.get::<DynamicObject>(&key("a")).await.unwrap(), None);
    let change = |map: &mut DynamicObject| drop(map.fields.insert("data".into(), json!({"k": "2"})));
    assert!(maps.modify(&key("a"), change).await.unwrap().is_changed());
    assert_eq!(maps.list::<DynamicObject>().in_namespace("default").labels("none=x").await.unwrap().len(), 0);
    held.lift();
    maps.barrier::<DynamicObject>().await.unwrap();
    assert_eq!(
        maps.get::<DynamicObject>(&key("a")).await.unwrap().unwrap().get("/data/k"),
        Some(&json!("2"))
    );
}

#[tokio::test]
async fn an_object_without_a_type_owns_children_and_has_conditions() {
    let world = World::start().await;
    let widgets = world.client.dynamic(&widgets());
    let mut widget = self::widgets().object(Some("default"), "w");
    widget.fields.insert("spec".into(), json!({"size": 1}));
    let widget = widgets.create(&widget).await.unwrap();
    widgets.children(&*widget).apply([config_map("page", "1")]).await.unwrap();
    let page = world.client.live().get::<k8s_openapi::api::core::v1::ConfigMap>(&key("page")).await.unwrap();
    let owner = watchkeeper_client::controller_of(&*page.unwrap()).cloned().unwrap();
    assert_eq!((owner.api_version.as_str(), owner.kind.as_str()), ("test.watchkeeper.dev/v1", "Widget"));

    let written = widgets.status(&*widget).condition(ready("Written")).await.unwrap();
    assert_eq!(written.get("/status/conditions/0/reason"), Some(&json!("Written")));
    assert!(!widgets.status(&*written).condition(ready("Written")).await.unwrap().is_changed());
    assert!(widgets.delete(&*written).await.unwrap());

    let unnamed = world.client.live().get::<DynamicObject>(&key("w")).await.unwrap_err();
    assert!(unnamed.to_string().contains("use Client::dynamic"), "{unnamed}");
    assert!(world.client.declare(Cache::of::<DynamicObject>()).is_err());
}

#[tokio::test]
async fn an_object_is_sent_to_the_path_of_its_own_kind_or_nowhere() {
    let world = World::start().await;
    let maps = world.client.dynamic(&config_maps());
    let mut widget = widgets().object(Some("default"), "w");
    widget.fields.insert("spec".into(), json!({"size": 1}));
    for refused in [maps.create(&widget).await.err(), maps.apply(&widget).await.err()] {
        let refused = refused.unwrap().to_string();
        assert!(refused.contains("test.watchkeeper.dev/v1 Widget default/w"), "{refused}");
        assert!(refused.contains("use Client::dynamic"), "{refused}");
    }
    // Once the kind is in use with this client, any of its handles knows where it is.
    let others = world.client.dynamic(&widgets());
    assert_eq!(others.live().get::<DynamicObject>(&key("w")).await.unwrap(), None);
    maps.create(&widget).await.unwrap();
    assert!(others.live().get::<DynamicObject>(&key("w")).await.unwrap().is_some());
}

#[tokio::test]
async fn the_server_says_where_a_kind_is() {
    let world = World::start().await;
    assert_eq!(world.client.discover("v1", "ConfigMap").await.unwrap(), config_maps());
    assert_eq!(world.client.discover("test.watchkeeper.dev/v1", "Widget").await.unwrap(), widgets());
    let nodes = world.client.discover("v1", "Node").await.unwrap();
    assert_eq!((nodes.plural(), nodes.version(), nodes.is_namespaced()), ("nodes", "v1", false));
    for (api_version, kind) in [("v1", "Elephant"), ("nowhere.dev/v1", "Widget")] {
        let unknown = world.client.discover(api_version, kind).await.unwrap_err();
        assert!(matches!(unknown, watchkeeper_client::Error::NotFound { .. }), "{unknown}");
        assert_eq!(unknown.to_string(), format!("the kind {kind} of {api_version} does not exist"));
    }
}

#[tokio::test]
async fn a_kind_without_a_type_is_a_source_of_its_own_informer() {
    let world = World::bare().await;
    world.client.create(&config_map("a", "1")).await.unwrap();
    let source = config_maps().source(world.env.connection()).namespace("default");
    let informer = Informer::<DynamicObject>::builder().start(source);
    informer.synced().await.unwrap();
    let found = informer.store().get(&key("a")).unwrap().get().unwrap();
    assert_eq!((found.kind.as_str(), found.get("/data/k")), ("ConfigMap", Some(&json!("1"))));
}

#[tokio::test]
async fn a_source_of_objects_of_no_kind_is_refused_without_a_request_and_told_what_to_call() {
    let world = World::bare().await;
    let asked = world.env.count(|_| true);
    let informer =
        Informer::<DynamicObject>::builder().start(Kubernetes::of::<DynamicObject>(world.env.connection()));
    let refused = informer.synced().await.unwrap_err().to_string();
    assert!(refused.contains("DynamicObject names no plural"), "{refused}");
    assert!(refused.contains("call DynamicKind::source"), "{refused}");
    assert_eq!(world.env.count(|_| true), asked);
}
