//! The store: lookups, indexes, the forms in which objects are held, several sources, shared informers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use support::*;
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{Follow, Key, Uid};
use watchkeeper_informer::{Informer, InformerMetrics, InformerSet, Object, Policy};

fn at(namespace: &str, name: &str) -> Key {
    Key::new(Some(namespace), name)
}

fn names(mut objects: Vec<Object<Thing>>) -> Vec<String> {
    objects.sort_by(|left, right| left.key().cmp(right.key()));
    objects.iter().map(|object| object.key().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn objects_are_found_by_key_namespace_and_owner() {
    let source = Memory::new();
    source.put_json(&at("shop", "a"), Some("owner-1"), r#""spec":{"value":1}"#);
    source.put_json(&at("shop", "b"), Some("owner-2"), r#""spec":{"value":2}"#);
    source.put_json(&at("bank", "c"), Some("owner-1"), r#""spec":{"value":3}"#);
    source.put(&Key::new(None, "d"), 4);
    let store = informer(&source).await.store();
    assert_eq!((store.len(), store.is_empty()), (4, false));
    assert_eq!(value(&store.get(&at("bank", "c")).unwrap()), 3);
    assert!(store.get(&at("bank", "a")).is_none() && !store.contains(&at("x", "y")));
    assert_eq!(names(store.in_namespace("shop")), ["shop/a", "shop/b"]);
    assert_eq!(names(store.in_namespace("none")), [""; 0]);
    assert_eq!(names(store.owned_by(&Uid::from("owner-1"))), ["bank/c", "shop/a"]);
    assert_eq!(names(store.list()), ["d", "bank/c", "shop/a", "shop/b"]);

    // The owner moves, an object goes: nothing of it stays behind.
    source.put_json(&at("shop", "a"), Some("owner-2"), r#""spec":{"value":1}"#);
    source.delete(&at("bank", "c"));
    settle().await;
    assert_eq!(names(store.owned_by(&Uid::from("owner-1"))), [""; 0]);
    assert_eq!(names(store.owned_by(&Uid::from("owner-2"))), ["shop/a", "shop/b"]);
    assert_eq!(store.namespaces(), ["shop"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_can_wait_for_what_the_store_will_show() {
    let source = Memory::new();
    let informer = informer(&source).await;
    let store = informer.store();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.until(|store| store.len() == 2).await }
    });
    source.put(&key("a"), 1);
    settle().await;
    assert!(!waiting.is_finished());
    source.put(&key("b"), 2);
    assert!(waiting.await.unwrap());
    assert!(store.until(|store| store.len() == 2).await, "asked at once, too");
    let in_vain = tokio::spawn({
        let store = store.clone();
        async move { store.until(|store| store.is_empty()).await }
    });
    settle().await;
    informer.stop().await;
    assert!(!in_vain.await.unwrap());
    assert!(!store.until(|store| store.is_empty()).await);
}

#[tokio::test(start_paused = true)]
async fn an_index_can_be_added_at_any_time_and_follows_every_change() {
    let source = Memory::new();
    (0..100).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = informer(&source).await;
    let store = informer.store();
    let by_remainder = store.index("remainder", |thing: &Object<Thing>| Ok([thing.get()?.spec.value % 10]));
    assert_eq!(by_remainder.get(&3).len(), 10);
    assert_eq!(by_remainder.count(&3), 10);
    source.put(&key("n3"), 4);
    source.put(&key("n200"), 3);
    source.delete(&key("n13"));
    settle().await;
    assert_eq!(by_remainder.count(&3), 9);
    assert_eq!(by_remainder.count(&4), 11);
    let mut values = by_remainder.values();
    values.sort_unstable();
    assert_eq!(values, (0..10).collect::<Vec<_>>());
    // Several values for one object, and none.
    let by_digit =
        store.index("digit", |thing: &Object<Thing>| Ok(thing.get()?.spec.value.to_string().into_bytes()));
    assert!(by_digit.get(&b'9').iter().all(|thing| value(thing).to_string().contains('9')));
    assert_eq!(by_digit.count(&b'x'), 0);
}

#[tokio::test(start_paused = true)]
async fn an_index_function_that_fails_or_panics_leaves_out_the_object_and_nothing_else() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = InformerMetrics::register(&mut registry);
    let source = Memory::new();
    (0..3).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = Informer::<Thing>::builder().metrics(&metrics).start(source.clone());
    informer.synced().await.unwrap();
    let store = informer.store();
    let index = store.index("picky", |thing: &Object<Thing>| match thing.get()?.spec.value {
        1 => Err("one is not welcome".into()),
        2 => panic!("two is worse"),
        value => Ok([value]),
    });
    assert_eq!((index.count(&0), index.count(&1), index.count(&2)), (1, 0, 0));
    source.put(&key("n1"), 7);
    source.put(&key("n0"), 2);
    settle().await;
    assert_eq!((index.count(&0), index.count(&7)), (0, 1));
    assert_eq!(store.len(), 3);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains(r#"watchkeeper_informer_index_failures_total{informer="memory"} 3"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn at_every_notification_store_and_indexes_show_the_change() {
    let source = Memory::new();
    let informer = informer(&source).await;
    let store = informer.store();
    let by_value = store.index("value", |thing: &Object<Thing>| Ok([thing.get()?.spec.value]));
    let mut changes = informer.subscribe("test");
    for round in 0..200 {
        source.put(&key(&format!("n{}", round % 7)), round);
        if round % 5 == 0 {
            source.delete(&key(&format!("n{}", round % 3)));
        }
        if round % 2 == 0 {
            continue;
        }
        settle().await;
        while let Some(change) = changes.try_next() {
            let held = store.get(&change.key);
            if let Some(old) = change.old.as_ref().filter(|_| change.new.is_none()) {
                assert!(held.as_ref().is_none_or(|held| !held.is_same_incarnation(old)), "{}", line(&change));
            }
            if let Some(new) = &change.new {
                assert_eq!(held.as_ref().map(Object::version), Some(new.version()));
                let found = by_value.get(&value(new));
                assert!(found.iter().any(|object| object.key() == new.key()), "{}", line(&change));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn however_objects_are_held_they_read_the_same() {
    let source = Memory::new();
    for n in 0..2_000 {
        source.put_json(
            &key(&format!("n{n}")),
            Some("owner"),
            &format!(r#""spec":{{"value":{n},"note":"the quick brown fox jumps over the lazy dog"}}"#),
        );
    }
    for policy in [Policy::Packed, Policy::Compressed, Policy::Typed] {
        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = InformerMetrics::register(&mut registry);
        let informer = Informer::<Thing>::builder().policy(policy).metrics(&metrics).start(source.clone());
        informer.synced().await.unwrap();
        source.put(&key("n0"), 0);
        settle().await;
        let mut values: Vec<_> = informer.store().list().iter().map(value).collect();
        values.sort_unstable();
        assert_eq!(values, (0..2_000).collect::<Vec<_>>());
        let object = informer.store().get(&key("n7")).unwrap();
        assert_eq!(object.metadata().unwrap().owner_references[0].uid, "owner");
        assert_eq!(object.json().is_some(), policy != Policy::Typed);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let held = text
            .lines()
            .find_map(|line| line.strip_prefix(r#"watchkeeper_informer_bytes{informer="memory"} "#));
        let held: usize = held.unwrap().parse().unwrap();
        let json: usize = source.documents().iter().map(|document| document.body.len()).sum();
        match policy {
            Policy::Compressed => assert!(held * 3 < json, "{held} of {json} bytes"),
            _ => assert_eq!(held, json),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_all_a_metadata_store_holds() {
    #[derive(serde::Deserialize)]
    struct Named {
        metadata: Name,
    }
    #[derive(serde::Deserialize)]
    struct Name {
        name: String,
    }
    let source = Memory::new();
    source.put_json(&key("a"), None, &format!(r#""spec":{{"value":1,"note":"{}"}}"#, "x".repeat(10_000)));
    let informer = Informer::<Named>::builder().policy(Policy::Metadata).start(source.clone());
    informer.synced().await.unwrap();
    let object = informer.store().get(&key("a")).unwrap();
    assert_eq!(object.get().unwrap().metadata.name, "a");
    let json = String::from_utf8(object.json().unwrap().into_owned()).unwrap();
    assert!(json.len() < 200 && !json.contains("spec"), "{json}");
}

#[tokio::test(start_paused = true)]
async fn several_readers_of_one_state_share_one_decode() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let (left, right) = (informer.store().get(&key("a")).unwrap(), informer.store().get(&key("a")).unwrap());
    assert!(Arc::ptr_eq(&left.get().unwrap(), &right.get().unwrap()));
    source.put(&key("a"), 2);
    settle().await;
    let newer = informer.store().get(&key("a")).unwrap();
    assert_eq!((value(&left), value(&newer)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_transform_is_applied_exactly_once() {
    for policy in [Policy::Packed, Policy::Typed, Policy::Compressed] {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let source = Memory::new();
        (0..5).for_each(|n| source.put(&key(&format!("n{n}")), n));
        let informer = Informer::<Thing>::builder()
            .policy(policy)
            .transform(move |thing: &mut Thing| {
                count.fetch_add(1, Ordering::Relaxed);
                thing.spec.value += 1_000;
            })
            .start(source.clone());
        informer.synced().await.unwrap();
        let mut changes = informer.subscribe("test");
        assert_eq!(
            drain(&mut changes).await,
            ["*+n0=1000", "*+n1=1001", "*+n2=1002", "*+n3=1003", "*+n4=1004"]
        );
        assert_eq!(calls.load(Ordering::Relaxed), 5);
        source.put(&key("n0"), 7);
        source.delete(&key("n1"));
        assert_eq!(drain(&mut changes).await, ["~n0=1000>1007", "-n1=1001"]);
        assert_eq!(calls.load(Ordering::Relaxed), 7);
        source.rewrite(|_| {});
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 7, "what has not changed is not transformed again");
    }
}

#[tokio::test(start_paused = true)]
async fn several_sources_make_one_store_and_come_and_go_at_run_time() {
    let (shop, bank) = (Memory::new(), Memory::new());
    shop.put(&at("shop", "a"), 1);
    bank.put(&at("bank", "b"), 2);
    let informer = informer(&shop).await;
    let mut changes = informer.subscribe("test");
    assert_eq!(drain(&mut changes).await, ["*+a=1"]);
    let id = informer.add_source(bank.clone());
    informer.synced().await.unwrap();
    assert_eq!(drain(&mut changes).await, ["+b=2"]);

    // A new snapshot of one says nothing about the other.
    shop.rewrite(|shop| shop.put(&at("shop", "c"), 3));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(drain(&mut changes).await, ["+c=3"]);

    // Nor may it touch what the other has.
    shop.put(&at("bank", "b"), 100);
    assert!(drain(&mut changes).await.is_empty());
    assert_eq!(value(&informer.store().get(&at("bank", "b")).unwrap()), 2);

    informer.remove_source(id).await;
    assert_eq!(drain(&mut changes).await, ["-b=2"]);
    assert_eq!((bank.open_feeds(), informer.status().len()), (0, 1));
    let id = informer.add_source(bank.clone());
    settle().await;
    assert_eq!(drain(&mut changes).await, ["+b=2"]);
    informer.remove_source(id).await;
    assert!(informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn an_informer_set_shares_informers_and_lets_them_go() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let set = InformerSet::default();
    assert!(set.is_empty());
    let first = set.informer::<Thing>(source.clone());
    let second = set.informer::<Thing>(source.clone());
    first.synced().await.unwrap();
    assert_eq!((set.len(), source.open_feeds(), second.store().len()), (1, 1, 1));
    let typed =
        set.informer_with::<serde_json::Value>(source.clone(), |builder| builder.policy(Policy::Typed));
    typed.synced().await.unwrap();
    assert_eq!((set.len(), source.open_feeds()), (2, 2));
    drop((first, typed));
    settle().await;
    assert_eq!((set.len(), source.open_feeds()), (1, 1));
    drop(second);
    settle().await;
    assert_eq!((set.len(), source.open_feeds()), (0, 0));
    set.informer::<Thing>(source.clone()).synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_of_a_source_without_uids_and_versions_follows_it_all_the_same() {
    struct Bare(Memory);
    impl watchkeeper_core::Source for Bare {
        fn name(&self) -> &str {
            "bare"
        }
        fn capabilities(&self) -> watchkeeper_core::Capabilities {
            self.0.capabilities()
        }
        fn open(&self, start: watchkeeper_core::Start) -> watchkeeper_core::Feed {
            use futures_util::StreamExt;
            Box::pin(self.0.open(start).map(|event| {
                event.map(|event| match event {
                    watchkeeper_core::Event::Item(mut document) => {
                        document.header.uid = None;
                        document.header.version = watchkeeper_core::Version::from("");
                        watchkeeper_core::Event::Item(document)
                    }
                    other => other,
                })
            }))
        }
    }
    let source = Memory::following(Follow::Poll(Duration::from_secs(10)));
    source.put(&key("a"), 1);
    let informer = Informer::<Thing>::builder().start(Bare(source.clone()));
    informer.synced().await.unwrap();
    source.put(&key("a"), 2);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(value(&informer.store().get(&key("a")).unwrap()), 2);
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_panics_costs_the_object_it_panics_at() {
    for policy in [Policy::Packed, Policy::Typed] {
        let source = Memory::new();
        (0..5).for_each(|n| source.put(&key(&format!("n{n}")), n));
        let informer = Informer::<Thing>::builder()
            .policy(policy)
            .transform(|thing: &mut Thing| assert_ne!(thing.spec.value, 3, "not three"))
            .start(source.clone());
        informer.synced().await.unwrap();
        assert_eq!(informer.store().len(), 4);
        source.put(&key("n3"), 30);
        source.put(&key("n4"), 3);
        settle().await;
        assert_eq!(value(&informer.store().get(&key("n3")).unwrap()), 30);
        assert_eq!(value(&informer.store().get(&key("n4")).unwrap()), 4, "the last good state");
    }
}
