//! Plain writes, and what their failures are called.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use watchkeeper_client::{Error, Patch, Propagation, controller_reference};
use watchkeeper_testkit::fixtures::{Widget, key};
use watchkeeper_testkit::{Outcome, eventually};

use crate::world::{World, config_map, data, widget};

#[tokio::test]
async fn every_write_says_whether_it_changed_anything() {
    use watchkeeper_client::Outcome;
    let world = World::start().await;
    let client = &world.client;
    let created = client.create(&config_map("a", "1")).await.unwrap();
    assert_eq!(created.outcome, Outcome::Created);
    let mut map = created.into_object();
    assert_eq!(client.update(&map).await.unwrap().outcome, Outcome::Unchanged);
    map.data.get_or_insert_default().insert("k".into(), "2".into());
    assert_eq!(client.update(&map).await.unwrap().outcome, Outcome::Changed);
    // Who owned what at first is not part of what is wanted now.
    map.metadata.managed_fields = None;
    assert_eq!(client.update(&map).unconditional().await.unwrap().outcome, Outcome::Unchanged);
    let patch = |value: &str| Patch::Merge(json!({"data": {"k": value}}));
    assert_eq!(client.patch::<ConfigMap>(&key("a"), patch("2")).await.unwrap().outcome, Outcome::Unchanged);
    let patched = client.patch::<ConfigMap>(&key("a"), patch("3")).await.unwrap();
    assert_eq!((patched.outcome, data(&patched)), (Outcome::Changed, "3"));
}

#[tokio::test]
async fn failures_are_named_by_what_can_be_done_about_them() {
    let world = World::bare().await;
    let client = &world.client;
    let first = client.create(&config_map("a", "1")).await.unwrap().into_object();
    let error = client.create(&config_map("a", "1")).await.unwrap_err();
    assert_eq!(error.to_string(), "ConfigMap default/a exists already");
    client.patch::<ConfigMap>(&key("a"), Patch::Merge(json!({"data": {"k": "2"}}))).await.unwrap();
    assert!(matches!(client.update(&first).await, Err(Error::Conflict { .. })));
    let missing = client.patch::<ConfigMap>(&key("b"), Patch::Merge(json!({}))).await.unwrap_err();
    assert_eq!(missing.to_string(), "ConfigMap default/b does not exist");
    let error = client.create(&widget("g", "much longer than twenty characters")).await.unwrap_err();
    match &error {
        Error::Invalid { causes, .. } => assert_eq!(causes[0].field, "spec.text"),
        other => panic!("{other}"),
    }
    for (code, reason) in [(403, "denied"), (429, "throttled"), (500, "lost"), (418, "refused")] {
        let fault = world.env.fault(move |_| Outcome::reject(code, "Whatever", "because"));
        let error = client.create(&config_map("c", "secret-value")).await.unwrap_err();
        let class = match &error {
            Error::Denied { .. } => "denied",
            Error::Throttled { .. } => "throttled",
            Error::Lost { .. } => "lost",
            Error::Refused { code: 418, .. } => "refused",
            other => panic!("{other}"),
        };
        assert_eq!(class, reason);
        assert!(
            error.to_string().contains("because") && !error.to_string().contains("secret-value"),
            "{error}"
        );
        let read = client.live().get::<ConfigMap>(&key("a")).await.unwrap_err();
        assert!(!matches!(read, Error::Lost { .. }), "a read has nothing to lose: {read}");
        fault.lift();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_waited_for_without_end() {
    let world = World::bare().await;
    let fault = world.env.fault(|_| Outcome::hang());
    let error =
        tokio::time::timeout(Duration::from_secs(120), world.client.create(&config_map("a", "1"))).await;
    assert!(matches!(error, Ok(Err(Error::Lost { .. }))), "{error:?}");
    let error = world.client.live().get::<ConfigMap>(&key("a")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    fault.lift();
}

#[tokio::test]
async fn an_unconditional_update_replaces_whatever_is_there() {
    let world = World::bare().await;
    world.widget("g").await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    world.client.patch::<Widget>(&key("g"), patch).await.unwrap();
    let replaced = world.client.update(&widget("g", "bye")).unconditional().await.unwrap().into_object();
    assert_eq!((replaced.spec.text.as_str(), replaced.metadata.labels), ("bye", None));
    let none = world.client.update(&widget("none", "bye")).unconditional().await.unwrap_err();
    assert!(matches!(none, Error::NotFound { .. }), "{none}");
}

#[tokio::test]
async fn a_delete_hits_the_incarnation_that_was_meant() {
    let world = World::bare().await;
    let old = world.client.create(&config_map("a", "1")).await.unwrap().into_object();
    world.client.delete_key::<ConfigMap>(&key("a")).await.unwrap();
    world.client.create(&config_map("a", "2")).await.unwrap();
    assert!(matches!(world.client.delete(&old).await, Err(Error::Conflict { .. })));
    assert_eq!(data(&world.client.live().get::<ConfigMap>(&key("a")).await.unwrap().unwrap()), "2");
}

#[tokio::test]
async fn propagation_decides_about_dependents() {
    let world = World::start().await;
    for (propagation, stays) in [(Propagation::Orphan, true), (Propagation::Background, false)] {
        let owner = world.widget("g").await;
        let mut map = config_map("a", "1");
        map.metadata.owner_references = Some(vec![controller_reference(&owner).unwrap()]);
        world.client.create(&map).await.unwrap();
        world.client.delete(&owner).propagation(propagation).await.unwrap();
        eventually(|| async {
            let owner = world.client.live().get::<Widget>(&key("g")).await.unwrap();
            let map = world.client.live().get::<ConfigMap>(&key("a")).await.unwrap();
            owner.is_none() && map.is_some() == stays
        })
        .await;
        if stays {
            world.client.delete_key::<ConfigMap>(&key("a")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn many_are_deleted_at_once_and_reads_know() {
    let world = World::start().await;
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut map = config_map(name, "1");
        map.metadata.labels = Some([("app".into(), app.into())].into());
        world.client.create(&map).await.unwrap();
    }
    world.client.barrier::<ConfigMap>().await.unwrap();
    let _held = world.hold_watches();
    world.client.delete_all_of::<ConfigMap>().in_namespace("default").labels("app=web").await.unwrap();
    assert_eq!(world.maps().await, ["c"]);
}
