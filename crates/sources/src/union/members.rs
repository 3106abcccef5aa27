//! The feeds of the members; those that fail are opened again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use watchkeeper_core::{Error, Event, Feed, Follow, Freshness, Source, Start, Version};

/// After a failure, a member is opened again after this time; after twice as long each time, up to the longest.
const RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// A snapshot that has to be confirmed is followed by the next after this time.
const CONFIRM: Duration = Duration::from_secs(1);

/// A member and its feed.
pub(super) struct Member {
    pub(super) name: Arc<str>,
    source: Arc<dyn Source>,
    follow: Follow,
    state: State,
    /// In a row.
    failures: u32,
    /// Whether any of its feeds has said something.
    pub(super) heard: bool,
    /// Whether the feed that is open, or was last, was asked for a snapshot and has not completed it.
    reading: bool,
}

enum State {
    Open(Feed),
    Waiting(Pin<Box<Sleep>>, Start),
    /// Not yet opened.
    Idle,
}

/// What a feed says, or that it has ended.
pub(super) type Item = Option<Result<Event, Error>>;

impl Member {
    pub(super) fn new(name: Arc<str>, source: Arc<dyn Source>) -> Self {
        let follow = source.capabilities().follow;
        Self { name, source, follow, state: State::Idle, failures: 0, heard: false, reading: false }
    }

    pub(super) fn open(&mut self, start: Start) {
        self.reading = matches!(start, Start::Snapshot(_));
        self.state = State::Open(self.source.open(start));
    }

    /// Opens it in a while.
    fn open_after(&mut self, wait: Duration, start: Start) {
        self.state = State::Waiting(Box::pin(sleep_until(Instant::now() + wait)), start);
    }

    /// Takes a new snapshot, because objects are needed that are not at hand.
    pub(super) fn read_again(&mut self, position: Option<&Version>) {
        self.open_after(Duration::ZERO, snapshot(position));
    }

    /// Takes a new snapshot soon, because the last one is in doubt.
    pub(super) fn confirm(&mut self, position: Option<&Version>) {
        self.open_after(CONFIRM, snapshot(position));
    }

    /// Whether a snapshot is under way, or about to be.
    pub(super) fn is_reading(&self) -> bool {
        match &self.state {
            State::Waiting(_, start) => matches!(start, Start::Snapshot(_)),
            State::Open(_) => self.reading,
            State::Idle => false,
        }
    }

    /// The feed has ended. It is opened again where it stopped, or from the beginning if it cannot be resumed, or if `wanted`.
    pub(super) fn ended(&mut self, error: Option<&Error>, position: Option<&Version>, wanted: bool) {
        let resumes = self.follow == Follow::Log
            && !self.reading
            && !wanted
            && !matches!(error, Some(Error::Expired(_) | Error::Missing(_) | Error::Fatal(_)));
        let start = match (position, error) {
            (Some(position), _) if resumes => Start::Resume(position.clone()),
            // It could not even serve a snapshot of that version.
            (_, Some(Error::Expired(_))) if self.reading => Start::Snapshot(Freshness::Newest),
            _ => snapshot(position),
        };
        let wait = match (error, self.follow) {
            (None, Follow::Poll(interval)) => interval,
            (Some(Error::Throttled { after: Some(after), .. }), _) => self.back_off().max(*after),
            _ => self.back_off(),
        };
        self.open_after(wait, start);
    }

    fn back_off(&mut self) -> Duration {
        let wait = RETRY_DELAY.saturating_mul(1 << self.failures.min(16)).min(MAX_RETRY_DELAY);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// What it says next. Pending while it is not open.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Item> {
        if let State::Waiting(sleep, start) = &mut self.state {
            let start = start.clone();
            std::task::ready!(sleep.as_mut().poll(context));
            self.open(start);
        }
        let State::Open(feed) = &mut self.state else { return Poll::Pending };
        let item = std::task::ready!(feed.as_mut().poll_next(context));
        match &item {
            Some(Ok(event)) => {
                (self.heard, self.failures) = (true, 0);
                self.reading &= !matches!(event, Event::Complete(_));
            }
            Some(Err(_)) | None => self.state = State::Idle,
        }
        Poll::Ready(item)
    }
}

/// A snapshot that is not older than what is known.
fn snapshot(position: Option<&Version>) -> Start {
    match position {
        Some(position) => Start::Snapshot(Freshness::NotOlderThan(position.clone())),
        None => Start::Snapshot(Freshness::Any),
    }
}
