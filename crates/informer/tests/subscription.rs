//! What a subscriber sees: in order, complete, bounded.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use support::*;
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{Change, Delivery, Document, Error, Event, Projection, Version};
use watchkeeper_informer::{Informer, Object, Subscription};

#[tokio::test(start_paused = true)]
async fn what_was_there_comes_first_and_marked() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.put(&key("b"), 2);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    source.put(&key("c"), 3);
    assert_eq!(drain(&mut changes).await, ["*+a=1", "*+b=2", "+c=3"]);
    source.put(&key("a"), 10);
    source.delete(&key("b"));
    assert_eq!(drain(&mut changes).await, ["~a=1>10", "-b=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_came_before_the_first_snapshot_sees_it_as_initial() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.refuse_next(Error::Denied("not yet".into()));
    let informer = Informer::<Thing>::builder().start(source.clone());
    let mut changes = informer.subscribe("early");
    let synced = tokio::spawn(changes.synced());
    assert!(drain(&mut changes).await.is_empty());
    assert!(!synced.is_finished());
    tokio::time::sleep(Duration::from_secs(2)).await;
    source.put(&key("b"), 2);
    assert_eq!(drain(&mut changes).await, ["*+a=1", "+b=2"]);
    assert!(synced.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn being_synced_is_each_subscribers_own_affair() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.put(&key("b"), 1);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("slow");
    let synced = tokio::spawn(changes.synced());
    settle().await;
    assert!(informer.is_synced() && !synced.is_finished());
    changes.next().await;
    changes.next().await;
    settle().await;
    assert!(!synced.is_finished(), "the last one may still be worked on");
    // What is initial can also go away unseen.
    assert!(tokio::time::timeout(Duration::ZERO, changes.next()).await.is_err());
    assert!(synced.await.unwrap());

    let mut changes = informer.subscribe("another");
    let synced = tokio::spawn(changes.synced());
    source.delete(&key("a"));
    source.delete(&key("b"));
    source.put(&key("c"), 1);
    assert_eq!(drain(&mut changes).await, ["+c=1"]);
    assert!(synced.await.unwrap());

    let changes = informer.subscribe("none");
    let synced = changes.synced();
    drop(changes);
    assert!(!synced.await, "nobody will see it now");
}

#[tokio::test(start_paused = true)]
async fn changes_that_wait_become_one() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("slow");
    drain(&mut changes).await;
    for value in 2..100 {
        source.put(&key("a"), value);
        source.put(&key("b"), value);
        settle().await;
    }
    assert_eq!(drain(&mut changes).await, ["~a=1>99", "+b=99"]);

    // It comes and goes unseen.
    source.put(&key("c"), 1);
    settle().await;
    source.delete(&key("c"));
    // Of an object that was seen, the delete has the last state.
    source.put(&key("b"), 100);
    settle().await;
    source.delete(&key("b"));
    assert_eq!(drain(&mut changes).await, ["-b=100"]);
}

#[tokio::test(start_paused = true)]
async fn delete_and_recreate_are_two_changes_however_late_they_are_seen() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("slow");
    drain(&mut changes).await;
    for value in 2..5 {
        source.delete(&key("a"));
        source.put(&key("a"), value);
        settle().await;
    }
    assert_eq!(drain(&mut changes).await, ["-a=1", "+a=4"]);

    source.delete(&key("a"));
    source.put(&key("a"), 5);
    settle().await;
    let gone = changes.next().await.unwrap();
    assert_eq!(line(&gone), "-a=4");
    source.delete(&key("a"));
    assert!(drain(&mut changes).await.is_empty(), "the second one was never seen");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_and_comes_back_as_the_same_is_one_change() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("slow");
    drain(&mut changes).await;
    let state = |version: u64, value: u64| {
        let json = format!(
            r#"{{"metadata":{{"name":"a","namespace":"shop","uid":"u-1","resourceVersion":"{version}"}},"spec":{{"value":{value}}}}}"#
        );
        Document::read(json.as_bytes(), &Projection::default()).unwrap()
    };
    // It leaves the selector: the last state that matched, at the version in which it left.
    source.inject(&Event::Delete { document: state(2, 1), position: Some(Version::from(2)) });
    settle().await;
    source.inject(&Event::Put { document: state(3, 3), position: Some(Version::from(3)) });
    assert_eq!(drain(&mut changes).await, ["~a=1>3"]);
    source.inject(&Event::Delete { document: state(4, 3), position: Some(Version::from(4)) });
    assert_eq!(drain(&mut changes).await, ["-a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_resync_shows_everything_again_and_asks_nobody() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("resyncing").resync(Duration::from_secs(60));
    let mut quiet = informer.subscribe("quiet");
    drain(&mut changes).await;
    drain(&mut quiet).await;
    for _ in 0..3 {
        let change = tokio::time::timeout(Duration::from_secs(61), changes.next()).await.unwrap().unwrap();
        assert_eq!(line(&change), "=~a=1>1");
    }
    // A real change is not doubled by a resync that falls due while it waits.
    source.put(&key("a"), 2);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(drain(&mut changes).await, ["~a=1>2"]);
    assert_eq!(drain(&mut quiet).await, ["~a=1>2"]);
    assert_eq!(source.opened().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_counted_and_goes_on() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
    let source = Memory::new();
    (0..10).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = Informer::<Thing>::builder().metrics(&metrics).start(source.clone());
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let handler = informer.subscribe("shaky").handle(move |change| {
        let count = Arc::clone(&count);
        async move {
            assert_ne!(change.key.name(), "n5", "I do not like five");
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(handler.synced().await);
    assert_eq!(handled.load(Ordering::Relaxed), 9);
    source.put(&key("n5"), 50);
    source.put(&key("n6"), 60);
    settle().await;
    assert_eq!(handled.load(Ordering::Relaxed), 10);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let line = r#"watchkeeper_subscriber_panics_total{informer="memory",subscriber="shaky"} 2"#;
    assert!(text.contains(line), "{text}");
}

#[tokio::test(start_paused = true)]
async fn stopping_a_handler_waits_for_the_call_that_runs_and_makes_no_other() {
    let source = Memory::new();
    (0..10).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = informer(&source).await;
    let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begin, end) = (Arc::clone(&begun), Arc::clone(&done));
    let handler = informer.subscribe("slow").handle(move |_| {
        let (begin, end) = (Arc::clone(&begin), Arc::clone(&end));
        async move {
            begin.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(10)).await;
            end.fetch_add(1, Ordering::Relaxed);
        }
    });
    tokio::time::sleep(Duration::from_secs(15)).await;
    handler.stop().await;
    assert_eq!((begun.load(Ordering::Relaxed), done.load(Ordering::Relaxed)), (2, 2));
    source.put(&key("n0"), 100);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(begun.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_delays_nobody() {
    let source = Memory::new();
    (0..100).for_each(|n| source.put(&key(&format!("n{n}")), 0));
    let informer = informer(&source).await;
    let _stalled = informer.subscribe("stalled");
    let mut quick = informer.subscribe("quick");
    drain(&mut quick).await;
    for value in 1..100 {
        (0..100).for_each(|n| source.put(&key(&format!("n{n}")), value));
        assert_eq!(drain(&mut quick).await.len(), 100);
    }
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_subscriber_that_has_stalled_is_shown() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
    let source = Memory::new();
    let informer = Informer::<Thing>::builder().metrics(&metrics).start(source.clone());
    informer.synced().await.unwrap();
    let stalled = informer.subscribe("stalled");
    for value in 0..10 {
        (0..5).for_each(|n| source.put(&key(&format!("n{n}")), value));
    }
    settle().await;
    let shows = |line: &str| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(text.contains(line), "{text}");
    };
    shows(r#"watchkeeper_subscriber_pending{informer="memory",subscriber="stalled"} 5"#);
    shows(r#"watchkeeper_subscriber_coalesced_total{informer="memory",subscriber="stalled"} 45"#);
    drop(stalled);
    shows(r#"watchkeeper_subscriber_pending{informer="memory",subscriber="stalled"} 0"#);
}

#[tokio::test(start_paused = true)]
async fn the_delivery_of_a_stopped_informer_ends() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    informer.stop().await;
    assert_eq!(line(&changes.next().await.unwrap()), "*+a=1");
    assert!(changes.next().await.is_none());
    assert_eq!(source.open_feeds(), 0);
    assert_eq!(informer.store().len(), 1, "it can still be read");
}

#[tokio::test(start_paused = true)]
async fn when_the_last_handle_is_dropped_everything_is_released() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let first = informer(&source).await;
    let store = first.store();
    let object = store.get(&key("a")).unwrap();
    let changes = first.subscribe("test");
    drop(first);
    drop(changes);
    source.put(&key("a"), 2);
    settle().await;
    assert_eq!(value(&store.get(&key("a")).unwrap()), 2, "a store keeps its informer");
    drop(store);
    settle().await;
    assert_eq!(source.open_feeds(), 0);
    assert_eq!(value(&object), 1, "an object keeps only itself");

    let changes = informer(&source).await.subscribe("test");
    settle().await;
    assert_eq!(source.open_feeds(), 1, "a subscription keeps its informer");
    drop(changes);
    settle().await;
    assert_eq!(source.open_feeds(), 0);
}

/// What a subscriber knows, and whether each change fits to it.
#[derive(Default)]
struct Witness {
    known: BTreeMap<String, (String, u64)>,
    initial_over: bool,
}

impl Witness {
    fn see(&mut self, change: &Change<Object<Thing>>) -> Result<(), TestCaseError> {
        let name = change.key.name().to_owned();
        let state =
            |object: &Object<Thing>| (object.uid().unwrap().to_string(), object.version().number().unwrap());
        let (old, new) = (change.old.as_ref().map(state), change.new.as_ref().map(state));
        let known = self.known.get(&name).cloned();
        match (&old, &new) {
            (None, Some(_)) => prop_assert_eq!(&known, &None, "an addition of what is known"),
            (Some(old), Some(new)) => {
                prop_assert_eq!(Some(&old.0), known.as_ref().map(|known| &known.0), "of another incarnation");
                prop_assert_eq!(&old.0, &new.0);
                prop_assert!(known.unwrap().1 <= old.1 && old.1 < new.1, "states out of order");
            }
            (Some(old), None) => {
                let known = known.expect("a delete of what is not known");
                prop_assert_eq!(&old.0, &known.0, "a delete of another incarnation");
                prop_assert!(old.1 >= known.1, "a delete with an older state");
            }
            (None, None) => prop_assert!(false, "a change without a state"),
        }
        if change.delivery == Delivery::Initial {
            prop_assert!(!self.initial_over, "initial after live");
            prop_assert_eq!(old, None);
        } else {
            self.initial_over |= change.old.is_none();
        }
        match new {
            Some(new) => self.known.insert(name, new),
            None => self.known.remove(&name),
        };
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Act {
    Put(u8),
    Delete(u8),
    Settle,
    /// Lose the connection while these objects are put or deleted.
    Rewrite(Vec<(u8, bool)>),
    Close,
    Cut,
    Subscribe,
    Take(usize, usize),
    Unsubscribe(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..6u8).prop_map(Act::Put),
        4 => (0..6u8).prop_map(Act::Delete),
        5 => Just(Act::Settle),
        1 => prop::collection::vec((0..6u8, any::<bool>()), 0..6).prop_map(Act::Rewrite),
        1 => Just(Act::Close),
        1 => Just(Act::Cut),
        1 => Just(Act::Subscribe),
        6 => (0..4usize, 0..4usize).prop_map(|(who, many)| Act::Take(who, many)),
        1 => (0..4usize).prop_map(Act::Unsubscribe),
    ]
}

async fn play(acts: Vec<Act>) -> Result<(), TestCaseError> {
    let source = Memory::new();
    let informer = Informer::<Thing>::builder().seed(1).start(source.clone());
    let mut subscribers: Vec<(Subscription<Thing>, Witness)> =
        vec![(informer.subscribe("first"), Witness::default())];
    let name = |n: u8| key(&format!("n{n}"));
    for act in acts {
        match act {
            Act::Put(n) => source.put(&name(n), 1),
            Act::Delete(n) => source.delete(&name(n)),
            Act::Settle => settle().await,
            Act::Rewrite(changes) => source.rewrite(|source| {
                for (n, put) in changes {
                    if put { source.put(&name(n), 2) } else { source.delete(&name(n)) }
                }
            }),
            Act::Close => source.close_feeds(),
            Act::Cut => source.cut_feeds(&Error::Unavailable { answered: true, reason: "cut".into() }),
            Act::Subscribe => subscribers.push((informer.subscribe("late"), Witness::default())),
            Act::Take(who, many) => {
                let count = subscribers.len().max(1);
                if let Some((subscription, witness)) = subscribers.get_mut(who % count) {
                    for _ in 0..many {
                        if let Some(change) = subscription.try_next() {
                            witness.see(&change)?;
                        }
                    }
                }
            }
            Act::Unsubscribe(who) => {
                if subscribers.len() > 1 {
                    subscribers.swap_remove(who % subscribers.len());
                }
            }
        }
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let truth: BTreeMap<_, _> = source
        .documents()
        .into_iter()
        .map(|document| {
            let header = document.header;
            (
                header.key.name().to_owned(),
                (header.uid.unwrap().to_string(), header.version.number().unwrap()),
            )
        })
        .collect();
    for (mut subscription, mut witness) in subscribers {
        let synced = tokio::spawn(subscription.synced());
        while let Ok(Some(change)) = tokio::time::timeout(Duration::ZERO, subscription.next()).await {
            witness.see(&change)?;
        }
        prop_assert_eq!(&witness.known, &truth, "a subscriber does not end with the truth");
        prop_assert!(synced.await.unwrap());
    }
    assert_equal_to_source(&informer, &source);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_subscriber_sees_an_orderly_story_that_ends_in_the_truth(acts in prop::collection::vec(act(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(acts))?;
    }
}
