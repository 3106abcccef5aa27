//! The whole set of what an owner wants.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use serde_json::json;
use watchkeeper_client::{Cache, Error, Patch, controller_of, controller_reference};
use watchkeeper_testkit::fixtures::{Widget, key};

use crate::world::{World, config_map, from};

fn child(name: &str, value: &str) -> ConfigMap {
    let mut map = config_map(name, value);
    map.metadata.namespace = None;
    map
}

fn secret(name: &str) -> Secret {
    from(json!({"metadata": {"name": name}, "stringData": {}}))
}

fn names(children: &[watchkeeper_client::Child]) -> Vec<String> {
    children.iter().map(|child| format!("{} {}", child.kind, child.key)).collect()
}

async fn world() -> (World, Widget) {
    let world = World::start().await;
    world.client.declare(Cache::of::<Secret>()).unwrap();
    world.client.synced().await.unwrap();
    let owner = world.widget("g").await;
    (world, owner)
}

#[tokio::test]
async fn the_set_is_created_then_left_alone_then_changed_then_pruned() {
    let (world, owner) = world().await;
    let first = world
        .client
        .children(&owner)
        .apply([child("a", "1"), child("b", "1")])
        .apply(&secret("s"))
        .done()
        .await
        .unwrap();
    assert_eq!(names(&first.created), ["ConfigMap default/a", "ConfigMap default/b", "Secret default/s"]);
    let made = world.map("a").await.unwrap();
    let controller = controller_of(&*made).unwrap();
    assert_eq!((controller.kind.as_str(), &controller.uid), ("Widget", owner.metadata.uid.as_ref().unwrap()));
    assert_eq!(controller.block_owner_deletion, Some(true));

    let before = world.env.request_count();
    let again = world
        .client
        .children(&owner)
        .apply([child("a", "1"), child("b", "1")])
        .apply(&secret("s"))
        .await
        .unwrap();
    assert_eq!((again.unchanged.len(), again.is_changed()), (3, false));
    assert_eq!(world.env.request_count(), before, "silent when nothing changed");

    let less = world.client.children(&owner).apply(vec![child("a", "2")]).prunes::<Secret>().await.unwrap();
    assert_eq!(names(&less.changed), ["ConfigMap default/a"]);
    assert_eq!(names(&less.pruned), ["ConfigMap default/b", "Secret default/s"]);
    assert_eq!(world.maps().await, ["a"]);
    assert!(world.client.live().get::<Secret>(&key("s")).await.unwrap().is_none());

    let none = world.client.children(&owner).apply(None::<ConfigMap>).await.unwrap();
    assert_eq!(names(&none.pruned), ["ConfigMap default/a"]);
    let before = world.writes();
    assert!(!world.client.children(&owner).prunes::<ConfigMap>().await.unwrap().is_changed());
    assert_eq!(world.writes(), before);
}

#[tokio::test]
async fn an_orphan_is_adopted_and_what_somebody_else_controls_is_refused() {
    let (world, owner) = world().await;
    let other = world.widget("other").await;
    world.client.create(&config_map("orphan", "1")).await.unwrap();
    let mut theirs = config_map("theirs", "1");
    theirs.metadata.owner_references = Some(vec![controller_reference(&other).unwrap()]);
    world.client.create(&theirs).await.unwrap();
    let set = [child("orphan", "2"), child("theirs", "2"), child("z", "1")];
    let error = world.client.children(&owner).apply(set).await.unwrap_err();
    assert!(
        matches!(&error, Error::Controlled { controller, .. } if controller == "Widget other"),
        "{error}"
    );
    let adopted = world.map("orphan").await.unwrap();
    assert_eq!(&controller_of(&*adopted).unwrap().uid, owner.metadata.uid.as_ref().unwrap());
    assert_eq!(crate::world::data(&world.map("theirs").await.unwrap()), "1");
    assert!(world.map("z").await.is_some(), "the rest is applied nevertheless");
    let error = world.client.children(&owner).apply([child("theirs", "2")]).await.unwrap_err();
    assert!(matches!(error, Error::Controlled { .. }));
    assert!(world.map("orphan").await.is_some(), "nothing is pruned when something failed");
}

#[tokio::test]
async fn only_what_the_owner_controls_is_pruned() {
    let (world, owner) = world().await;
    let mut owned = config_map("owned", "1");
    let mut reference = controller_reference(&owner).unwrap();
    reference.controller = None;
    owned.metadata.owner_references = Some(vec![reference]);
    world.client.create(&owned).await.unwrap();
    world.client.create(&config_map("free", "1")).await.unwrap();
    let mut held = child("held", "1");
    held.metadata.finalizers = Some(vec!["demo.dev/hold".into()]);
    world.client.children(&owner).apply([held]).await.unwrap();
    assert_eq!(world.client.children(&owner).prunes::<ConfigMap>().await.unwrap().pruned.len(), 1);
    let writes = world.writes();
    assert!(
        !world.client.children(&owner).prunes::<ConfigMap>().await.unwrap().is_changed(),
        "it is going already"
    );
    assert_eq!(world.writes(), writes);
    assert_eq!(world.maps().await, ["free", "held", "owned"]);
}

#[tokio::test]
async fn a_child_that_was_replaced_meanwhile_is_not_pruned() {
    let (world, owner) = world().await;
    world.client.children(&owner).apply([child("a", "1")]).await.unwrap();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let held = world.hold_watches();
    let other = world.somebody_else();
    other.delete_key::<ConfigMap>(&key("a")).await.unwrap();
    other.create(&config_map("a", "new")).await.unwrap();
    let outcomes = world.client.children(&owner).prunes::<ConfigMap>().await.unwrap();
    assert!(outcomes.pruned.is_empty(), "{outcomes:?}");
    assert!(other.live().get::<ConfigMap>(&key("a")).await.unwrap().is_some());
    drop(held);
}

#[tokio::test]
async fn what_cannot_be_owned_is_told_before_anything_is_sent() {
    let (world, owner) = world().await;
    world.env.create_namespace("other").await;
    let writes = world.writes();
    let mut elsewhere = child("a", "1");
    elsewhere.metadata.namespace = Some("other".into());
    let error = world.client.children(&owner).apply([child("b", "1"), elsewhere.clone()]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Widget default/g cannot own ConfigMap other/a: an owner must be in the same namespace, or cluster-scoped"
    );
    let twice = world.client.children(&owner).apply([child("b", "1"), child("b", "2")]).await.unwrap_err();
    assert!(matches!(twice, Error::Twice { .. }), "{twice}");
    let mut unborn = owner.clone();
    unborn.metadata.uid = None;
    assert!(matches!(
        world.client.children(&unborn).apply([child("b", "1")]).await,
        Err(Error::Incomplete { .. })
    ));
    let undeclared = world.client.children(&owner).prunes::<Namespace>().await.unwrap_err();
    assert!(matches!(undeclared, Error::NotDeclared { .. }), "{undeclared}");
    assert_eq!(world.writes(), writes);

    let cluster_scoped = world
        .client
        .live()
        .get::<Namespace>(&watchkeeper_core::Key::new(None, "other"))
        .await
        .unwrap()
        .unwrap();
    world.client.children(&*cluster_scoped).apply([elsewhere]).await.unwrap();
    let foreign = Patch::Merge(json!({"data": {"k": "x"}}));
    let elsewhere = watchkeeper_core::Key::new(Some("other"), "a");
    world.client.patch::<ConfigMap>(&elsewhere, foreign).await.unwrap();
}
