//! What a source makes of writes while it reads, of failures, of bad objects and of statuses.

use futures_util::StreamExt;

use super::view::View;
use super::{Kept, Suite, Violation, World, next, violated};
use crate::{Error, Feed, Follow, Freshness, ObjectStatus, Source, Start};

/// So many changes of another object are followed before something that came earlier is taken for lost.
const ROUNDS: usize = 100;

/// So many objects that a snapshot is not over with the first of them.
const MANY: std::ops::Range<u64> = 0..10;

// A source may allow one feed at a time, so that no check opens a second one beside another.
impl<W: World, S: Source> Suite<'_, W, S> {
    pub(super) async fn writes_during_a_snapshot_are_told(&self) -> Kept {
        const PROMISE: &str = "what is written while a snapshot is read is in it or follows it";
        self.put_many().await;
        let (mut feed, mut view) = self.open();
        self.begin(PROMISE, &mut feed, &mut view).await?;
        self.world.put("m9", 90).await;
        self.world.delete("m0").await;
        self.world.put("new", 1).await;
        self.complete(PROMISE, &mut feed, &mut view).await?;
        for _ in 0..ROUNDS {
            self.pass(PROMISE, &mut feed, &mut view).await?;
            if view.seen.contains_key("new") && !view.seen.contains_key("m0") {
                break;
            }
        }
        drop(feed);
        let truth = self.snapshot(PROMISE).await?;
        if view.seen != truth {
            return violated(PROMISE, format!("the feed has told {:?}, there is {truth:?}", view.seen));
        }
        Ok(Some(PROMISE))
    }

    pub(super) async fn a_snapshot_that_fails_is_not_complete(&self) -> Kept {
        const PROMISE: &str = "a snapshot that fails in the middle does not say that it is complete";
        self.put_many().await;
        let all: Vec<String> = self.snapshot(PROMISE).await?.into_keys().collect();
        let (mut feed, mut view) = self.open();
        self.begin(PROMISE, &mut feed, &mut view).await?;
        if !self.world.cut().await {
            return Ok(None);
        }
        self.fails_or_has(PROMISE, &mut feed, &mut view, &all).await?;
        drop(feed);
        // The same for one that begins now.
        let (mut feed, mut view) = self.open();
        self.fails_or_has(PROMISE, &mut feed, &mut view, &all).await?;
        drop(feed);
        self.world.mend().await;
        Ok(Some(PROMISE))
    }

    /// Reads a snapshot to its end, which is an error unless it has all of these.
    async fn fails_or_has(
        &self,
        promise: &'static str,
        feed: &mut Feed,
        view: &mut View,
        all: &[String],
    ) -> Result<(), Violation> {
        while view.complete == 0 {
            match feed.next().await {
                Some(Ok(event)) => view.take(event),
                Some(Err(_)) => match feed.next().await {
                    None => return Ok(()),
                    other => return violated(promise, format!("after the error came {other:?}")),
                },
                None => return violated(promise, "the feed ended without an error".into()),
            }
        }
        match all.iter().find(|name| !view.seen.contains_key(*name)) {
            None => Ok(()),
            Some(name) => violated(promise, format!("{name} is missing in what it has read")),
        }
    }

    pub(super) async fn one_bad_object_ends_nothing(&self) -> Kept {
        const PROMISE: &str = "one bad object is rejected, keeps its last state and ends nothing";
        self.world.put("g", 1).await;
        let (mut feed, mut view) = self.open();
        self.complete(PROMISE, &mut feed, &mut view).await?;
        let before = view.seen.get("g").cloned();
        if !self.world.corrupt("g").await {
            return Ok(None);
        }
        for _ in 0..ROUNDS {
            // All others go on.
            self.pass(PROMISE, &mut feed, &mut view).await?;
            if view.rejections > 0 {
                break;
            }
        }
        if view.rejections == 0 {
            return violated(PROMISE, "it was not rejected".into());
        }
        if view.seen.get("g") != before.as_ref() {
            return violated(PROMISE, "it was told to be gone or changed".into());
        }
        drop(feed);
        let (mut feed, mut view) = self.open();
        self.complete(PROMISE, &mut feed, &mut view).await?;
        if view.rejections == 0 {
            return violated(PROMISE, "a snapshot says nothing of it and is complete".into());
        }
        self.world.put("g", 4).await;
        for _ in 0..ROUNDS {
            self.pass(PROMISE, &mut feed, &mut view).await?;
            if view.seen.contains_key("g") {
                return Ok(Some(PROMISE));
            }
        }
        violated(PROMISE, "it was mended, and that was not told".into())
    }

    pub(super) async fn a_status_wakes_nobody(&self) -> Kept {
        const PROMISE: &str = "a status is written for the state that it is about, and wakes nobody";
        if !self.world.has_statuses() || !self.capabilities.status_write_back {
            return Ok(None);
        }
        self.world.put("s", 1).await;
        let (mut feed, mut view) = self.open();
        self.complete(PROMISE, &mut feed, &mut view).await?;
        let (Some(key), Some((_, version))) = (view.keys.get("s").cloned(), view.seen.get("s").cloned())
        else {
            return violated(PROMISE, "the object is not there".into());
        };
        let status = ObjectStatus { key, version, json: br#"{"ready":true}"#.to_vec() };
        if let Err(error) = self.source.write_status(status.clone()).await {
            return violated(PROMISE, format!("it was not written: {error}"));
        }
        view.put.clear();
        // What was before these is told before them, or with them.
        for _ in 0..2 {
            self.pass(PROMISE, &mut feed, &mut view).await?;
        }
        // With a generation, a reader can tell statuses from other changes.
        let wakes = |(name, before, after): &(String, Option<i64>, i64)| {
            name == "s" && (*after == 0 || *before != Some(*after))
        };
        if view.put.iter().any(wakes) {
            return violated(PROMISE, "it was told as a change of the object".into());
        }
        drop(feed);
        self.world.put("s", 2).await;
        match self.source.write_status(status).await {
            Err(Error::Expired(_)) => Ok(Some(PROMISE)),
            other => violated(PROMISE, format!("one for a state of the past: {other:?}")),
        }
    }

    async fn put_many(&self) {
        for number in MANY {
            self.world.put(&format!("m{number}"), number).await;
        }
    }

    fn open(&self) -> (Feed, View) {
        (self.source.open(Start::Snapshot(Freshness::Newest)), View::default())
    }

    /// Reads the first object of a snapshot.
    async fn begin(&self, promise: &'static str, feed: &mut Feed, view: &mut View) -> Result<(), Violation> {
        while view.mentioned == 0 && view.complete == 0 {
            view.take(next(promise, feed).await?);
        }
        Ok(())
    }

    /// Reads a snapshot to its end.
    async fn complete(
        &self,
        promise: &'static str,
        feed: &mut Feed,
        view: &mut View,
    ) -> Result<(), Violation> {
        while view.complete == 0 {
            view.take(next(promise, feed).await?);
        }
        Ok(())
    }

    /// Changes an object, and follows the feed until it tells of that.
    async fn pass(&self, promise: &'static str, feed: &mut Feed, view: &mut View) -> Result<(), Violation> {
        let before = view.seen.get("z").cloned();
        self.world.put("z", self.passed.get()).await;
        self.passed.set(self.passed.get() + 1);
        while view.seen.get("z") == before.as_ref() {
            if let Follow::Poll(_) = self.capabilities.follow {
                let complete = view.complete;
                *feed = self.open().0;
                while view.complete == complete {
                    view.take(next(promise, feed).await?);
                }
            } else {
                view.take(next(promise, feed).await?);
            }
        }
        Ok(())
    }
}
