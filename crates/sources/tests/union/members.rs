//! Who wins, and what a member that fails means.

use std::time::Duration;

use watchkeeper_core::contract::Memory;
use watchkeeper_core::{Capabilities, Feed, StatusWritten};
use watchkeeper_core::{Error, Follow, Freshness, Key, ObjectStatus, Source, Start, Version};
use watchkeeper_sources::union::Union;

use crate::tap::Tap;

fn key(name: &str) -> Key {
    Key::new(None, name)
}

fn down() -> Error {
    Error::Unavailable { answered: false, reason: "down".into() }
}

/// A source with a name of its own, which remembers the statuses that were written.
#[derive(Clone)]
struct Named {
    name: &'static str,
    memory: Memory,
    written: std::sync::Arc<std::sync::Mutex<Vec<ObjectStatus>>>,
}

impl Named {
    fn new(name: &'static str, follow: Follow) -> Self {
        Self { name, memory: Memory::following(follow), written: std::sync::Arc::default() }
    }
}

impl Source for Named {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities().status_write_back(true)
    }

    fn open(&self, start: Start) -> Feed {
        self.memory.open(start)
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        self.written.lock().unwrap().push(status);
        Box::pin(async { Ok(()) })
    }
}

fn pair(follow: Follow) -> (Named, Named, Union) {
    let (first, second) = (Named::new("first", follow), Named::new("second", follow));
    let union = Union::of("both").member(first.clone()).member(second.clone());
    (first, second, union)
}

#[tokio::test(start_paused = true)]
async fn the_first_member_wins_and_the_next_one_takes_over_without_a_gap() {
    let (first, second, union) = pair(Follow::Log);
    first.memory.put(&key("a"), 1);
    second.memory.put(&key("a"), 2);
    second.memory.put(&key("b"), 2);
    let mut tap = Tap::on(&union).await;
    let conflict = "rejected a: conflict (second: first has an object of this name, and comes before it)";
    assert_eq!(tap.log, ["begin", "item a=1", conflict, "item b=2", "complete"]);
    // Its object was at hand.
    second.memory.put(&key("a"), 3);
    first.memory.delete(&key("a"));
    assert_eq!(*tap.until("put").await.last().unwrap(), "put a=3");
    // And again, and back, where it has to be read anew.
    first.memory.put(&key("b"), 4);
    assert_eq!(*tap.until("put").await.last().unwrap(), "put b=4");
    first.memory.delete(&key("b"));
    assert_eq!(
        tap.until("put").await.iter().filter(|line| *line != "position").collect::<Vec<_>>(),
        ["put b=2"]
    );
    second.memory.delete(&key("b"));
    tap.until("gone b").await;
    second.memory.delete(&key("a"));
    tap.until("gone a").await;
}

#[tokio::test(start_paused = true)]
async fn members_that_override_each_other_are_no_conflict() {
    let (first, second, union) = pair(Follow::Log);
    let union = union.overriding();
    first.memory.put(&key("a"), 1);
    second.memory.put(&key("a"), 2);
    let tap = Tap::on(&union).await;
    assert_eq!(tap.log, ["begin", "item a=1", "complete"]);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_keeps_its_objects_and_disturbs_no_other() {
    for follow in [Follow::Log, Follow::Hints] {
        let (first, second, union) = pair(follow);
        first.memory.put(&key("a"), 1);
        second.memory.put(&key("b"), 1);
        let mut tap = Tap::on(&union).await;
        for _ in 0..5 {
            first.memory.refuse_next(down());
        }
        first.memory.cut_feeds(&down());
        second.memory.put(&key("c"), 1);
        tap.until("put c=1").await;
        assert!(tap.is_silent(Duration::from_millis(50)).await);
        assert_eq!(union.status()[0].error, Some(down()));
        assert!(union.status()[1].error.is_none());
        // What happened there meanwhile is told when it is back, and nothing else.
        first.memory.put(&key("a"), 2);
        let told: Vec<String> = tap.until("put a=2").await;
        assert!(told.iter().all(|line| line == "position" || line == "put a=2"), "{told:?}");
        assert!(union.status().iter().all(|member| member.error.is_none() && member.synced));
        // A log that is gone is a new snapshot of that member.
        first.memory.put(&key("d"), 1);
        tap.until("put d=1").await;
        first.memory.rewrite(|memory| {
            memory.delete(&key("a"));
            memory.put(&key("e"), 1);
        });
        let mut told: Vec<String> = tap.until("gone a").await;
        told.retain(|line| line != "position");
        told.sort();
        assert_eq!(told, ["gone a", "put e=1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_snapshot_needs_all_members() {
    let (first, second, union) = pair(Follow::Log);
    first.memory.put(&key("a"), 1);
    second.memory.refuse_next(down());
    let mut tap = Tap::open(&union, Start::Snapshot(Freshness::Any));
    let error = tap.failure().await;
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason == "second: down"), "{error}");
    assert!(!tap.log.contains(&"complete".to_owned()));
    assert_eq!(union.status()[1].error, Some(down()));
    assert!(matches!(
        Tap::open(&Union::of("none"), Start::Snapshot(Freshness::Any)).failure().await,
        Error::Fatal(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_suddenly_empty_is_asked_twice() {
    let (first, second, union) = pair(Follow::Hints);
    for number in 0..100 {
        second.memory.put(&key(&format!("b{number}")), 1);
    }
    first.memory.put(&key("a"), 1);
    let mut tap = Tap::on(&union).await;
    first.memory.rewrite(|memory| memory.delete(&key("a")));
    // It is back before anybody was told.
    assert!(tap.is_silent(Duration::from_millis(800)).await);
    first.memory.put(&key("a"), 1);
    assert!(tap.is_silent(Duration::from_secs(10)).await || tap.log.contains(&"put a=1".to_owned()));
    assert!(!tap.log.contains(&"gone a".to_owned()));
    first.memory.rewrite(|memory| memory.delete(&key("a")));
    tap.until("gone a").await;

    // A new feed remembers what the last one told.
    first.memory.put(&key("a"), 2);
    tap.until("put a").await;
    drop(tap);
    first.memory.rewrite(|memory| memory.delete(&key("a")));
    let mut tap = Tap::on(&union).await;
    assert!(
        tap.log.iter().any(|line| line.starts_with("rejected a: unreadable (first: not there")),
        "{:?}",
        tap.log
    );
    tap.until("gone a").await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_resumed_where_the_last_one_stopped_and_nowhere_else() {
    let (first, second, union) = pair(Follow::Log);
    first.memory.put(&key("a"), 1);
    second.memory.put(&key("a"), 2);
    let tap = Tap::on(&union).await;
    let position = tap.position.clone().unwrap();
    drop(tap);
    first.memory.delete(&key("a"));
    second.memory.put(&key("b"), 1);
    let mut tap = Tap::open(&union, Start::Resume(position.clone()));
    // Who has lost the key is still known.
    tap.until("put a=2").await;
    if !tap.log.contains(&"put b=1".to_owned()) {
        tap.until("put b=1").await;
    }
    drop(tap);
    let error = Tap::open(&union, Start::Resume(position)).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
    let error = Tap::open(&union, Start::Resume(Version::from(7))).failure().await;
    assert!(matches!(error, Error::Expired(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_object_names_its_member_and_its_status_goes_there() {
    let (first, second, union) = pair(Follow::Log);
    first.memory.put(&key("a"), 1);
    second.memory.put(&key("a"), 2);
    second.memory.put(&key("b"), 2);
    let outer = Union::of("outer").member(union.clone());
    let tap = Tap::on(&outer).await;
    let version = |name: &str| {
        let document = tap.documents.iter().find(|document| document.header.key == key(name)).unwrap();
        document.header.version.clone()
    };
    assert_eq!(outer.origin(&version("a")).as_deref(), Some("first"));
    assert_eq!(outer.origin(&version("b")).as_deref(), Some("second"));
    assert_eq!(outer.origin(&Version::from("nonsense")), None);
    assert!(outer.capabilities().status_write_back);
    let status = ObjectStatus::new(key("b"), version("b"), "{}");
    outer.write_status(status.clone()).await.unwrap();
    let written = second.written.lock().unwrap().clone();
    assert_eq!(written, [ObjectStatus::new(status.key, Version::from(2), status.json)]);
    assert!(first.written.lock().unwrap().is_empty());
}
