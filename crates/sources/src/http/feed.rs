//! The feed of a list: all items, then their changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tokio::time::Instant;
use watchkeeper_core::{Error, Event, Feed, Start};

use super::difference::Told;
use super::listing::{Asker, Listing, jittered};
use super::pace::Pace;
use super::settings::Settings;
use super::subscription::Subscription;

/// How long the first list waits for the stream of events. Where that is late, its opening is a reason to ask for the list again.
const STREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// Everything a feed does happens while it is polled; dropping it drops its connections.
pub(super) fn open(settings: Arc<Settings>, start: Start) -> Feed {
    if let Start::Resume(_) = start {
        let error = Error::Expired("a list has no log to resume".into());
        return Box::pin(stream::once(async { Err(error) }));
    }
    let subscription = Subscription::new(&settings);
    let feeding = Feeding {
        settings,
        asker: None,
        subscription,
        told: Told::default(),
        queue: VecDeque::new(),
        pace: Pace::default(),
        pause: Duration::ZERO,
    };
    let events = stream::unfold(Some(Box::new(feeding)), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => Some((Ok(event), Some(feeding))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding {
    settings: Arc<Settings>,
    /// Once the first list was asked for.
    asker: Option<Asker>,
    subscription: Option<Subscription>,
    told: Told,
    queue: VecDeque<Event>,
    pace: Pace,
    /// How long a service that was asked to wait is left alone before the next request.
    pause: Duration,
}

impl Feeding {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            match &mut self.asker {
                None => {
                    let asker = Asker::new(&self.settings)?;
                    // What changes after the list was read has to come as an event, so that the events come first.
                    if let Some(subscription) = &mut self.subscription {
                        let timeout = STREAM_TIMEOUT.min(self.settings.timeout);
                        let _ = tokio::time::timeout(timeout, subscription.tried(asker.transport())).await;
                    }
                    let asker = self.asker.insert(asker);
                    match asker.ask(&self.settings).await? {
                        Listing::Items(items) => self.queue.extend(self.told.everything(items)),
                        Listing::Unchanged => {
                            let reason = "the first answer says that nothing has changed".into();
                            return Err(Error::Unavailable { answered: true, reason });
                        }
                    }
                }
                Some(asker) => {
                    let pause = match self.settings.waiting {
                        Some(_) => self.pause,
                        None => self.settings.interval,
                    };
                    if !pause.is_zero() {
                        let due = Instant::now() + jittered(pause);
                        match &mut self.subscription {
                            // Whether an event came or the time is up, it is time to look.
                            Some(subscription) => {
                                let _ =
                                    tokio::time::timeout_at(due, subscription.hint(asker.transport())).await;
                            }
                            None => tokio::time::sleep_until(due).await,
                        }
                    }
                    let asked = Instant::now();
                    if let Listing::Items(items) = asker.ask(&self.settings).await? {
                        self.queue.extend(self.told.news(items));
                    }
                    let news = !self.queue.is_empty();
                    self.pause = self.pace.answered(asked.elapsed(), news, self.settings.interval);
                }
            }
        }
    }
}
