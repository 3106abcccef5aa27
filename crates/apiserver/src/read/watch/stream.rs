//! One watch, as a stream of bytes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream, StreamExt, stream};
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};
use watchkeeper_storage::{Entry, Error, Revision, Storage, Update, Watch};

use super::encode::{self, EventType};
use super::feed::{Changed, Failed, Feed, WatchUpdate};
use crate::conversion::Converter;
use crate::read::filter::Filter;
use crate::read::render::Form;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::stopping::Stopping;

/// How often a watcher that wants bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before its end a watch says once more how far it has come.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How many bytes are put together to be sent at once.
const BATCH: usize = 64 << 10;

/// A line of this many bytes is not put together with others. All watchers share its bytes, so that a thousand of them who do
/// not read hold one large object, and not a copy of it each.
const SHARED: usize = 8 << 10;

/// What writing to one watcher costs, more or less, whatever is written. With many watchers, that is most of what a change costs;
/// so none of them is written to again before all could have been, and what happens in between is told at once. No
/// more than a processor is spent on it, and what is told to a few watchers is never held back.
const COST: Duration = Duration::from_micros(10);

/// Where several changes are told at once anyway, gathering a few more delays none of them by much: up to so many times as
/// long is taken, and so as much less spent.
const GATHER_FACTOR: usize = 4;

/// Times below this cannot be slept.
const SHORTEST_REST: Duration = Duration::from_millis(1);

/// A change is not held back longer than this, however many watchers there are.
const LONGEST_REST: Duration = Duration::from_millis(20);

/// Where a watch begins.
#[derive(Clone, Debug)]
pub(crate) enum From {
    /// With the present state, each object as if it was just added.
    State {
        objects: VecDeque<Arc<Entry>>,
        at: Revision,
        /// Whether the end of the present state is marked by a bookmark.
        marked: bool,
    },
    /// With what happened after this revision.
    Revision(Revision),
}

/// What a client asks of a watch.
pub(crate) struct Asked {
    pub(crate) resource: Arc<Resource>,
    /// What the keys watched begin with.
    pub(crate) prefix: String,
    pub(crate) filter: Filter,
    pub(crate) form: Form,
    pub(crate) bookmarks: bool,
    pub(crate) lasting: Duration,
}

/// A running watch.
///
/// Nothing is done ahead of the client: what it has not taken yet waits in the storage, which keeps a bounded number of
/// changes for it and ends the watch when that is not enough.
pub(crate) struct Watcher {
    asked: Asked,
    from: From,
    feed: Feed,
    /// The line the stream ends with, once that is decided.
    last: Option<Bytes>,
    /// What was gathered and is not sent yet.
    gathered: VecDeque<Bytes>,
    /// The newest revision the client has been told of.
    revision: Revision,
    bookmarks: Option<Interval>,
    farewell: Option<Pin<Box<Sleep>>>,
    deadline: Pin<Box<Sleep>>,
    stopping: Stopping,
    ended: bool,
    /// Whether the client has been told of an object.
    has_told: AtomicBool,
    /// When the client was last told of a change.
    told_at: Option<Instant>,
    /// Runs while changes are gathered.
    rest: Option<Pin<Box<Sleep>>>,
}

impl Watcher {
    /// Starts to watch. What is too old to be watched from is told in the stream, as kube-apiserver does it.
    pub(crate) async fn start(
        storage: &dyn Storage,
        converter: &Arc<Converter>,
        asked: Asked,
        from: From,
        stopping: Stopping,
    ) -> Result<Self, StatusError> {
        let after = match &from {
            From::State { at, .. } => *at,
            From::Revision(revision) => *revision,
        };
        let (watch, last) = match storage.watch(&asked.prefix, after).await {
            Ok(watch) => (watch, None),
            Err(Error::Compacted { oldest }) => (
                Watch::new(Nothing),
                Some(error(
                    asked.form,
                    &StatusError::expired(format!("too old resource version: {after} ({oldest})")),
                )),
            ),
            Err(Error::Future { current }) => return Err(StatusError::version_too_large(after, current)),
            Err(error) => return Err(error.into()),
        };
        let deadline = Box::pin(tokio::time::sleep(asked.lasting));
        let bookmarks = asked.bookmarks.then(|| {
            let mut interval =
                tokio::time::interval_at(Instant::now() + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        let farewell = (asked.bookmarks && asked.lasting > LAST_BOOKMARK)
            .then(|| Box::pin(tokio::time::sleep_until(deadline.deadline() - LAST_BOOKMARK)));
        let ended = false;
        let has_told = AtomicBool::new(false);
        asked.resource.frames.enter();
        let feed = Feed::new(watch, converter, &asked.resource, !asked.filter.is_empty());
        Ok(Self {
            asked,
            from,
            feed,
            last,
            gathered: VecDeque::new(),
            revision: after,
            bookmarks,
            farewell,
            deadline,
            stopping,
            ended,
            has_told,
            told_at: None,
            rest: None,
        })
    }

    /// The bytes of the response.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(self, |mut watcher| async move {
            let bytes = watcher.next().await?;
            Some((bytes, watcher))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.gathered.pop_front() {
            return Some(bytes);
        }
        if self.ended {
            return None;
        }
        if let From::State { objects, at, marked } = &mut self.from {
            let at = *at;
            if objects.is_empty() {
                let marked = *marked;
                self.from = From::Revision(at);
                if marked {
                    return Some(self.bookmark(at, true));
                }
            } else {
                return Some(self.state());
            }
        }
        if let Some(last) = self.last.take() {
            self.ended = true;
            return Some(last);
        }
        self.finish_rest().await;
        let first = loop {
            if let Some(line) = self.step().await? {
                break line;
            }
        };
        let count = self.gather(first);
        self.begin_rest(count);
        self.gathered.pop_front()
    }

    /// Sees to it that changes are gathered if they come too fast for the number of watchers. So many were just told at once.
    fn begin_rest(&mut self, count: usize) {
        if let Some(rest) = rest(self.asked.resource.frames.watchers(), count) {
            let now = Instant::now();
            let before = self.told_at.replace(now);
            let is_busy = before.is_some_and(|before| now - before < rest * 2);
            self.rest = is_busy.then(|| Box::pin(tokio::time::sleep_until(now + rest)));
        }
    }

    async fn finish_rest(&mut self) {
        if let Some(mut rest) = self.rest.take() {
            tokio::select! {
                () = self.stopping.wait() => {}
                () = &mut self.deadline => {}
                () = &mut rest => {}
            }
        }
    }

    /// A piece of the present state.
    fn state(&mut self) -> Bytes {
        let mut batch = BytesMut::new();
        while batch.len() < BATCH {
            let From::State { objects, .. } = &mut self.from else { break };
            let Some(entry) = objects.pop_front() else { break };
            let first = !self.has_told.swap(true, Ordering::Relaxed);
            let Asked { resource, form, .. } = &self.asked;
            match encode::encode(resource, *form, EventType::Added, &entry, entry.modified, first) {
                Ok(bytes) => batch.extend_from_slice(&bytes),
                Err(unreadable) => {
                    batch.extend_from_slice(&error(*form, &unreadable.into()));
                    self.ended = true;
                    break;
                }
            }
        }
        batch.freeze()
    }

    /// Waits for something to tell. `None` ends the stream, `Some(None)` is nothing to tell after all.
    async fn step(&mut self) -> Option<Option<Bytes>> {
        tokio::select! {
            biased;
            () = self.stopping.wait() => None,
            () = &mut self.deadline => None,
            () = farewell(&mut self.farewell) => {
                self.farewell = None;
                self.feed.request_progress();
                Some(None)
            }
            () = tick(&mut self.bookmarks) => {
                self.feed.request_progress();
                Some(None)
            }
            update = self.feed.next() => self.encode_update(update),
        }
    }

    /// Gathers a line and what else is ready to be told, so that many changes go out at once, and says how many there are.
    fn gather(&mut self, first: Bytes) -> usize {
        let (mut gathered, mut batch, mut count) = (first.len(), BytesMut::new(), 1);
        let mut line = Some(first);
        while !self.ended && gathered < BATCH {
            let Some(update) = self.feed.next().now_or_never() else { break };
            self.ended = update.is_none();
            let Some(Some(next)) = self.encode_update(update) else { continue };
            gathered += next.len();
            count += 1;
            self.add(line.replace(next), &mut batch);
        }
        // Mostly there is one line, which is not copied.
        if batch.is_empty() {
            self.gathered.extend(line);
        } else {
            self.add(line, &mut batch);
            self.gathered.extend(Some(batch.freeze()).filter(|batch| !batch.is_empty()));
        }
        count
    }

    /// Puts a line behind those that were gathered.
    fn add(&mut self, line: Option<Bytes>, batch: &mut BytesMut) {
        let Some(line) = line else { return };
        if line.len() < SHARED {
            batch.extend_from_slice(&line);
            return;
        }
        let before = batch.split().freeze();
        self.gathered.extend([before, line].into_iter().filter(|bytes| !bytes.is_empty()));
    }

    fn encode_update(&mut self, update: Option<Result<WatchUpdate, Failed>>) -> Option<Option<Bytes>> {
        match update {
            None => None,
            Some(Ok(WatchUpdate::Progress(revision))) => {
                self.revision = revision;
                Some(Some(self.bookmark(revision, false)))
            }
            Some(Ok(WatchUpdate::Change(change))) => {
                self.revision = change.event.revision;
                match self.event(&change) {
                    Ok(line) => Some(line),
                    Err(failure) => Some(Some(self.end(&failure))),
                }
            }
            Some(Err(Failed::Storage(Error::Closed))) => None,
            Some(Err(Failed::Storage(Error::Lagged { oldest }))) => {
                let message = format!("too old resource version: {} ({oldest})", self.revision);
                Some(Some(self.end(&StatusError::expired(message))))
            }
            Some(Err(Failed::Storage(error))) => Some(Some(self.end(&error.into()))),
            Some(Err(Failed::Conversion(failure))) => Some(Some(self.end(&failure))),
        }
    }

    /// The last thing that is told.
    fn end(&mut self, failure: &StatusError) -> Bytes {
        self.ended = true;
        error(self.asked.form, failure)
    }

    /// What a change is to this watcher: objects that begin or cease to match appear and go away.
    fn event(&self, change: &Changed) -> Result<Option<Bytes>, StatusError> {
        let event = change.shown();
        let resource = &self.asked.resource;
        let matches = |entry: Option<&Arc<Entry>>| match entry {
            Some(entry) => self.asked.filter.matches(resource, entry),
            None => Ok(false),
        };
        let (before, after) = if self.asked.filter.is_empty() {
            (event.previous().is_some(), event.entry().is_some())
        } else {
            (matches(event.previous())?, matches(event.entry())?)
        };
        let event_type = match (before, after) {
            (false, false) => return Ok(None),
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
        };
        let first = self.is_first();
        let frame = resource.frames.of(&change.event);
        Ok(Some(encode::encode_frame(&frame, event, resource, self.asked.form, event_type, first)?))
    }

    /// Whether nothing has been told so far. From now on, something has.
    fn is_first(&self) -> bool {
        !self.has_told.swap(true, Ordering::Relaxed)
    }

    fn bookmark(&self, revision: Revision, end_of_state: bool) -> Bytes {
        let resource = &self.asked.resource;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end_of_state {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata});
        let form = self.asked.form;
        // Every kind that is watched in protobuf has an encoding.
        encode::frame("BOOKMARK", &form.shape.of_bookmark(object), form.format).unwrap_or_default()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.asked.resource.frames.leave();
    }
}

/// How long changes are gathered for so many watchers, if so many changes were just told at once.
fn rest(watchers: usize, count: usize) -> Option<Duration> {
    let all = COST * u32::try_from(watchers).unwrap_or(u32::MAX);
    (all >= SHORTEST_REST).then(|| (all * count.clamp(1, GATHER_FACTOR) as u32).min(LONGEST_REST))
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

async fn farewell(sleep: &mut Option<Pin<Box<Sleep>>>) {
    match sleep {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

/// What tells of a failure.
fn error(form: Form, failure: &StatusError) -> Bytes {
    encode::frame("ERROR", &failure.status(), form.format).unwrap_or_default()
}

/// A watch of nothing.
struct Nothing;

impl watchkeeper_storage::Watching for Nothing {
    fn poll_next(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Update, Error>>> {
        std::task::Poll::Ready(None)
    }

    fn request_progress(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_held_back_only_from_many_and_longer_where_several_come_at_once() {
        let milliseconds = |watchers, count| rest(watchers, count).map(|rest| rest.as_millis());
        assert_eq!(milliseconds(99, 50), None);
        assert_eq!([1, 2, 4, 50].map(|count| milliseconds(100, count)), [Some(1), Some(2), Some(4), Some(4)]);
        assert_eq!([1, 4].map(|count| milliseconds(1_000, count)), [Some(10), Some(20)]);
        assert_eq!(milliseconds(usize::MAX, usize::MAX), Some(20));
    }
}
