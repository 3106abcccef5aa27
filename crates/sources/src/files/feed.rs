//! The asynchronous shell around a [`Tracker`]: waits, lets it scan, and hands its events on.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tokio::time::Instant;
use watchkeeper_core::{Error, Event, Feed, Start};

use super::hints::Inbox;
use super::round::Round;
use super::settings::Settings;
use super::tracker::Tracker;

/// Everything that a feed holds goes when it is dropped, at the latest when the file that is being read has been read.
pub(super) fn open(settings: Arc<Settings>, start: Start) -> Feed {
    if let Start::Resume(_) = start {
        let error = Error::Expired("files have no log to resume".into());
        return Box::pin(stream::once(async { Err(error) }));
    }
    let inbox = Arc::new(Inbox::default());
    let tracker = Some(Tracker::new(settings, Arc::clone(&inbox)));
    let feeding = Feeding { tracker, inbox, stage: Stage::Begin, queue: VecDeque::new() };
    let events = stream::unfold(Some(feeding), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => Some((Ok(event), Some(feeding))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding {
    /// Away while it looks.
    tracker: Option<Tracker>,
    inbox: Arc<Inbox>,
    stage: Stage,
    queue: VecDeque<Event>,
}

#[derive(Clone, Copy)]
enum Stage {
    Begin,
    Snapshot,
    Follow { wake_at: Instant },
}

impl Feeding {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            self.stage = match self.stage {
                Stage::Begin => {
                    self.look(Tracker::begin).await?;
                    self.queue.push_back(Event::Begin);
                    Stage::Snapshot
                }
                Stage::Snapshot => {
                    let ((events, last), wake_at) = self.look(Tracker::batch).await?;
                    self.queue.extend(events);
                    if last { Stage::Follow { wake_at } } else { Stage::Snapshot }
                }
                Stage::Follow { wake_at } => {
                    // Whether something was told or only time has passed, the tracker knows what to do.
                    let _ = tokio::time::timeout_at(wake_at, self.inbox.arrival()).await;
                    match self.look(Tracker::round).await? {
                        (Round::Anew, _) => Stage::Begin,
                        (Round::Differences(events), wake_at) => {
                            self.queue.extend(events);
                            Stage::Follow { wake_at }
                        }
                    }
                }
            };
        }
    }

    /// Has the tracker do something that may block; says when it wants to be asked again.
    async fn look<T: Send + 'static>(
        &mut self,
        what: impl FnOnce(&mut Tracker) -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, Instant), Error> {
        let lost =
            || Error::Unavailable { answered: false, reason: "the files were not read to the end".into() };
        let mut tracker = self.tracker.take().ok_or_else(lost)?;
        let looked = tokio::task::spawn_blocking(move || {
            let found = what(&mut tracker);
            (found, tracker)
        });
        match looked.await {
            Ok((found, tracker)) => {
                let wake_at = Instant::from_std(tracker.wake_at());
                self.tracker = Some(tracker);
                Ok((found?, wake_at))
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(lost()),
            },
        }
    }
}
