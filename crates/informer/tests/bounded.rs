//! A hundred thousand objects, a million changes, and a subscriber that cannot keep up.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use watchkeeper_core::{
    Capabilities, Change, Document, Event, Feed, Follow, Key, Order, Projection, Source, Start, Version,
};
use watchkeeper_counting::Counting;
use watchkeeper_informer::{Informer, Object, Subscription};

#[global_allocator]
static MEMORY: Counting = Counting::new();

const OBJECTS: u64 = 100_000;
const CHANGES: u64 = 1_000_000;

#[derive(Deserialize)]
struct Thing {
    value: u64,
}

/// How many changes the quick subscribers may be behind before the flood waits for them: a machine that is busy with
/// other things may not run their threads for a while, and what they have not yet seen takes memory too.
const QUICK: u64 = 5_000;

/// The newest version each of the two quick subscribers has seen.
type Newest = Arc<[AtomicU64; 2]>;

/// Lists `OBJECTS` objects, waits to be let go, then changes them `CHANGES` times, as fast as the quick subscribers
/// follow, and makes nothing in advance.
struct Flood {
    go: Arc<tokio::sync::Notify>,
    newest: Newest,
}

/// How far the slower of the two is behind version `at`.
fn behind(newest: &Newest, at: u64) -> u64 {
    at.saturating_sub(newest.iter().map(|newest| newest.load(Ordering::Relaxed)).min().unwrap().max(OBJECTS))
}

fn document(at: u64) -> Document {
    // Prime to the number of objects, so that every object is changed ten times, in a scattered order.
    let n = at.wrapping_mul(7_919) % OBJECTS;
    let filler =
        "some settings that make an object as large as a small configuration map usually is; ".repeat(5);
    let json = format!(
        r#"{{"metadata":{{"name":"object-{n}","namespace":"n{}","uid":"0b6f5a3c-52a1-4a67-9c7b-0f5f{n:08x}","resourceVersion":"{}"}},"value":{at},"data":{{"text":"{filler}"}}}}"#,
        n % 50,
        at + 1
    );
    Document::read(json.as_bytes(), &Projection::default()).unwrap()
}

impl Source for Flood {
    fn name(&self) -> &str {
        "flood"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log)
    }

    fn open(&self, start: Start) -> Feed {
        assert!(matches!(start, Start::Snapshot(_)), "the feed never ends");
        let items = stream::iter((0..OBJECTS).map(|at| Event::Item(document(at))));
        let snapshot = stream::iter([Event::Begin]).chain(items);
        let snapshot = snapshot.chain(stream::iter([Event::Complete(Version::from(OBJECTS))]));
        let go = Arc::clone(&self.go);
        let wait = stream::once(async move { go.notified().await }).filter_map(|()| async { None });
        let newest = Arc::clone(&self.newest);
        let changes = stream::iter(OBJECTS..OBJECTS + CHANGES).then(move |at| {
            let newest = Arc::clone(&newest);
            async move {
                while at % 500 == 0 && behind(&newest, at) > QUICK {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let document = document(at);
                let position = Some(document.header.version.clone());
                Event::Put { document, position }
            }
        });
        Box::pin(snapshot.chain(wait).chain(changes).chain(stream::pending()).map(Ok))
    }
}

/// A subscriber that takes a change when the test lets it.
struct Slow {
    changes: Subscription<Thing>,
    /// The newest version it has seen of each object.
    seen: HashMap<Key, u64>,
}

impl Slow {
    /// Subscribes and takes what is there already.
    async fn caught_up(informer: &Informer<Thing>) -> Self {
        let mut slow = Self { changes: informer.subscribe("slow"), seen: HashMap::new() };
        while slow.seen.len() < OBJECTS as usize {
            let change = slow.changes.next().await.unwrap();
            slow.note(change);
        }
        slow
    }

    /// Takes a change, if one waits.
    fn take(&mut self) -> bool {
        let change = self.changes.try_next();
        change.map(|change| self.note(change)).is_some()
    }

    /// What comes is newer than what it has seen, and says what that was.
    fn note(&mut self, change: Change<Object<Thing>>) {
        let new = change.new.unwrap().version().number();
        let before = self.seen.insert(change.key, new.unwrap());
        assert!(before < new, "{before:?} was seen before {new:?}");
        assert_eq!(before, change.old.and_then(|old| old.version().number()));
    }
}

/// The version of every object in the store; each reads as it was written with that version.
fn stored(informer: &Informer<Thing>) -> HashMap<Key, u64> {
    let version = |object: &Object<Thing>| {
        let version = object.version().number().unwrap();
        assert_eq!(object.get().unwrap().value + 1, version);
        (object.key().clone(), version)
    };
    informer.store().list().iter().map(version).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures memory over a million changes; run by make soak"]
async fn a_million_changes_with_a_slow_subscriber_stay_bounded_and_delay_nobody() {
    let go = Arc::new(tokio::sync::Notify::new());
    let newest: Newest = Arc::default();
    let informer =
        Informer::<Thing>::builder().start(Flood { go: Arc::clone(&go), newest: Arc::clone(&newest) });
    informer.synced().await.unwrap();
    let quick: Vec<_> = (0..2)
        .map(|n| {
            let newest = Arc::clone(&newest);
            informer.subscribe(&format!("quick-{n}")).handle(move |change| {
                newest[n].store(change.newest().unwrap().version().number().unwrap(), Ordering::Relaxed);
                async {}
            })
        })
        .collect();
    let mut slow = Slow::caught_up(&informer).await;
    for handler in &quick {
        assert!(handler.synced().await);
    }
    let steady = MEMORY.in_use();
    MEMORY.reset_peak();

    go.notify_one();
    let last = OBJECTS + CHANGES;
    let mut meanwhile = 0;
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while behind(&newest, last) > 0 {
        assert!(std::time::Instant::now() < deadline, "the quick ones are {} behind", behind(&newest, last));
        meanwhile += u64::from(slow.take());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let ratio = MEMORY.peak() as f64 / steady as f64;
    println!("{} MB, at most {ratio:.2} times as much; the slow one took {meanwhile}", steady >> 20);
    assert!(ratio <= 2.0, "{ratio} times as much");
    assert!(meanwhile < CHANGES / 100, "it was not slow");

    // In the end it has the newest state of every object, and took each at most once.
    let taken = (0..).take_while(|_| slow.take()).count();
    assert!(taken <= OBJECTS as usize);
    assert_eq!(slow.seen, stored(&informer));
    assert!(slow.seen.values().all(|version| *version > CHANGES), "one of the last changes each");

    // And when the last handle goes, so does the memory.
    for handler in quick {
        handler.stop().await;
    }
    drop((slow, informer));
    let freed = tokio::time::timeout(Duration::from_secs(10), async {
        while MEMORY.in_use() > steady / 10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(freed.await.is_ok(), "{} of {steady} bytes are still in use", MEMORY.in_use());
}
