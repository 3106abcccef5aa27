//! Conditions and the rest of a status.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use watchkeeper_client::{Cache, Client, Error, Outcome, Patch, condition, not_ready, ready};
use watchkeeper_testkit::fixtures::{Widget, key};

use crate::world::World;

#[tokio::test]
async fn a_condition_is_written_once_and_its_time_moves_with_its_status() {
    let world = World::bare().await;
    let seconds = Arc::new(AtomicU64::new(1_700_000_000));
    let clock = Arc::clone(&seconds);
    let time = move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst));
    let client = Client::builder(world.env.connection()).clock(time).build();
    client.declare(Cache::of::<Widget>()).unwrap();
    client.synced().await.unwrap();
    let widget = client.create(&crate::world::widget("g", "hello")).await.unwrap().into_object();

    let first = client.status(&widget).condition(ready("Written")).observed_generation().await.unwrap();
    assert_eq!(first.outcome, Outcome::Changed);
    let status = first.status.clone().unwrap();
    assert_eq!(status.observed_generation, Some(1));
    let is = &status.conditions[0];
    assert_eq!((is.type_.as_str(), is.status.as_str(), is.reason.as_str()), ("Ready", "True", "Written"));
    assert_eq!((is.observed_generation, is.last_transition_time.0.as_second()), (Some(1), 1_700_000_000));

    seconds.fetch_add(60, Ordering::SeqCst);
    let writes = world.writes();
    for object in [&widget, &*first.object] {
        let again = client.status(object).condition(ready("Written")).observed_generation().await.unwrap();
        assert_eq!(again.outcome, Outcome::Unchanged);
    }
    assert_eq!(world.writes(), writes, "nothing has moved, nothing is sent");

    let reason = client.status(&widget).condition(ready("Rewritten")).await.unwrap();
    let is = &reason.status.as_ref().unwrap().conditions[0];
    assert_eq!((is.reason.as_str(), is.last_transition_time.0.as_second()), ("Rewritten", 1_700_000_000));
    let flipped = client.status(&widget).condition(not_ready("Gone", "the page is gone")).await.unwrap();
    let is = &flipped.status.as_ref().unwrap().conditions[0];
    assert_eq!(
        (is.message.as_str(), is.last_transition_time.0.as_second()),
        ("the page is gone", 1_700_000_060)
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_wrote_into_the_status_stays() {
    let world = World::start().await;
    let widget = world.widget("g").await;
    world.client.barrier::<Widget>().await.unwrap();
    let _held = world.hold_watches();
    let other = world.somebody_else();
    other.status(&widget).condition(condition("Theirs").is_true("Yes")).await.unwrap();
    let mut called = 0;
    let written = world
        .client
        .status(&widget)
        .condition(ready("Mine"))
        .set(|widget| {
            called += 1;
            widget.status.get_or_insert_default().seen += 1;
        })
        .await
        .unwrap();
    let status = written.status.as_ref().unwrap();
    let types: Vec<_> = status.conditions.iter().map(|is| is.type_.as_str()).collect();
    assert_eq!((types, status.seen), (vec!["Theirs", "Ready"], 1));
    assert_eq!(called, 2, "the first attempt met a conflict");
}

#[tokio::test]
async fn the_generation_is_that_of_the_object_that_was_looked_at() {
    let world = World::start().await;
    let looked_at = world.widget("g").await;
    let patch = Patch::Merge(json!({"spec": {"text": "newer"}}));
    world.client.patch::<Widget>(&key("g"), patch).await.unwrap();
    let written =
        world.client.status(&looked_at).condition(ready("Seen")).observed_generation().await.unwrap();
    assert_eq!(written.metadata.generation, Some(2));
    let status = written.status.as_ref().unwrap();
    assert_eq!((status.observed_generation, status.conditions[0].observed_generation), (Some(1), Some(1)));
    assert_eq!(written.spec.text, "newer", "only the status is written");
}

#[tokio::test]
async fn a_type_that_cannot_hold_a_condition_is_told_and_an_object_that_is_gone_is_not_found() {
    let world = World::start().await;
    let map = world.client.create(&crate::world::config_map("a", "1")).await.unwrap().into_object();
    let writes = world.writes();
    let error = world.client.status::<ConfigMap>(&map).condition(ready("X")).await.unwrap_err();
    assert!(matches!(error, Error::Incomplete { .. }), "{error}");
    assert_eq!(world.writes(), writes);
    let widget = world.widget("g").await;
    world.client.delete(&widget).await.unwrap();
    world.widget("g").await;
    let error = world.client.status(&widget).condition(ready("X")).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "another object of the same name: {error}");
}

#[tokio::test]
async fn a_cache_that_holds_only_a_part_does_not_make_a_status_lose_the_rest() {
    let world = World::bare().await;
    world.client.declare(Cache::of::<Widget>().drop("/status")).unwrap();
    world.client.synced().await.unwrap();
    let widget = world.widget("g").await;
    let theirs =
        world.somebody_else().status(&widget).condition(condition("Theirs").is_true("Yes")).await.unwrap();
    let version = watchkeeper_core::Version::from(theirs.metadata.resource_version.as_deref().unwrap());
    let store = world.client.informer::<Widget>().unwrap().store();
    store.until(|store| store.get(&key("g")).is_some_and(|seen| *seen.version() == version)).await;
    let seen = world.client.get::<Widget>(&key("g")).await.unwrap().unwrap();
    assert_eq!(seen.status, None);
    let written = world.client.status(&*seen).condition(ready("Mine")).await.unwrap();
    assert_eq!(written.status.as_ref().unwrap().conditions.len(), 2);
}
