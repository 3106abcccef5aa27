//! The feed of another source, read again after each delivery.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use watchkeeper_core::{Error, Event, Feed, Follow, Freshness, Key, Source, Start};

use super::Payload;
use super::states::{BELIEVED, Delivered, States};

/// Deliveries that come together are one reason to look.
const TOGETHER: Duration = Duration::from_millis(20);

pub(super) fn open(
    source: Arc<dyn Source>,
    deliveries: broadcast::Receiver<Bytes>,
    payload: Option<Arc<Payload>>,
    start: Start,
) -> Feed {
    let follow = source.capabilities().follow;
    if follow != Follow::Log
        && let Start::Resume(_) = start
    {
        let error = Error::Expired("there is no log to resume".into());
        return Box::pin(stream::once(async { Err(error) }));
    }
    let feeding = Feeding {
        feed: Some(source.open(start)),
        source,
        follow,
        deliveries,
        payload,
        states: States::default(),
        in_snapshot: false,
        look_at: None,
        queue: VecDeque::new(),
        later: HashSet::new(),
    };
    let events = stream::unfold(Some(Box::new(feeding)), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => event.map(|event| (Ok(event), Some(feeding))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding {
    source: Arc<dyn Source>,
    follow: Follow,
    /// `None` between two feeds of a source that polls.
    feed: Option<Feed>,
    deliveries: broadcast::Receiver<Bytes>,
    payload: Option<Arc<Payload>>,
    states: States,
    in_snapshot: bool,
    /// When to begin a new feed.
    look_at: Option<Instant>,
    queue: VecDeque<Event>,
    /// The objects of which something was delivered while a snapshot was taken.
    later: HashSet<Key>,
}

/// What a turn waits for.
enum Turn {
    Delivery(Result<Bytes, RecvError>),
    Event(Option<Result<Event, Error>>),
    Look,
}

impl Feeding {
    async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            match self.turn().await {
                Turn::Delivery(Ok(body)) => self.delivered(&body),
                // Some were lost, as they may be on their way here.
                Turn::Delivery(Err(_)) => self.look_after(TOGETHER),
                Turn::Look => {
                    self.look_at = None;
                    self.feed = Some(self.source.open(Start::Snapshot(Freshness::Newest)));
                }
                Turn::Event(Some(event)) => self.take(event?),
                Turn::Event(None) => match self.follow {
                    Follow::Poll(interval) if !self.in_snapshot => {
                        self.feed = None;
                        self.look_after(interval);
                    }
                    _ => return Ok(None),
                },
            }
        }
    }

    async fn turn(&mut self) -> Turn {
        // A snapshot that has begun is taken to its end: it may be what was asked for.
        let look_at = self.look_at.filter(|_| !self.in_snapshot);
        let look = async {
            match look_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let event = async {
            match &mut self.feed {
                Some(feed) => feed.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            delivery = self.deliveries.recv() => Turn::Delivery(delivery),
            () = look => Turn::Look,
            event = event => Turn::Event(event),
        }
    }

    fn look_after(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.look_at = Some(self.look_at.map_or(at, |look_at| look_at.min(at)));
    }

    fn delivered(&mut self, body: &[u8]) {
        let Some(payload) = self.payload.clone() else { return self.look_after(TOGETHER) };
        match self.states.delivered(&payload, body, std::time::Instant::now()) {
            Delivered::Hint => self.look_after(TOGETHER),
            Delivered::Old => {}
            Delivered::News(key) => {
                // The other source has the last word.
                self.look_after(BELIEVED);
                if self.in_snapshot {
                    self.later.insert(key);
                } else {
                    self.queue.extend(self.states.newest(&key));
                }
            }
        }
    }

    /// Takes an event of the other source.
    fn take(&mut self, event: Event) {
        match (event, self.payload.clone()) {
            (Event::Begin, _) => {
                self.in_snapshot = true;
                self.states.begin();
                self.queue.push_back(Event::Begin);
            }
            (Event::Item(document), Some(payload)) => {
                self.queue.extend(
                    self.states.listed(&payload, document, std::time::Instant::now()).map(Event::Item),
                );
            }
            (Event::Put { document, position }, Some(payload)) => {
                let newest = self.states.listed(&payload, document, std::time::Instant::now());
                self.queue.extend(newest.map(|document| Event::Put { document, position }));
            }
            (Event::Complete(version), payload) => {
                self.in_snapshot = false;
                if payload.is_some() {
                    self.queue
                        .extend(self.states.unlisted(std::time::Instant::now()).into_iter().map(Event::Item));
                }
                if self.states.is_unconfirmed() {
                    self.look_after(BELIEVED);
                }
                self.queue.push_back(Event::Complete(version));
                // Unless the snapshot had something newer: it came later than what was delivered.
                self.queue.extend(self.later.drain().filter_map(|key| self.states.newest(&key)));
            }
            (event, _) => self.queue.push_back(event),
        }
    }
}
