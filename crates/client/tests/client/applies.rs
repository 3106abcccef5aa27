//! Server-side apply, and when it sends nothing.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use watchkeeper_client::{Cache, Client, Error, Outcome, Patch};
use watchkeeper_testkit::fixtures::{Widget, key};

use crate::world::{World, config_map, data, from, widget};

fn deployment() -> Deployment {
    from(json!({"metadata": {"name": "web", "namespace": "default", "labels": {"a": "b"}}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m"}}}]}}}}))
}

#[tokio::test]
async fn applying_the_same_again_sends_nothing() {
    let world = World::start().await;
    let map = config_map("a", "1");
    assert_eq!(world.client.apply(&map).await.unwrap().outcome, Outcome::Created);
    let writes = world.writes();
    let again = world.client.apply(&map).await.unwrap();
    assert_eq!(again.outcome, Outcome::Unchanged);
    world.client.barrier::<ConfigMap>().await.unwrap();
    let again = world.client.apply(&map).await.unwrap();
    assert_eq!((again.outcome, data(&again)), (Outcome::Unchanged, "1"));
    assert_eq!(world.writes(), writes);
    let changed = world.client.apply(&config_map("a", "2")).await.unwrap();
    assert_eq!((changed.outcome, data(&changed)), (Outcome::Changed, "2"));
    assert_eq!(world.writes(), writes + 1);
    let back = world.client.apply(&map).await.unwrap();
    assert_eq!((back.outcome, data(&back)), (Outcome::Changed, "1"));
}

#[tokio::test]
async fn an_object_that_was_read_can_be_applied_with_what_the_server_set() {
    let world = World::start().await;
    world.client.apply(&config_map("a", "1")).await.unwrap();
    let mut read = ConfigMap::clone(&*world.map("a").await.unwrap());
    assert!(read.metadata.resource_version.is_some());
    assert_eq!(world.client.apply(&read).await.unwrap().outcome, Outcome::Unchanged);
    read.data.as_mut().unwrap().insert("k".into(), "2".into());
    assert_eq!(world.client.apply(&read).await.unwrap().outcome, Outcome::Changed);
}

#[tokio::test]
async fn a_foreign_change_of_an_applied_field_is_reverted_and_of_another_field_is_not_worth_a_request() {
    let world = World::start().await;
    let other = world.somebody_else();
    let uncached = world.client.apply(&deployment()).await.unwrap();
    assert_eq!(uncached.outcome, Outcome::Created, "an apply needs no cache");
    world.client.declare(Cache::of::<Deployment>()).unwrap();
    world.client.synced().await.unwrap();
    let settle = || async {
        let live = world.client.live().get::<Deployment>(&key("web")).await.unwrap().unwrap();
        let version = watchkeeper_core::Version::from(live.metadata.resource_version.as_deref().unwrap());
        let store = world.client.informer::<Deployment>().unwrap().store();
        store.until(|store| store.get(&key("web")).is_some_and(|web| *web.version() == version)).await;
    };
    world.client.apply(&deployment()).await.unwrap();
    settle().await;
    assert_eq!(world.client.apply(&deployment()).await.unwrap().outcome, Outcome::Unchanged);
    for elsewhere in [
        json!({"metadata": {"annotations": {"x": "y"}}}),
        json!({"spec": {"paused": true}}),
        json!({"metadata": {"labels": {"foreign": "f"}}}),
    ] {
        other.patch::<Deployment>(&key("web"), Patch::Merge(elsewhere.clone())).await.unwrap();
        settle().await;
        let writes = world.writes();
        assert_eq!(
            world.client.apply(&deployment()).await.unwrap().outcome,
            Outcome::Unchanged,
            "{elsewhere}"
        );
        assert_eq!(world.writes(), writes, "{elsewhere}");
    }
    for ours in [
        json!({"spec": {"replicas": 5}}),
        json!({"metadata": {"labels": {"a": null}}}),
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "evil"}]}}}}),
    ] {
        other.patch::<Deployment>(&key("web"), Patch::Strategic(ours.clone())).await.unwrap();
        settle().await;
        let written = world.client.apply(&deployment()).await.unwrap();
        assert_eq!(written.outcome, Outcome::Changed, "{ours}");
        let spec = &written.spec;
        let container = &spec.template.spec.as_ref().unwrap().containers[0];
        assert_eq!((spec.replicas, container.image.as_deref()), (Some(2), Some("i")));
        assert_eq!(written.metadata.labels.as_ref().unwrap()["a"], "b");
        settle().await;
    }
    other.delete_key::<Deployment>(&key("web")).await.unwrap();
    let store = world.client.informer::<Deployment>().unwrap().store();
    store.until(|store| !store.contains(&key("web"))).await;
    assert_eq!(world.client.apply(&deployment()).await.unwrap().outcome, Outcome::Created);
}

#[tokio::test]
async fn after_a_restart_the_managed_fields_tell() {
    let world = World::start().await;
    world.client.apply(&deployment()).await.unwrap();
    for (keeps, expected) in [(true, 0), (false, 1)] {
        let restarted = Client::new(world.env.connection());
        let cache = Cache::of::<Deployment>();
        restarted.declare(if keeps { cache.keep_managed_fields() } else { cache }).unwrap();
        restarted.synced().await.unwrap();
        let writes = world.writes();
        let mut wanted = deployment();
        // As the server writes it; in another form nobody can tell without knowing quantities.
        let containers = &mut wanted.spec.template.spec.as_mut().unwrap().containers;
        let shown = restarted.get::<Deployment>(&key("web")).await.unwrap().unwrap();
        containers[0].resources = shown.spec.template.spec.as_ref().unwrap().containers[0].resources.clone();
        assert_eq!(restarted.apply(&wanted).await.unwrap().outcome, Outcome::Unchanged);
        assert_eq!(world.writes() - writes, expected);
        let more = restarted.manager("another").apply(&wanted).await.unwrap();
        assert_eq!(more.outcome, Outcome::Changed, "another manager owns nothing yet");
        assert_eq!(restarted.apply(&wanted).await.unwrap().outcome, Outcome::Unchanged);
        wanted.metadata.labels = None;
        let less = restarted.apply(&wanted).await.unwrap();
        assert_eq!(less.outcome, Outcome::Changed, "a field less is a change, too");
        world.client.apply(&deployment()).await.unwrap();
    }
}

#[tokio::test]
async fn without_force_a_conflict_names_who_owns_the_field() {
    let world = World::start().await;
    world.somebody_else().apply(&config_map("a", "theirs")).await.unwrap();
    let error = world.client.apply(&config_map("a", "mine")).without_force().await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert!(error.to_string().contains("somebody-else"), "{error}");
    assert_eq!(data(&world.client.apply(&config_map("a", "mine")).await.unwrap()), "mine");
}

#[tokio::test]
async fn a_status_is_applied_apart() {
    let world = World::start().await;
    let mut wanted = world.widget("g").await;
    wanted.spec.text = "ignored".into();
    wanted.status = Some(watchkeeper_testkit::fixtures::WidgetStatus { seen: 7, ..Default::default() });
    let written = world.client.apply_status(&wanted).await.unwrap();
    assert_eq!(written.spec.text, "hello");
    assert_eq!(written.status.as_ref().unwrap().seen, 7);
    let writes = world.writes();
    assert_eq!(world.client.apply_status(&wanted).await.unwrap().outcome, Outcome::Unchanged);
    assert_eq!(world.writes(), writes);
    world.client.apply(&widget("g", "main")).await.unwrap();
    let seen = world.client.get::<Widget>(&key("g")).await.unwrap().unwrap();
    assert_eq!((seen.spec.text.as_str(), seen.status.as_ref().unwrap().seen), ("main", 7));
}

#[tokio::test]
async fn what_lacks_a_name_or_a_namespace_is_not_sent() {
    let world = World::start().await;
    let writes = world.writes();
    let mut map = config_map("a", "1");
    map.metadata.namespace = None;
    let error = world.client.apply(&map).await.unwrap_err();
    assert!(error.to_string().contains("metadata.namespace"), "{error}");
    assert!(matches!(world.client.create(&map).await, Err(Error::Incomplete { .. })));
    map.metadata.name = None;
    assert!(matches!(world.client.apply(&map).await, Err(Error::Incomplete { .. })));
    assert!(matches!(world.client.update(&config_map("a", "1")).await, Err(Error::Incomplete { .. })));
    assert_eq!(world.writes(), writes);
}
