//! How the informer gets along with a source that fails, closes, forgets and lies.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::time::Duration;

use support::*;
use tokio::time::{Instant, advance};
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{
    Capabilities, Document, Error, Event, Feed, Follow, Freshness, Key, Order, Projection, Reason, Rejection,
    Source, SourceGauge, Start, Version,
};
use watchkeeper_informer::{Informer, Phase, Policy};

fn unavailable(answered: bool) -> Error {
    Error::Unavailable { answered, reason: "down".into() }
}

fn document(name: &str, version: &str, value: &str) -> Document {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"shop","uid":"u","resourceVersion":"{version}"}},"spec":{{"value":{value}}}}}"#
    );
    Document::read(json.as_bytes(), &Projection::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_first_snapshot_may_be_cached_and_a_later_one_is_not_older_than_what_is_known() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    source.put(&key("a"), 2);
    settle().await;
    source.cut_feeds(&Error::Expired("too old".into()));
    advance(Duration::from_secs(5)).await;
    settle().await;
    let opened = source.opened();
    assert_eq!(opened[0], Start::Snapshot(Freshness::Any));
    assert_eq!(opened[1], Start::Snapshot(Freshness::NotOlderThan(Version::from(2))));
    assert_eq!(opened.len(), 2);
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn a_version_the_source_does_not_have_yet_is_given_up_for_the_newest_state() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    let began = Instant::now();
    source.refuse_next(Error::Expired("too large".into()));
    source.refuse_next(Error::Expired("too large".into()));
    advance(Duration::from_secs(2)).await;
    source.close_feeds();
    settle().await;
    let opened = source.opened();
    assert_eq!(
        opened[1..],
        [
            Start::Resume(Version::from(1)),
            Start::Snapshot(Freshness::NotOlderThan(Version::from(1))),
            Start::Snapshot(Freshness::Newest),
        ]
    );
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn throttling_is_obeyed_and_leads_to_no_snapshot() {
    let source = Memory::new();
    let informer = informer(&source).await;
    advance(Duration::from_secs(10)).await;
    source.cut_feeds(&Error::Throttled { after: Some(Duration::from_secs(90)), reason: "slow down".into() });
    settle().await;
    source.put(&key("a"), 1);
    tokio::time::sleep(Duration::from_secs(89)).await;
    assert_eq!(source.opened().len(), 1, "asked too early");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(source.opened()[1..], [Start::Resume(Version::from(0))]);
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn a_source_out_of_reach_for_minutes_is_resumed_without_a_snapshot() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    for _ in 0..12 {
        source.refuse_next(unavailable(false));
    }
    source.cut_feeds(&unavailable(false));
    settle().await;
    source.put(&key("b"), 1);
    source.delete(&key("a"));
    let began = Instant::now();
    while informer.store().get(&key("b")).is_none() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(began.elapsed() > Duration::from_secs(150), "{:?}", began.elapsed());
    assert_eq!(snapshots(&source), 1);
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn a_clean_close_is_resumed_at_once_and_misses_nothing() {
    let source = Memory::new();
    let informer = informer(&source).await;
    for round in 0..10 {
        tokio::time::sleep(Duration::from_secs(300)).await;
        let before = Instant::now();
        source.close_feeds();
        source.put(&key("a"), round);
        settle().await;
        assert_eq!(value(&informer.store().get(&key("a")).unwrap()), round);
        assert!(before.elapsed() < Duration::from_millis(10));
    }
    assert_eq!(snapshots(&source), 1);
}

/// Accepts everything and closes at once.
struct ShortLived(Memory);

impl Source for ShortLived {
    fn name(&self) -> &str {
        "short-lived"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        let feed = self.0.open(start);
        self.0.close_feeds();
        feed
    }
}

#[tokio::test(start_paused = true)]
async fn feeds_that_close_at_once_do_not_make_it_spin() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = Informer::<Thing>::builder().start(ShortLived(source.clone()));
    informer.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let opened = source.opened().len();
    assert!((10..40).contains(&opened), "opened {opened} times in ten minutes");
    source.put(&key("a"), 2);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_equal_to_source(&informer, &source);
    assert_eq!(snapshots(&source), 1);
}

#[tokio::test(start_paused = true)]
async fn a_position_without_a_change_moves_the_point_to_resume_from() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    for minute in 1..=15 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        source.inject(&Event::Position(Version::from(1 + minute * 1_000)));
    }
    settle().await;
    assert_eq!(informer.store().positions(), [Some(Version::from(15_001))]);
    source.cut_feeds(&unavailable(true));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(source.opened()[1], Start::Resume(Version::from(15_001)));
}

#[tokio::test(start_paused = true)]
async fn what_vanished_while_disconnected_is_reported_with_its_last_state() {
    let source = Memory::new();
    source.put(&key("stays"), 1);
    source.put(&key("goes"), 2);
    source.put(&key("moves"), 3);
    source.put(&key("reborn"), 4);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    assert_eq!(drain(&mut changes).await.len(), 4);

    source.rewrite(|source| {
        source.delete(&key("goes"));
        source.put(&key("moves"), 30);
        source.delete(&key("reborn"));
        source.put(&key("reborn"), 40);
        source.put(&key("new"), 5);
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut lines = drain(&mut changes).await;
    lines.sort();
    assert_eq!(lines, ["+new=5", "+reborn=40", "-goes=2", "-reborn=4", "~moves=3>30"]);
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn a_new_snapshot_of_the_same_states_is_silent() {
    let source = Memory::new();
    for n in 0..100 {
        source.put(&key(&format!("n{n}")), n);
    }
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    assert_eq!(drain(&mut changes).await.len(), 100);
    source.rewrite(|_| {});
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(snapshots(&source), 2);
    assert!(drain(&mut changes).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_denied_or_missing_says_so_disturbs_nobody_and_recovers() {
    for error in [Error::Denied("pods is forbidden".into()), Error::Missing("no such kind".into())] {
        let (good, bad) = (Memory::new(), Memory::new());
        good.put(&key("a"), 1);
        bad.put(&Key::new(Some("other"), "b"), 1);
        for _ in 0..4 {
            bad.refuse_next(error.clone());
        }
        let informer = informer(&good).await;
        informer.add_source(bad.clone());
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!informer.is_synced());
        let status = &informer.status()[1];
        assert_eq!(
            (status.phase, status.synced, &status.error),
            (Phase::Waiting, false, &Some(error.clone()))
        );
        good.put(&key("a"), 2);
        settle().await;
        assert_eq!(value(&informer.store().get(&key("a")).unwrap()), 2);

        informer.synced().await.unwrap();
        assert_eq!(informer.store().len(), 2);
        assert_eq!(informer.status()[1].error, None);

        // And the same once it runs.
        bad.refuse_next(error.clone());
        bad.cut_feeds(&error);
        settle().await;
        assert_eq!(informer.status()[1].error, Some(error));
        bad.put(&Key::new(Some("other"), "b"), 2);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(informer.status()[1].error, None);
        assert_eq!(value(&informer.store().in_namespace("other")[0]), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_can_never_work_is_told_to_whoever_waits_for_it() {
    let source = Memory::new();
    source.refuse_next(Error::Fatal("unable to parse the selector".into()));
    let informer = Informer::<Thing>::builder().start(source.clone());
    assert_eq!(informer.synced().await, Err(Error::Fatal("unable to parse the selector".into())));
    // Somebody may mend the other side.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn the_state_never_goes_back() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.put(&key("a"), 2);
    source.put(&key("gone"), 1);
    source.delete(&key("gone"));
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    drain(&mut changes).await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    // Another server that is behind: replayed entries and an old snapshot.
    source.inject(&Event::Put { document: document("a", "1", "1"), position: Some(Version::from(1)) });
    source.inject(&Event::Put { document: document("gone", "3", "1"), position: Some(Version::from(3)) });
    source.inject(&Event::Delete { document: document("a", "1", "1"), position: Some(Version::from(1)) });
    source.inject(&Event::Begin);
    source.inject(&Event::Complete(Version::from(2)));
    assert!(drain(&mut changes).await.is_empty());
    // The old snapshot was refused; what it did not list is still there, and the newest one was asked for.
    assert_equal_to_source(&informer, &source);
    assert_eq!(source.opened().last(), Some(&Start::Snapshot(Freshness::NotOlderThan(Version::from(4)))));
}

/// Versions that are not numbers.
struct Opaque(Memory);

impl Source for Opaque {
    fn name(&self) -> &str {
        "opaque"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.order = Order::Opaque;
        capabilities
    }

    fn open(&self, start: Start) -> Feed {
        self.0.open(start)
    }
}

#[tokio::test(start_paused = true)]
async fn where_versions_cannot_be_compared_the_last_word_counts() {
    let source = Memory::new();
    source.put(&key("a"), 5);
    let informer = Informer::<Thing>::builder().start(Opaque(source.clone()));
    informer.synced().await.unwrap();
    let position = Some(Version::from("0000001"));
    source.inject(&Event::Put { document: document("b", "x-9", "9"), position });
    source.inject(&Event::Put { document: document("b", "x-1", "1"), position: None });
    settle().await;
    assert_eq!(value(&informer.store().get(&key("b")).unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bad_object_is_counted_and_keeps_its_last_good_state() {
    for policy in [Policy::Typed, Policy::Packed] {
        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
        let source = Memory::new();
        source.put(&key("a"), 1);
        let informer =
            Informer::<Thing>::builder().policy(policy).check(true).metrics(&metrics).start(source.clone());
        informer.synced().await.unwrap();
        source.put_json(&key("a"), None, r#""spec":{"value":"hunter2"}"#);
        source.put_json(&key("b"), None, r#""spec":{}"#);
        source.put(&key("c"), 3);
        settle().await;
        assert_eq!(value(&informer.store().get(&key("a")).unwrap()), 1);
        assert!(informer.store().get(&key("b")).is_none());
        assert_eq!(value(&informer.store().get(&key("c")).unwrap()), 3);

        // A new snapshot in which it is still bad does not delete it either.
        source.rewrite(|_| {});
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(value(&informer.store().get(&key("a")).unwrap()), 1);

        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let line = r#"watchkeeper_informer_rejected_total{informer="memory",reason="undecodable"} 4"#;
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("hunter2"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_object_held_packed_is_an_error_for_whoever_reads_it() {
    let source = Memory::new();
    source.put_json(&key("a"), None, r#""spec":{"value":"hunter2"}"#);
    let informer = informer(&source).await;
    let error = informer.store().get(&key("a")).unwrap().get().unwrap_err();
    assert!(error.to_string().starts_with("shop/a: spec.value: expected u64"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_cannot_be_named_is_made_up_for() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    // An entry arrives as garbage: nobody can say which object it was about.
    let rejection = Rejection::new(None, Reason::Malformed, "cut off");
    source.inject(&Event::Rejected(rejection.clone()));
    settle().await;
    source.rewrite(|source| source.put(&key("a"), 2));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_equal_to_source(&informer, &source);
    let before = snapshots(&source);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(snapshots(&source), before, "once is enough");

    // Without a disconnect, the log goes on until the new snapshot is due.
    source.inject(&Event::Rejected(rejection));
    source.put(&key("b"), 1);
    settle().await;
    assert_equal_to_source(&informer, &source);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(snapshots(&source), before + 1);
}

/// Delivers a snapshot with one item that is garbage, a few times, then a sound one.
struct Garbled {
    memory: Memory,
    left: std::sync::atomic::AtomicUsize,
}

impl Source for Garbled {
    fn name(&self) -> &str {
        "garbled"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        use futures_util::StreamExt;
        use std::sync::atomic::Ordering::Relaxed;
        let feed = self.memory.open(start);
        if self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
            return feed;
        }
        feed.map(|event| match event {
            Ok(Event::Item(_)) => {
                Ok(Event::Rejected(Rejection::new(None, Reason::Malformed, "invalid UTF-8")))
            }
            other => other,
        })
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_with_garbage_in_it_deletes_nothing_and_is_taken_again() {
    let memory = Memory::new();
    memory.put(&key("a"), 1);
    let informer = informer(&memory).await;
    let garbled = Garbled { memory: Memory::new(), left: 3.into() };
    garbled.memory.put(&Key::new(None, "b"), 1);
    let truth = garbled.memory.clone();
    informer.add_source(garbled);
    informer.synced().await.unwrap();
    assert!(informer.store().get(&Key::new(None, "b")).is_none());
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(informer.store().get(&Key::new(None, "b")).is_some());
    assert_eq!(snapshots(&truth), 4);
}

#[tokio::test(start_paused = true)]
async fn a_polled_source_is_polled_and_diffed() {
    let source = Memory::following(Follow::Poll(Duration::from_secs(10)));
    (0..4).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    drain(&mut changes).await;
    source.put(&key("n0"), 10);
    source.delete(&key("n1"));
    assert!(drain(&mut changes).await.is_empty());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(drain(&mut changes).await, ["~n0=0>10", "-n1=1"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_seems_to_lose_nearly_everything_has_to_say_it_twice() {
    let source = Memory::following(Follow::Poll(Duration::from_secs(10)));
    (0..10).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = informer(&source).await;

    // The directory is not mounted for a moment.
    (0..10).for_each(|n| source.delete(&key(&format!("n{n}"))));
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(informer.store().len(), 10);
    (0..10).for_each(|n| source.put(&key(&format!("n{n}")), n));
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(informer.store().len(), 10);

    // It is really empty.
    (0..10).for_each(|n| source.delete(&key(&format!("n{n}"))));
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(informer.store().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hinting_source_is_followed_by_its_snapshots() {
    let source = Memory::following(Follow::Hints);
    (0..4).for_each(|n| source.put(&key(&format!("n{n}")), n));
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    drain(&mut changes).await;
    source.put(&key("n0"), 10);
    source.delete(&key("n1"));
    assert_eq!(drain(&mut changes).await, ["~n0=0>10", "-n1=1"]);
    assert_eq!(source.opened().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_knows_only_the_key_of_what_is_gone_leaves_the_last_state_to_the_reader() {
    let source = Memory::following(Follow::Hints);
    source.put(&key("a"), 1);
    source.put(&key("b"), 2);
    let informer = informer(&source).await;
    let mut changes = informer.subscribe("test");
    drain(&mut changes).await;
    source.inject(&Event::Gone { key: key("a"), position: None });
    source.inject(&Event::Gone { key: key("never"), position: None });
    assert_eq!(drain(&mut changes).await, ["-a=1"]);
    assert_eq!(source.opened().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_feed_is_counted_by_its_class() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.refuse_next(unavailable(false));
    source.refuse_next(Error::Throttled { after: None, reason: "busy".into() });
    let informer = Informer::<Thing>::builder().name("things").metrics(&metrics).start(source.clone());
    informer.synced().await.unwrap();
    source.rewrite(|source| source.put(&key("a"), 2));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        r#"watchkeeper_informer_objects{informer="things"} 1"#,
        r#"watchkeeper_informer_synced{informer="things"} 1"#,
        r#"watchkeeper_informer_snapshots_total{informer="things"} 4"#,
        r#"watchkeeper_informer_resumes_total{informer="things"} 1"#,
        r#"watchkeeper_informer_resnapshots_total{informer="things",reason="expired"} 1"#,
        r#"watchkeeper_informer_changes_total{informer="things",kind="ADDED"} 1"#,
        r#"watchkeeper_informer_changes_total{informer="things",kind="MODIFIED"} 1"#,
        r#"watchkeeper_informer_errors_total{informer="things",class="unavailable"} 1"#,
        r#"watchkeeper_informer_errors_total{informer="things",class="throttled"} 1"#,
        r#"watchkeeper_informer_errors_total{informer="things",class="expired"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    informer.stop().await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains(r#"watchkeeper_informer_objects{informer="things"} 0"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_old_state_in_a_new_snapshot_does_not_replace_a_newer_one() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.put(&key("a"), 2);
    let informer = informer(&source).await;
    let uid = informer.store().get(&key("a")).unwrap().uid().cloned();
    let mut old = document("a", "1", "1");
    old.header.uid = uid;
    source.inject(&Event::Begin);
    source.inject(&Event::Item(old));
    source.inject(&Event::Complete(Version::from(2)));
    settle().await;
    assert_equal_to_source(&informer, &source);
}

#[tokio::test(start_paused = true)]
async fn the_delete_of_a_former_incarnation_does_not_touch_its_successor() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    let informer = informer(&source).await;
    source.inject(&Event::Delete { document: document("a", "9", "1"), position: Some(Version::from(9)) });
    settle().await;
    assert_equal_to_source(&informer, &source);
}

/// One address, behind which another server stands after a while.
#[derive(Clone)]
struct Address(std::sync::Arc<std::sync::Mutex<Memory>>);

impl Source for Address {
    fn name(&self) -> &str {
        "address"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.lock().unwrap().capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        self.0.lock().unwrap().open(start)
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_restored_from_a_backup_is_believed_once_it_is_asked_for_the_newest_state() {
    let (before, restored) = (Memory::new(), Memory::new());
    (1..=50).for_each(|value| before.put(&key("a"), value));
    before.put(&key("lost"), 1);
    (1..=3).for_each(|value| restored.put(&key("a"), value));
    let address = Address(std::sync::Arc::new(before.clone().into()));
    let informer = Informer::<Thing>::builder().start(address.clone());
    informer.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    *address.0.lock().unwrap() = restored.clone();
    before.close_feeds();
    settle().await;
    assert_eq!(restored.opened().last(), Some(&Start::Snapshot(Freshness::Newest)));
    assert_equal_to_source(&informer, &restored);
    restored.put(&key("a"), 4);
    settle().await;
    assert_equal_to_source(&informer, &restored);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_snapshot_names_but_cannot_show_is_kept() {
    let source = Memory::new();
    source.put(&key("a"), 1);
    source.put(&key("b"), 1);
    let informer = informer(&source).await;
    let rejection = Rejection::new(Some(key("a")), Reason::TooLarge, "9 MiB");
    source.inject(&Event::Begin);
    source.inject(&Event::Rejected(rejection));
    source.inject(&Event::Complete(Version::from(2)));
    settle().await;
    assert_eq!(informer.store().list().len(), 1, "b was not listed");
    assert_eq!(value(&informer.store().get(&key("a")).unwrap()), 1);
}

/// Panics when it is opened for the second time, and in the middle of its third feed.
struct Shaky {
    memory: Memory,
    opened: std::sync::atomic::AtomicUsize,
}

impl Source for Shaky {
    fn name(&self) -> &str {
        "shaky"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        use futures_util::StreamExt;
        let feed = self.memory.open(start);
        match self.opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 => panic!("this was not to happen"),
            2 => feed.inspect(|event| assert!(!matches!(event, Ok(Event::Item(_))), "nor was this")).boxed(),
            _ => feed,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_has_failed_and_is_asked_again() {
    let memory = Memory::new();
    memory.put(&key("a"), 1);
    let informer = Informer::<Thing>::builder().start(Shaky { memory: memory.clone(), opened: 0.into() });
    informer.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    memory.rewrite(|memory| {
        memory.put(&key("a"), 2);
        memory.put(&key("b"), 1);
    });
    settle().await;
    assert!(matches!(informer.status()[0].error, Some(Error::Unavailable { .. })), "{:?}", informer.status());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_equal_to_source(&informer, &memory);
    assert_eq!(informer.status()[0].error, None);
}

/// Finds by looking at everything what it was not told of.
struct Drifting {
    memory: Memory,
    found: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Source for Drifting {
    fn name(&self) -> &str {
        "drifting"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn open(&self, start: Start) -> Feed {
        self.memory.open(start)
    }

    fn drift(&self) -> u64 {
        self.found.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn gauges(&self) -> Vec<SourceGauge> {
        vec![SourceGauge::new(self.name(), "lag_bytes", "How far it is behind", self.drift() as f64)]
    }
}

#[tokio::test(start_paused = true)]
async fn the_gauges_of_a_source_are_shown_as_they_are_when_they_are_asked_for() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
    let shown = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let name = "watchkeeper_informer_source_lag_bytes{informer=\"drifting\",source=\"drifting\"} ";
        text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))
    };
    let found = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(7));
    let source = Drifting { memory: Memory::new(), found: std::sync::Arc::clone(&found) };
    let informer = Informer::<Thing>::builder().metrics(&metrics).start(source);
    assert_eq!(shown().as_deref(), Some("7.0"));
    found.store(8, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(shown().as_deref(), Some("8.0"));
    informer.stop().await;
    drop(informer);
    assert_eq!(shown(), None);
}

#[tokio::test(start_paused = true)]
async fn what_a_source_found_only_by_looking_at_everything_is_counted() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = watchkeeper_informer::InformerMetrics::register(&mut registry);
    let drift = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let name = "watchkeeper_informer_source_drift_total{informer=\"drifting\"} ";
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse::<u64>().unwrap()
    };
    let memory = Memory::new();
    // What was found before the informer began is not its own.
    let found = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(7));
    let source = Drifting { memory: memory.clone(), found: std::sync::Arc::clone(&found) };
    let informer = Informer::<Thing>::builder().metrics(&metrics).start(source);
    informer.synced().await.unwrap();
    assert_eq!(drift(), 0);
    for (now, counted) in [(7, 0), (9, 2), (10, 3), (1, 4)] {
        found.store(now, std::sync::atomic::Ordering::Relaxed);
        memory.put(&key("a"), now);
        settle().await;
        assert_eq!(drift(), counted, "{now}");
    }
}
