//! A hundred thousand objects, a million changes, and a subscriber that cannot keep up.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use watchkeeper_core::{
    Capabilities, Document, Event, Feed, Follow, Order, Projection, Source, Start, Version,
};
use watchkeeper_counting::Counting;
use watchkeeper_informer::Informer;

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
        Capabilities {
            order: Order::Total,
            follow: Follow::Log,
            confirm_shrink: None,
            status_write_back: false,
        }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_changes_with_a_slow_subscriber_stay_bounded_and_delay_nobody() {
    let go = Arc::new(tokio::sync::Notify::new());
    let newest: Newest = Arc::default();
    let informer =
        Informer::<Thing>::builder().start(Flood { go: Arc::clone(&go), newest: Arc::clone(&newest) });
    informer.synced().await.unwrap();

    // Two that keep up, and one that, once it has seen everything, sleeps over every change.
    let quick: Vec<_> = (0..2)
        .map(|n| {
            let newest = Arc::clone(&newest);
            informer.subscribe(&format!("quick-{n}")).handle(move |change| {
                newest[n].store(change.newest().unwrap().version().number().unwrap(), Ordering::Relaxed);
                async {}
            })
        })
        .collect();
    let mut slow = informer.subscribe("slow");
    let mut seen: HashMap<_, u64> = HashMap::new();
    while seen.len() < OBJECTS as usize {
        let change = slow.next().await.unwrap();
        seen.insert(change.key, change.new.unwrap().version().number().unwrap());
    }
    for handler in &quick {
        assert!(handler.synced().await);
    }
    let steady = MEMORY.in_use();
    MEMORY.reset_peak();

    go.notify_one();
    let mut slow_changes = 0;
    let last = OBJECTS + CHANGES;
    let patience = std::time::Instant::now() + Duration::from_secs(120);
    while newest.iter().any(|newest| newest.load(Ordering::Relaxed) < last) {
        assert!(std::time::Instant::now() < patience, "the quick ones are {} behind", behind(&newest, last));
        if let Some(change) = slow.try_next() {
            seen.insert(change.key, change.new.unwrap().version().number().unwrap());
            slow_changes += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let peak = MEMORY.peak();
    let ratio = peak as f64 / steady as f64;
    println!("steady {} MB, peak {} MB, ratio {ratio:.2}", steady >> 20, peak >> 20);
    println!("meanwhile the slow one took {slow_changes}");
    assert!(ratio <= 2.0, "peak {peak}, steady {steady}");
    assert!(slow_changes < CHANGES / 100, "it was not slow");

    // In the end it has the newest state of every key, each taken once.
    let mut taken = 0;
    while let Some(change) = slow.try_next() {
        let new = change.new.unwrap();
        assert!(seen.insert(change.key, new.version().number().unwrap()) < new.version().number());
        assert!(change.old.is_some());
        taken += 1;
    }
    assert!(taken <= OBJECTS);
    let store = informer.store();
    assert_eq!(store.len(), OBJECTS as usize);
    for object in store.list() {
        assert_eq!(seen[object.key()], object.version().number().unwrap());
        assert!(object.version().number().unwrap() > CHANGES, "one of the last changes");
    }
    let object = store.list().pop().unwrap();
    assert_eq!(object.get().unwrap().value + 1, object.version().number().unwrap());

    // And when the last handle goes, so does the memory.
    for handler in quick {
        handler.stop().await;
    }
    drop((slow, seen, object, store, informer));
    let freed = tokio::time::timeout(Duration::from_secs(10), async {
        while MEMORY.in_use() > steady / 10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(freed.await.is_ok(), "{} of {steady} bytes are still in use", MEMORY.in_use());
}
