//! What was written is seen at once, and hides nothing that others write.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use watchkeeper_client::{Cache, Client, Error, Patch};
use watchkeeper_core::Version;
use watchkeeper_testkit::fixtures::{Widget, key};
use watchkeeper_testkit::{Outcome, eventually};

use crate::world::{World, config_map, data, from, widget};

fn store_shows(world: &World, name: &str) -> bool {
    world.client.informer::<ConfigMap>().unwrap().store().contains(&key(name))
}

#[tokio::test(start_paused = true)]
async fn a_created_object_is_there_before_the_cache_shows_it() {
    let world = World::start().await;
    let held = world.hold_watches();
    let created = world.client.create(&config_map("a", "1")).await.unwrap().into_object();
    assert!(!store_shows(&world, "a"), "the cache is late, as it should be");
    let seen = world.map("a").await.unwrap();
    assert_eq!(seen.metadata.uid, created.metadata.uid);
    assert!(seen.metadata.managed_fields.is_none(), "reduced as the cache reduces");
    assert_eq!(world.maps().await, ["a"]);
    assert_eq!(world.live_reads("configmaps"), 0);
    held.lift();
    world.client.barrier::<ConfigMap>().await.unwrap();
    assert!(store_shows(&world, "a"));
    assert_eq!(world.maps().await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_update_is_seen_by_get_and_list() {
    let world = World::start().await;
    let created = world.client.create(&config_map("a", "1")).await.unwrap().into_object();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let _held = world.hold_watches();
    let mut changed = created;
    changed.data.as_mut().unwrap().insert("k".into(), "2".into());
    world.client.update(&changed).await.unwrap();
    assert_eq!(data(&world.map("a").await.unwrap()), "2");
    let list = world.client.list::<ConfigMap>().matching(|map| map.metadata.name.as_deref() == Some("a"));
    assert_eq!(data(&list.await.unwrap()[0]), "2");
    let patched = world
        .client
        .patch::<ConfigMap>(&key("a"), Patch::Merge(json!({"data": {"k": "3"}})))
        .await
        .unwrap()
        .into_object();
    assert_eq!(data(&patched), "3");
    assert_eq!(data(&world.map("a").await.unwrap()), "3");
    assert_eq!(world.live_reads("configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_gone_before_the_cache_knows() {
    let world = World::start().await;
    let created = world.client.create(&config_map("a", "1")).await.unwrap().into_object();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let held = world.hold_watches();
    assert!(world.client.delete(&created).await.unwrap(), "gone at once");
    assert!(store_shows(&world, "a"));
    assert!(world.map("a").await.is_none());
    assert!(world.maps().await.is_empty());
    let again = world.client.create(&config_map("a", "2")).await.unwrap().into_object();
    assert_ne!(again.metadata.uid, created.metadata.uid);
    assert_eq!(data(&world.map("a").await.unwrap()), "2");
    held.lift();
    world.client.barrier::<ConfigMap>().await.unwrap();
    assert_eq!(data(&world.map("a").await.unwrap()), "2");
}

#[tokio::test(start_paused = true)]
async fn an_object_created_and_deleted_unseen_does_not_come_back() {
    let world = World::start().await;
    let held = world.hold_watches();
    let created = world.client.create(&config_map("a", "1")).await.unwrap().into_object();
    world.client.delete(&created).await.unwrap();
    assert!(world.map("a").await.is_none());
    world.client.create(&config_map("end", "1")).await.unwrap();
    held.lift();
    // Whatever the cache goes through until it has caught up, reads never show the object again.
    let mut changes = world.client.informer::<ConfigMap>().unwrap().subscribe("test");
    loop {
        let change = changes.next().await.unwrap();
        assert!(world.map("a").await.is_none(), "shown again after {} {}", change.kind(), change.key);
        if change.key == key("end") {
            break;
        }
    }
    assert!(store_shows(&world, "end") && !store_shows(&world, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_delete_by_key_is_seen_too() {
    let world = World::start().await;
    world.client.create(&config_map("a", "1")).await.unwrap();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let _held = world.hold_watches();
    world.client.delete_key::<ConfigMap>(&key("a")).await.unwrap();
    assert!(store_shows(&world, "a"));
    assert!(world.map("a").await.is_none());
    assert!(matches!(world.client.delete_key::<ConfigMap>(&key("a")).await, Err(Error::NotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_waits_for_a_finalizer_shows_the_object_as_it_waits() {
    let world = World::start().await;
    let mut map = config_map("a", "1");
    map.metadata.finalizers = Some(vec!["demo.dev/hold".into()]);
    let created = world.client.create(&map).await.unwrap().into_object();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let held = world.hold_watches();
    assert!(!world.client.delete(&created).await.unwrap(), "it stays for now");
    let waiting = world.map("a").await.unwrap();
    assert!(waiting.metadata.deletion_timestamp.is_some());
    world.client.remove_finalizer(&*waiting, "demo.dev/hold").await.unwrap();
    assert!(store_shows(&world, "a"));
    assert!(world.map("a").await.is_none(), "the last finalizer is gone, and so is the object");
    held.lift();
    eventually(|| async { !store_shows(&world, "a") }).await;
    assert!(world.map("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_write_and_an_apply_are_seen() {
    let world = World::start().await;
    let created = world.widget("g").await;
    world.client.barrier::<Widget>().await.unwrap();
    let _held = world.hold_watches();
    world.client.status(&created).set(|g| g.status.get_or_insert_default().seen = 3).await.unwrap();
    let seen = world.client.get::<Widget>(&key("g")).await.unwrap().unwrap();
    assert_eq!(seen.status.as_ref().unwrap().seen, 3);
    world.client.apply(&widget("g", "bye")).await.unwrap();
    let seen = world.client.get::<Widget>(&key("g")).await.unwrap().unwrap();
    assert_eq!((seen.spec.text.as_str(), seen.status.as_ref().unwrap().seen), ("bye", 3));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_cache_selects_away_is_seen_as_the_cache_will_show_it() {
    let world = World::bare().await;
    world.client.declare(Cache::of::<ConfigMap>().labels("app=web")).unwrap();
    world.client.synced().await.unwrap();
    let mut map = config_map("a", "1");
    world.client.create(&map).await.unwrap();
    assert!(world.map("a").await.is_none(), "it does not match");
    map.metadata.name = Some("b".into());
    map.metadata.labels = Some([("app".into(), "web".into())].into());
    world.client.create(&map).await.unwrap();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let _held = world.hold_watches();
    let relabel = Patch::Merge(json!({"metadata": {"labels": {"app": "db"}}}));
    world.client.patch::<ConfigMap>(&key("b"), relabel).await.unwrap();
    assert!(world.map("b").await.is_none(), "it matches no more");
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_makes_reads_go_to_the_api_until_it_is_clear() {
    let world = World::start().await;
    let held = world.hold_watches();
    let lose = world.env.fault(|call| if call.verb == "create" { Outcome::lose() } else { Outcome::pass() });
    let error = world.client.create(&config_map("a", "1")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    lose.lift();
    assert_eq!(data(&world.map("a").await.unwrap()), "1", "it was done, and the API says so");
    assert_eq!(world.live_reads("configmaps"), 1);
    assert_eq!(data(&world.map("a").await.unwrap()), "1");
    assert_eq!(world.live_reads("configmaps"), 1, "once is enough");
    let refuse =
        world.env.fault(|call| if call.verb == "create" { Outcome::refuse() } else { Outcome::pass() });
    assert!(world.client.create(&config_map("b", "1")).await.is_err());
    refuse.lift();
    assert_eq!(world.maps().await, ["a"], "it was not done, and the API says so");
    assert_eq!(world.live_reads("configmaps"), 2);
    assert!(world.map("b").await.is_none());
    assert_eq!(world.live_reads("configmaps"), 2);
    held.lift();
    world.client.barrier::<ConfigMap>().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_its_caller_gave_up_on_is_doubted() {
    let world = World::start().await;
    let _held = world.hold_watches();
    let late = std::time::Duration::from_secs(5);
    let slow = world.env.fault(move |call| {
        if call.verb == "create" { Outcome::pass().answered_late(late) } else { Outcome::pass() }
    });
    let given_up =
        tokio::time::timeout(late / 5, world.client.create(&config_map("a", "1")).into_future()).await;
    assert!(given_up.is_err());
    slow.lift();
    assert_eq!(data(&world.map("a").await.unwrap()), "1");
    assert_eq!(world.live_reads("configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_others_write_is_never_hidden() {
    let world = World::start().await;
    let other = world.somebody_else();
    world.client.create(&config_map("changed", "1")).await.unwrap();
    world.client.create(&config_map("deleted", "1")).await.unwrap();
    world.client.create(&config_map("replaced", "1")).await.unwrap();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let held = world.hold_watches();
    for name in ["changed", "deleted", "replaced"] {
        let mine = Patch::Merge(json!({"data": {"k": "mine"}}));
        world.client.patch::<ConfigMap>(&key(name), mine).await.unwrap();
    }
    let theirs = Patch::Merge(json!({"data": {"k": "theirs"}}));
    other.patch::<ConfigMap>(&key("changed"), theirs).await.unwrap();
    other.delete_key::<ConfigMap>(&key("deleted")).await.unwrap();
    other.delete_key::<ConfigMap>(&key("replaced")).await.unwrap();
    let new = other.create(&config_map("replaced", "new")).await.unwrap().into_object();
    assert_eq!(
        data(&world.map("changed").await.unwrap()),
        "mine",
        "the cache is late, this is the newest we know"
    );
    held.lift();
    eventually(|| async {
        let changed = world.map("changed").await.is_some_and(|map| data(&map) == "theirs");
        let replaced = world.map("replaced").await.is_some_and(|map| map.metadata.uid == new.metadata.uid);
        changed && replaced && world.map("deleted").await.is_none()
    })
    .await;
    assert_eq!(world.live_reads("configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_scale_write_is_read_from_the_api_until_the_cache_has_it() {
    let world = World::bare().await;
    world.client.declare(Cache::of::<Deployment>()).unwrap();
    world.client.synced().await.unwrap();
    let web: Deployment = from(json!({"metadata": {"name": "web", "namespace": "default"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}));
    world.client.create(&web).await.unwrap();
    world.client.barrier::<Deployment>().await.unwrap();
    let held = world.hold_watches();
    let scale = world.client.subresource::<Deployment>(&key("web"), "scale");
    assert_eq!(scale.get().await.unwrap()["spec"]["replicas"], 1);
    scale.patch(Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
    let replicas = || async {
        let web = world.client.get::<Deployment>(&key("web")).await.unwrap().unwrap();
        web.spec.replicas.unwrap()
    };
    assert_eq!(replicas().await, 3);
    held.lift();
    world.client.barrier::<Deployment>().await.unwrap();
    assert_eq!(replicas().await, 3);
    let all = world.client.list::<Deployment>().await.unwrap();
    assert_eq!(all[0].spec.replicas, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_writes_is_remembered_within_bounds_and_never_forgotten() {
    let world = World::start().await;
    let held = world.hold_watches();
    for number in 0..4200 {
        world.client.create(&config_map(&format!("m{number:04}"), "1")).await.unwrap();
    }
    assert!(world.map("m0000").await.is_some(), "what was forgotten is asked of the API");
    assert!(world.map("m4199").await.is_some());
    assert!(world.map("none").await.is_none());
    assert_eq!(world.maps().await.len(), 4200);
    held.lift();
    world.client.barrier::<ConfigMap>().await.unwrap();
    let before = world.env.request_count();
    assert_eq!(world.maps().await.len(), 4200);
    assert!(world.map("m0000").await.is_some());
    assert_eq!(world.env.request_count(), before, "the cache has caught up with all of it");
}

#[tokio::test]
async fn own_states_are_known_again() {
    let world = World::start().await;
    let mine = world.client.create(&config_map("a", "1")).await.unwrap().into_object();
    let version = |map: &ConfigMap| Version::from(map.metadata.resource_version.as_deref().unwrap());
    assert!(world.client.wrote::<ConfigMap>(&key("a"), &version(&mine)));
    assert!(!world.client.wrote::<ConfigMap>(&key("b"), &version(&mine)));
    let patch = Patch::Merge(json!({"data": {"k": "2"}}));
    let theirs = world.somebody_else().patch::<ConfigMap>(&key("a"), patch).await.unwrap().into_object();
    assert!(!world.client.wrote::<ConfigMap>(&key("a"), &version(&theirs)));
    assert!(!world.client.wrote::<Widget>(&key("a"), &version(&mine)));
}

#[tokio::test(start_paused = true)]
async fn clones_share_what_was_written_and_a_dry_run_writes_nothing() {
    let world = World::start().await;
    let _held = world.hold_watches();
    world.client.dry_run().create(&config_map("dry", "1")).await.unwrap();
    assert!(world.map("dry").await.is_none());
    world.client.manager("another").create(&config_map("a", "1")).await.unwrap();
    assert!(world.map("a").await.is_some());
    let (client, leads) = (world.client.clone(), Arc::new(std::sync::atomic::AtomicBool::new(true)));
    let lease = Arc::clone(&leads);
    let guarded: Client =
        client.guarded_by(Arc::new(move || lease.load(std::sync::atomic::Ordering::SeqCst)));
    guarded.create(&config_map("b", "1")).await.unwrap();
    leads.store(false, std::sync::atomic::Ordering::SeqCst);
    let writes = world.writes();
    let error = guarded.create(&config_map("c", "1")).await.unwrap_err();
    assert!(matches!(error, Error::NotLeading { .. }), "{error}");
    assert!(matches!(guarded.apply(&config_map("c", "1")).await, Err(Error::NotLeading { .. })));
    assert!(matches!(guarded.delete_key::<ConfigMap>(&key("b")).await, Err(Error::NotLeading { .. })));
    assert_eq!(world.writes(), writes, "nothing was sent");
    assert!(
        guarded.get::<ConfigMap>(&key("b")).await.unwrap().is_some(),
        "reads go on, and nothing is in doubt"
    );
    assert_eq!(world.live_reads("configmaps"), 0);
}
