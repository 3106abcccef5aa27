//! Read, change, send the difference.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use watchkeeper_client::{Error, Outcome, Patch};
use watchkeeper_testkit::Outcome as Fate;
use watchkeeper_testkit::fixtures::key;

use crate::world::{World, config_map, data};

fn set(value: &'static str) -> impl FnMut(&mut ConfigMap) + Send {
    move |map| drop(map.data.get_or_insert_default().insert("k".into(), value.into()))
}

#[tokio::test]
async fn only_a_difference_is_sent() {
    let world = World::start().await;
    world.client.create(&config_map("a", "1")).await.unwrap();
    let writes = world.writes();
    assert_eq!(world.client.modify(&key("a"), set("1")).await.unwrap().outcome, Outcome::Unchanged);
    assert_eq!(world.writes(), writes);
    let changed = world.client.modify(&key("a"), set("2")).await.unwrap();
    assert_eq!((changed.outcome, data(&changed)), (Outcome::Changed, "2"));
    assert_eq!(world.writes(), writes + 1);
    assert!(matches!(world.client.modify(&key("none"), set("2")).await, Err(Error::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_met_with_the_newest_state_and_nothing_of_others_is_undone() {
    let world = World::start().await;
    world.client.create(&config_map("a", "1")).await.unwrap();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let _held = world.hold_watches();
    let theirs = Patch::Merge(json!({"data": {"other": "theirs", "count": "1"}}));
    world.somebody_else().patch::<ConfigMap>(&key("a"), theirs).await.unwrap();
    let count = |map: &mut ConfigMap| {
        let data = map.data.get_or_insert_default();
        let next = data.get("count").map_or(0, |count| count.parse::<u32>().unwrap()) + 1;
        data.insert("count".into(), next.to_string());
    };
    let written = world.client.modify(&key("a"), count).await.unwrap();
    let data = written.data.as_ref().unwrap();
    assert_eq!((data["count"].as_str(), data["other"].as_str(), data["k"].as_str()), ("2", "theirs", "1"));
}

#[tokio::test]
async fn a_conflict_that_does_not_end_is_the_callers() {
    let world = World::start().await;
    world.client.create(&config_map("a", "1")).await.unwrap();
    let _always = world.env.fault(|call| {
        if call.verb == "patch" { Fate::reject(409, "Conflict", "somebody was faster") } else { Fate::pass() }
    });
    let error = world.client.modify(&key("a"), set("2")).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict { .. }) && error.is_transient(), "{error}");
    assert_eq!(world.env.count(|seen| seen.call.verb == "patch"), 5);
}

#[tokio::test]
async fn a_kind_that_is_not_cached_can_be_modified_too() {
    let world = World::bare().await;
    world.client.create(&config_map("a", "1")).await.unwrap();
    assert_eq!(data(&world.client.modify(&key("a"), set("2")).await.unwrap()), "2");
}
