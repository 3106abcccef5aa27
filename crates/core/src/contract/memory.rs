use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use futures_util::stream;

use crate::contract::World;
use crate::{
    Capabilities, Document, Error, Event, Feed, Follow, Freshness, Key, Order, Projection, Reason, Rejection,
    Source, Start, Version,
};

/// A source in memory that keeps the contract, and misbehaves on request: for tests of readers of sources.
///
/// Its objects are `{"metadata": {...}, "spec": {"value": n}}`, or whatever [`put_json`](Self::put_json) is given.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    capabilities: Capabilities,
}

struct State {
    revision: u64,
    objects: BTreeMap<Key, (Stored, u64)>,
    /// Those of them that cannot be understood.
    corrupt: BTreeSet<Key>,
    log: Vec<(u64, bool, Stored)>,
    /// Positions before this are gone.
    oldest: u64,
    /// What the next feeds fail with instead of opening.
    refusals: VecDeque<Error>,
    feeds: Vec<Arc<Mutex<Channel>>>,
    opened: Vec<Start>,
}

/// An object as it is stored: its namespace, name and uid, and everything but its metadata.
#[derive(Clone)]
struct Stored {
    key: Key,
    uid: u64,
    owner: Option<String>,
    rest: String,
}

#[derive(Default)]
struct Channel {
    queue: VecDeque<Result<Event, Error>>,
    closed: bool,
    dropped: bool,
    waker: Option<Waker>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::following(Follow::Log)
    }
}

impl Memory {
    /// An empty source that follows by log.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty source that follows in the given way. Unless by log, a suspicious shrink has to be confirmed.
    pub fn following(follow: Follow) -> Self {
        let capabilities = Capabilities {
            order: Order::Total,
            follow,
            confirm_shrink: (follow != Follow::Log).then_some(0.5),
            status_write_back: false,
        };
        let state = State {
            revision: 0,
            objects: BTreeMap::new(),
            corrupt: BTreeSet::new(),
            log: Vec::new(),
            oldest: 0,
            refusals: VecDeque::new(),
            feeds: Vec::new(),
            opened: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), capabilities }
    }

    /// Creates or changes an object.
    pub fn put(&self, key: &Key, value: u64) {
        self.put_json(key, None, &format!(r#""spec":{{"value":{value}}}"#));
    }

    /// Creates or changes an object, given its owner's uid and the JSON members beside `metadata`.
    pub fn put_json(&self, key: &Key, owner: Option<&str>, members: &str) {
        let mut state = self.lock();
        state.revision += 1;
        let revision = state.revision;
        let uid = state.objects.get(key).map_or(revision, |(stored, _)| stored.uid);
        let stored = Stored { key: key.clone(), uid, owner: owner.map(Into::into), rest: members.into() };
        state.objects.insert(key.clone(), (stored.clone(), revision));
        state.corrupt.remove(key);
        self.record(&mut state, false, stored);
    }

    /// Deletes an object.
    pub fn delete(&self, key: &Key) {
        let mut state = self.lock();
        if let Some((stored, _)) = state.objects.remove(key) {
            state.corrupt.remove(key);
            state.revision += 1;
            self.record(&mut state, true, stored);
        }
    }

    /// Corrupts an object: it is rejected until it is put again.
    pub fn corrupt(&self, key: &Key) {
        let mut state = self.lock();
        state.revision += 1;
        let revision = state.revision;
        let Some((stored, at)) = state.objects.get_mut(key) else { return };
        *at = revision;
        let stored = stored.clone();
        state.corrupt.insert(key.clone());
        self.record(&mut state, false, stored);
    }

    /// Deletes and changes without telling anyone: as if it happened while nobody was connected. Log positions from
    /// before are gone.
    pub fn rewrite(&self, change: impl FnOnce(&Self)) {
        self.close_feeds();
        change(self);
        self.compact();
    }

    /// Makes all positions before the current one unusable.
    pub fn compact(&self) {
        let mut state = self.lock();
        state.revision += 1;
        state.oldest = state.revision;
        state.log.clear();
    }

    /// The next feed fails with this instead of opening. Several add up.
    pub fn refuse_next(&self, error: Error) {
        self.lock().refusals.push_back(error);
    }

    /// Closes all feeds in good order.
    pub fn close_feeds(&self) {
        for feed in std::mem::take(&mut self.lock().feeds) {
            push(&feed, None, true);
        }
    }

    /// Ends all feeds with an error.
    pub fn cut_feeds(&self, error: &Error) {
        for feed in std::mem::take(&mut self.lock().feeds) {
            push(&feed, Some(Err(error.clone())), true);
        }
    }

    /// Slips an event into all feeds.
    pub fn inject(&self, event: &Event) {
        for feed in &self.lock().feeds {
            push(feed, Some(Ok(event.clone())), false);
        }
    }

    /// The starts of all feeds so far.
    pub fn opened(&self) -> Vec<Start> {
        self.lock().opened.clone()
    }

    /// The number of open feeds.
    pub fn open_feeds(&self) -> usize {
        let mut state = self.lock();
        state.feeds.retain(|feed| !lock(feed).dropped);
        state.feeds.len()
    }

    /// The present objects, as a snapshot would deliver them.
    pub fn documents(&self) -> Vec<Document> {
        self.lock().objects.values().map(|(stored, revision)| stored.document(*revision)).collect()
    }

    /// The current revision.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, state: &mut State, deleted: bool, stored: Stored) {
        let revision = state.revision;
        state.log.push((revision, deleted, stored.clone()));
        state.feeds.retain(|feed| !lock(feed).dropped);
        let feeds = state.feeds.clone();
        for feed in feeds {
            match self.capabilities.follow {
                Follow::Log if !deleted && state.corrupt.contains(&stored.key) => {
                    let rejected = rejection(&stored.key).at(Some(Version::from(revision)));
                    push(&feed, Some(Ok(Event::Rejected(rejected))), false);
                }
                Follow::Log => push(&feed, Some(Ok(entry(revision, deleted, &stored))), false),
                Follow::Hints => {
                    state.snapshot().into_iter().for_each(|event| push(&feed, Some(Ok(event)), false));
                }
                Follow::Poll(_) => {}
            }
        }
    }
}

impl State {
    fn snapshot(&self) -> Vec<Event> {
        let items = self.objects.values().map(|(stored, revision)| {
            if self.corrupt.contains(&stored.key) {
                return Event::Rejected(rejection(&stored.key));
            }
            Event::Item(stored.document(*revision))
        });
        let end = Event::Complete(Version::from(self.revision));
        std::iter::once(Event::Begin).chain(items).chain([end]).collect()
    }

    fn begin(&self, start: &Start) -> Result<Vec<Event>, Error> {
        let too_old = |version: &Version| version.number().is_none_or(|number| number < self.oldest);
        let too_new = |version: &Version| version.number().is_some_and(|number| number > self.revision);
        match start {
            Start::Snapshot(Freshness::NotOlderThan(version)) if too_new(version) => {
                Err(Error::Expired(format!("{version} is too large")))
            }
            Start::Snapshot(_) => Ok(self.snapshot()),
            Start::Resume(version) if too_old(version) || too_new(version) => {
                Err(Error::Expired(format!("{version} is not available")))
            }
            Start::Resume(version) => Ok(self
                .log
                .iter()
                .filter(|(revision, ..)| Order::Total.is_older(version, &Version::from(*revision)))
                .map(|(revision, deleted, stored)| entry(*revision, *deleted, stored))
                .collect()),
        }
    }
}

impl Source for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn open(&self, start: Start) -> Feed {
        let mut state = self.lock();
        state.opened.push(start.clone());
        let mut channel = Channel::default();
        match state.refusals.pop_front().map_or_else(|| state.begin(&start), Err) {
            Ok(events) => {
                channel.queue.extend(events.into_iter().map(Ok));
                channel.closed = matches!(self.capabilities.follow, Follow::Poll(_));
            }
            Err(error) => {
                channel.queue.push_back(Err(error));
                channel.closed = true;
            }
        }
        let channel = Arc::new(Mutex::new(channel));
        if !lock(&channel).closed {
            state.feeds.push(Arc::clone(&channel));
        }
        let open = Open(channel);
        Box::pin(stream::poll_fn(move |context| {
            let mut channel = lock(&open.0);
            match channel.queue.pop_front() {
                Some(event) => Poll::Ready(Some(event)),
                None if channel.closed => Poll::Ready(None),
                None => {
                    channel.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
}

/// Notes when the feed is dropped.
struct Open(Arc<Mutex<Channel>>);

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.0).dropped = true;
    }
}

fn lock(channel: &Mutex<Channel>) -> MutexGuard<'_, Channel> {
    channel.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push(channel: &Mutex<Channel>, event: Option<Result<Event, Error>>, close: bool) {
    let mut channel = lock(channel);
    channel.queue.extend(event);
    channel.closed |= close;
    if let Some(waker) = channel.waker.take() {
        waker.wake();
    }
}

fn rejection(key: &Key) -> Rejection {
    Rejection::new(Some(key.clone()), Reason::Unreadable, "corrupt")
}

fn entry(revision: u64, deleted: bool, stored: &Stored) -> Event {
    let (document, position) = (stored.document(revision), Some(Version::from(revision)));
    if deleted { Event::Delete { document, position } } else { Event::Put { document, position } }
}

impl Stored {
    fn document(&self, revision: u64) -> Document {
        let mut json = format!(r#"{{"metadata":{{"name":"{}""#, self.key.name());
        if let Some(namespace) = self.key.namespace() {
            let _ = write!(json, r#","namespace":"{namespace}""#);
        }
        if let Some(owner) = &self.owner {
            let _ = write!(json, r#","ownerReferences":[{{"uid":"{owner}"}}]"#);
        }
        let _ = write!(json, r#","uid":"u-{}","resourceVersion":"{revision}"}},{}}}"#, self.uid, self.rest);
        match Document::read(json.as_bytes(), &Projection::default()) {
            Ok(document) => document,
            Err(error) => unreachable!("the test gave members that are not JSON: {error}"),
        }
    }
}

impl World for Memory {
    fn source(&self) -> impl Source {
        self.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        Self::put(self, &Key::new(None, name), value);
    }

    async fn delete(&self, name: &str) {
        Self::delete(self, &Key::new(None, name));
    }

    async fn expire(&self) -> bool {
        self.compact();
        true
    }

    async fn corrupt(&self, name: &str) -> bool {
        Self::corrupt(self, &Key::new(None, name));
        true
    }
}
