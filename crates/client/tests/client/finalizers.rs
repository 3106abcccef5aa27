//! Finalizers come and go without hurting those of others.

use serde_json::json;
use watchkeeper_client::{Error, Outcome, Patch};
use watchkeeper_testkit::fixtures::{Widget, key};

use crate::world::World;

const MINE: &str = "demo.dev/mine";

#[tokio::test]
async fn adding_and_removing_twice_is_doing_it_once() {
    let world = World::start().await;
    let widget = world.widget("g").await;
    let added = world.client.add_finalizer(&widget, MINE).await.unwrap();
    assert_eq!(added.metadata.finalizers.as_deref(), Some(&[MINE.to_owned()][..]));
    let writes = world.writes();
    for object in [&widget, &*added.object] {
        assert_eq!(world.client.add_finalizer(object, MINE).await.unwrap().outcome, Outcome::Unchanged);
    }
    assert_eq!(world.writes(), writes);
    let removed = world.client.remove_finalizer(&widget, MINE).await.unwrap();
    assert!(removed.metadata.finalizers.as_deref().unwrap_or_default().is_empty());
    assert_eq!(world.client.remove_finalizer(&widget, MINE).await.unwrap().outcome, Outcome::Unchanged);
    assert_eq!(world.writes(), writes + 1);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_others_are_never_lost() {
    let world = World::start().await;
    let widget = world.widget("g").await;
    world.client.barrier::<Widget>().await.unwrap();
    let _held = world.hold_watches();
    let theirs = |list: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": list}}));
    let other = world.somebody_else();
    other.patch::<Widget>(&key("g"), theirs(&["x/one"])).await.unwrap();
    let added = world.client.add_finalizer(&widget, MINE).await.unwrap();
    assert_eq!(added.metadata.finalizers.as_deref().unwrap(), ["x/one", MINE]);
    other.patch::<Widget>(&key("g"), theirs(&["x/one", "x/two", MINE])).await.unwrap();
    let removed = world.client.remove_finalizer(&widget, MINE).await.unwrap();
    assert_eq!(removed.metadata.finalizers.as_deref().unwrap(), ["x/one", "x/two"]);
    other.patch::<Widget>(&key("g"), theirs(&["x/one"])).await.unwrap();
    let added = world.client.add_finalizer(&widget, MINE).await.unwrap();
    assert_eq!(added.metadata.finalizers.as_deref().unwrap(), ["x/one", MINE], "the list had become shorter");
}

#[tokio::test]
async fn another_object_of_the_same_name_is_left_alone() {
    let world = World::start().await;
    let widget = world.widget("g").await;
    world.client.delete(&widget).await.unwrap();
    let new = world.widget("g").await;
    let error = world.client.add_finalizer(&widget, MINE).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let live = world.client.live().get::<Widget>(&key("g")).await.unwrap().unwrap();
    assert_eq!(live.metadata.resource_version, new.metadata.resource_version);
}
