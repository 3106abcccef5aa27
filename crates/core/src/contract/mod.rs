//! The contract of a [`Source`] as a suite that any source can be put through, and a reference source that holds it.
//!
//! Implement [`World`] for whatever is behind your source (a directory, a table, a server) and await [`check`] in a
//! test. It changes the world, looks at what the source makes of it, and says which promise was broken and how.

mod faults;
mod memory;
mod view;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;

use futures_util::StreamExt;
use futures_util::future::ready;

pub use memory::Memory;

use crate::{
    Capabilities, Document, Error, Event, Feed, Follow, Freshness, Order, Source, Start, Uid, Version,
};

/// The truth behind a source, in the hands of the suite. Empty when the suite begins.
pub trait World {
    /// A source that watches this world.
    fn source(&self) -> impl Source;

    /// Creates an object, or changes it so that it holds another value.
    fn put(&self, name: &str, value: u64) -> impl Future<Output = ()>;

    /// Deletes an object.
    fn delete(&self, name: &str) -> impl Future<Output = ()>;

    /// Makes all positions reached so far unusable for resuming. `false` if this world cannot do that.
    fn expire(&self) -> impl Future<Output = bool>;

    /// Makes an object one that the source cannot understand, until it is [put](Self::put) again. `false` if this world cannot do that, which is
    /// the default.
    fn corrupt(&self, name: &str) -> impl Future<Output = bool> {
        let _ = name;
        ready(false)
    }

    /// Has what is being read fail in the middle: connections are cut, the next page is refused. `false` if this world cannot do that, which is
    /// the default.
    fn cut(&self) -> impl Future<Output = bool> {
        ready(false)
    }

    /// Ends what [`cut`](Self::cut) began. Default: nothing, since that is over by itself.
    fn mend(&self) -> impl Future<Output = ()> {
        ready(())
    }

    /// Whether the statuses of these objects can be written, by a source that [says so](Capabilities::status_write_back). Default: no.
    fn has_statuses(&self) -> bool {
        false
    }
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{promise}: {detail}")]
pub struct Violation {
    /// The promise.
    pub promise: &'static str,
    /// The violation that was observed.
    pub detail: String,
}

/// What a snapshot said, by name.
type Seen = BTreeMap<String, (Option<Uid>, Version)>;

/// Puts a source through the contract; gives the names of the promises that were checked.
pub async fn check<W: World>(world: &W) -> Result<Vec<&'static str>, Violation> {
    let source = world.source();
    let capabilities = source.capabilities();
    let suite = Suite { world, source, capabilities, passed: Cell::new(1) };
    let mut kept = Vec::new();
    kept.extend(suite.snapshots_are_complete().await?);
    kept.extend(suite.versions_tell_states_apart().await?);
    kept.extend(suite.changes_are_followed().await?);
    kept.extend(suite.a_recreated_object_is_another_one().await?);
    kept.extend(suite.writes_during_a_snapshot_are_told().await?);
    kept.extend(suite.a_snapshot_that_fails_is_not_complete().await?);
    kept.extend(suite.one_bad_object_ends_nothing().await?);
    kept.extend(suite.a_status_wakes_nobody().await?);
    if suite.capabilities.follow == Follow::Log {
        kept.extend(suite.resuming_continues_where_a_feed_stopped().await?);
        kept.extend(suite.an_expired_position_is_refused().await?);
    }
    Ok(kept)
}

struct Suite<'w, W, S> {
    world: &'w W,
    source: S,
    capabilities: Capabilities,
    /// The next value of an object that changes so that something is told.
    passed: Cell<u64>,
}

type Kept = Result<Option<&'static str>, Violation>;

impl<W: World, S: Source> Suite<'_, W, S> {
    async fn snapshots_are_complete(&self) -> Kept {
        const PROMISE: &str = "a snapshot holds every object once";
        self.expect(PROMISE, &self.snapshot(PROMISE).await?, &[])?;
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            self.world.put(name, value).await;
        }
        self.expect(PROMISE, &self.snapshot(PROMISE).await?, &["a", "b", "c"])?;
        Ok(Some(PROMISE))
    }

    async fn versions_tell_states_apart(&self) -> Kept {
        const PROMISE: &str = "equal key, uid and version mean equal state";
        let before = self.snapshot(PROMISE).await?;
        let again = self.snapshot(PROMISE).await?;
        if before != again {
            return violated(PROMISE, format!("nothing changed, yet {before:?} became {again:?}"));
        }
        self.world.put("b", 20).await;
        let after = self.snapshot(PROMISE).await?;
        if after["a"] != before["a"] {
            return violated(PROMISE, "an object that was not touched has another version".into());
        }
        if after["b"].1 == before["b"].1 {
            return violated(PROMISE, "an object that was changed has the same version".into());
        }
        if after["b"].0 != before["b"].0 {
            return violated(PROMISE, "an object that was changed has another uid".into());
        }
        Ok(Some(PROMISE))
    }

    async fn changes_are_followed(&self) -> Kept {
        const PROMISE: &str = "nothing falls between a snapshot and what follows it";
        let mut feed = self.source.open(Start::Snapshot(Freshness::Newest));
        let (mut seen, _) = self.read_snapshot(PROMISE, &mut feed).await?;
        self.world.put("d", 4).await;
        self.world.put("d", 5).await;
        self.world.delete("a").await;
        match self.capabilities.follow {
            Follow::Poll(_) => seen = self.snapshot(PROMISE).await?,
            Follow::Hints | Follow::Log => {
                let done = |seen: &Seen| seen.contains_key("d") && !seen.contains_key("a");
                while !done(&seen) {
                    self.step(PROMISE, &mut feed, &mut seen).await?;
                }
            }
        }
        self.expect(PROMISE, &seen, &["b", "c", "d"])?;
        Ok(Some(PROMISE))
    }

    async fn a_recreated_object_is_another_one(&self) -> Kept {
        const PROMISE: &str = "delete and re-create give another uid";
        let before = self.snapshot(PROMISE).await?;
        self.world.delete("c").await;
        self.world.put("c", 3).await;
        let after = self.snapshot(PROMISE).await?;
        match (&before["c"].0, &after["c"].0) {
            (None, None) => Ok(None),
            (before, after) if before == after => violated(PROMISE, format!("both are {before:?}")),
            _ => Ok(Some(PROMISE)),
        }
    }

    async fn resuming_continues_where_a_feed_stopped(&self) -> Kept {
        const PROMISE: &str = "a resumed feed delivers every change since, in order, once";
        let (_, position) =
            self.read_snapshot(PROMISE, &mut self.source.open(Start::Snapshot(Freshness::Newest))).await?;
        self.world.put("e", 1).await;
        self.world.put("e", 2).await;
        self.world.delete("b").await;
        let mut feed = self.source.open(Start::Resume(position.clone()));
        let mut last = position;
        for expected in ["put e", "put e", "delete b"] {
            let (got, position) = loop {
                match next(PROMISE, &mut feed).await? {
                    Event::Put { document, position } => {
                        break (format!("put {}", name(&document)), position);
                    }
                    Event::Delete { document, position } => {
                        break (format!("delete {}", name(&document)), position);
                    }
                    Event::Gone { key, position } => break (format!("delete {}", key.name()), position),
                    Event::Position(_) => {}
                    other => return violated(PROMISE, format!("got {other:?}")),
                }
            };
            if got != expected {
                return violated(PROMISE, format!("expected {expected}, got {got}"));
            }
            let Some(position) = position else {
                return violated(PROMISE, "the position did not move".into());
            };
            if self.capabilities.order == Order::Total && !Order::Total.is_older(&last, &position) {
                return violated(PROMISE, format!("{position} does not come after {last}"));
            }
            last = position;
        }
        Ok(Some(PROMISE))
    }

    async fn an_expired_position_is_refused(&self) -> Kept {
        const PROMISE: &str = "a position that is gone is refused as expired, and the feed is over";
        let (_, position) =
            self.read_snapshot(PROMISE, &mut self.source.open(Start::Snapshot(Freshness::Newest))).await?;
        self.world.put("f", 1).await;
        if !self.world.expire().await {
            return Ok(None);
        }
        let mut feed = self.source.open(Start::Resume(position));
        match feed.next().await {
            Some(Err(Error::Expired(_))) => {}
            other => return violated(PROMISE, format!("got {other:?}")),
        }
        match feed.next().await {
            None => Ok(Some(PROMISE)),
            other => violated(PROMISE, format!("after the error came {other:?}")),
        }
    }

    async fn snapshot(&self, promise: &'static str) -> Result<Seen, Violation> {
        let mut feed = self.source.open(Start::Snapshot(Freshness::Newest));
        Ok(self.read_snapshot(promise, &mut feed).await?.0)
    }

    async fn read_snapshot(
        &self,
        promise: &'static str,
        feed: &mut Feed,
    ) -> Result<(Seen, Version), Violation> {
        let mut seen = Seen::new();
        loop {
            match next(promise, feed).await? {
                Event::Begin => seen.clear(),
                Event::Item(document) => {
                    let (uid, version) = (document.header.uid.clone(), document.header.version.clone());
                    if seen.insert(name(&document), (uid, version)).is_some() {
                        return violated(promise, format!("{} came twice", name(&document)));
                    }
                }
                Event::Delete { document, .. } => drop(seen.remove(&name(&document))),
                Event::Gone { key, .. } => drop(seen.remove(key.name())),
                Event::Complete(version) => return Ok((seen, version)),
                other => return violated(promise, format!("in a snapshot came {other:?}")),
            }
        }
    }

    /// Takes one event of a feed over into what is known.
    async fn step(&self, promise: &'static str, feed: &mut Feed, seen: &mut Seen) -> Result<(), Violation> {
        match next(promise, feed).await? {
            Event::Begin => *seen = self.read_snapshot(promise, feed).await?.0,
            Event::Put { document, .. } => {
                let (uid, version) = (document.header.uid.clone(), document.header.version.clone());
                seen.insert(name(&document), (uid, version));
            }
            Event::Delete { document, .. } => drop(seen.remove(&name(&document))),
            Event::Gone { key, .. } => drop(seen.remove(key.name())),
            Event::Position(_) => {}
            other => return violated(promise, format!("after a snapshot came {other:?}")),
        }
        Ok(())
    }

    fn expect(&self, promise: &'static str, seen: &Seen, names: &[&str]) -> Result<(), Violation> {
        let seen: Vec<&str> = seen.keys().map(String::as_str).collect();
        if seen == names { Ok(()) } else { violated(promise, format!("expected {names:?}, got {seen:?}")) }
    }
}

fn name(document: &Document) -> String {
    document.header.key.name().to_owned()
}

fn violated<T>(promise: &'static str, detail: String) -> Result<T, Violation> {
    Err(Violation { promise, detail })
}

async fn next(promise: &'static str, feed: &mut Feed) -> Result<Event, Violation> {
    match feed.next().await {
        Some(Ok(event)) => Ok(event),
        Some(Err(error)) => violated(promise, format!("the feed failed: {error}")),
        None => violated(promise, "the feed ended".into()),
    }
}
