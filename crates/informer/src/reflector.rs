//! The shell around [`Plan`]: opens feeds, applies what they deliver, sleeps.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep, sleep_until};
use watchkeeper_core::{
    Capabilities, Error, Event, Freshness, Key, Order, Rejection, Source, Start, Version,
};
use watchkeeper_supervision::Entry as Feed;

use crate::dictionary::Dictionary;
use crate::faults::Faults;
use crate::journal::Entry;
use crate::plan::{End, Ended, Plan};
use crate::shared::{Origin, Shared, Write};
use crate::status::Phase;

/// Keeps one partition of a store equal to one source, for as long as it is polled.
pub(crate) struct Reflector {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) capabilities: Capabilities,
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: u16,
    pub(crate) plan: Plan,
    /// Whether it has run before.
    pub(crate) begun: bool,
    /// How much the source has drifted, as far as that was counted.
    pub(crate) drift: u64,
    /// What was rejected and not mended since.
    pub(crate) faults: Faults,
    pub(crate) report: Box<dyn Fn(Report) + Send + Sync>,
}

/// What a reflector tells about itself.
#[derive(Debug)]
pub(crate) enum Report {
    Phase(Phase),
    /// A snapshot is complete.
    Synced,
    /// The feed delivers.
    Alive,
    Failed(Error),
}

/// Events that are ready are applied together, up to this many. Bounds what is in flight during a snapshot.
const BATCH: usize = 64;

/// What has been made of the feed that is open.
struct Progress {
    origin: Origin,
    resumed: bool,
    in_snapshot: bool,
    /// When the log began.
    following_since: Option<Instant>,
    entries: u64,
    /// Whether it was reported that the feed delivers.
    alive: bool,
    /// Something in the snapshot could not even be named.
    lossy: bool,
    writes: Vec<Write>,
    position: Option<Version>,
}

impl Reflector {
    /// Runs until it is dropped. Panics of the source are failures like others; those outside of it begin the run again.
    pub(crate) async fn supervised(self) {
        let supervisor = self.shared.metrics.supervisor().clone();
        let name = format!("informer {}", self.shared.name);
        let feed = supervisor.enter(&name);
        supervisor.run_with(&name, (self, feed), |(reflector, feed)| Box::pin(reflector.run(feed))).await;
    }

    async fn run(&mut self, feed: &Feed) {
        let mut start = match std::mem::replace(&mut self.begun, true) {
            false => self.plan.start(),
            true => self.plan.next(&panicked(), Instant::now()).start,
        };
        loop {
            feed.begins();
            let ended = AssertUnwindSafe(self.follow(start)).catch_unwind().await.unwrap_or_else(|_| {
                feed.panicked(None);
                panicked()
            });
            if let End::Failed(error) = &ended.end {
                self.shared.metrics.error(error.class());
                tracing::warn!(informer = %self.shared.name, source = self.source.name(), %error, "feed failed");
                (self.report)(Report::Failed(error.clone()));
            }
            let next = self.plan.next(&ended, Instant::now());
            if let Some(reason) = next.reason {
                self.shared.metrics.resnapshot(reason);
                tracing::debug!(informer = %self.shared.name, source = self.source.name(), reason, "new snapshot");
            }
            if let Some(journal) = &self.shared.journal {
                journal.interrupted(ended.end, &next);
                journal.write().await;
            }
            if !next.wait.is_zero() {
                (self.report)(Report::Phase(Phase::Waiting));
                sleep(next.wait).await;
            }
            start = next.start;
        }
    }

    /// Opens a feed and stays with it to its end.
    async fn follow(&mut self, start: Start) -> Ended {
        let mut progress = self.open(&start);
        let mut feed = self.source.open(start).ready_chunks(BATCH);
        let end = loop {
            let events = tokio::select! {
                biased;
                () = until(self.plan.leave_at()), if !progress.in_snapshot => break End::Left,
                events = feed.next() => events,
            };
            let Some(events) = events else { break End::Closed };
            if let ControlFlow::Break(error) = self.apply(&mut progress, events) {
                break End::Failed(error);
            }
            self.count_drift();
            if let Some(journal) = &self.shared.journal {
                journal.write().await;
            }
            self.learn_dictionary().await;
            // A source that is always ready must not keep the thread to itself.
            tokio::task::consume_budget().await;
        };
        Ended {
            end,
            following: progress.following_since.is_some(),
            followed_for: progress.following_since.map(|since| since.elapsed()).unwrap_or_default(),
            entries: progress.entries,
        }
    }

    /// Counts what the source found only by looking at everything. A source that begins anew counts from 0.
    fn count_drift(&mut self) {
        let drift = self.source.drift();
        let new = drift.checked_sub(self.drift).unwrap_or(drift);
        self.drift = drift;
        if new > 0 {
            self.shared.metrics.drift.inc_by(new);
            tracing::warn!(informer = %self.shared.name, source = self.source.name(), new, "a rescan found changes that the source had not reported");
        }
    }

    fn open(&mut self, start: &Start) -> Progress {
        let resumed = matches!(start, Start::Resume(_));
        let metrics = &self.shared.metrics;
        if resumed { &metrics.resumes } else { &metrics.snapshots }.inc();
        (self.report)(Report::Phase(if resumed { Phase::Following } else { Phase::Snapshot }));
        Progress {
            origin: Origin {
                partition: self.partition,
                order: self.capabilities.order,
                overrules: *start == Start::Snapshot(Freshness::Newest),
            },
            resumed,
            in_snapshot: false,
            following_since: resumed.then(Instant::now),
            entries: 0,
            alive: false,
            lossy: false,
            writes: Vec::new(),
            position: None,
        }
    }

    /// Applies what is ready as one batch, broken up only where a snapshot begins or ends.
    fn apply(&mut self, progress: &mut Progress, events: Vec<Result<Event, Error>>) -> ControlFlow<Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.shared.metrics.last_event.set(now.as_secs_f64());
        if progress.resumed && !progress.alive && events.first().is_some_and(Result::is_ok) {
            self.shared.journal.iter().for_each(|journal| journal.note(Entry::Resumed));
        }
        for event in events {
            match event {
                Ok(event) => self.take(progress, event)?,
                Err(error) => {
                    self.flush(progress);
                    return ControlFlow::Break(error);
                }
            }
        }
        self.flush(progress);
        if self.plan.is_unconfirmed() && !progress.in_snapshot {
            let (gone, held) = self.shared.shrinkage(self.partition);
            self.plan.reconsider(gone, held);
        }
        if progress.following_since.is_some() && !std::mem::replace(&mut progress.alive, true) {
            (self.report)(Report::Alive);
        }
        ControlFlow::Continue(())
    }

    fn take(&mut self, progress: &mut Progress, event: Event) -> ControlFlow<Error> {
        match event {
            Event::Begin => {
                self.flush(progress);
                self.faults.begin();
                self.shared.begin(self.partition);
                progress.in_snapshot = true;
                progress.lossy = false;
            }
            Event::Item(document) => {
                self.mend(&document.header.key);
                progress.writes.push(Write::List(document));
            }
            Event::Complete(version) => return self.complete(progress, version),
            Event::Put { document, position } => {
                self.mend(&document.header.key);
                if self.plan.is_unconfirmed() && !progress.in_snapshot {
                    // Of those that the snapshot lacked, this one is there.
                    progress.writes.push(Write::Keep(document.header.key.clone()));
                }
                if self.advance(progress, position) {
                    progress.writes.push(Write::Put(document));
                }
            }
            Event::Delete { document, position } => {
                self.mend(&document.header.key);
                if self.advance(progress, position) {
                    progress.writes.push(Write::Delete(document));
                }
            }
            Event::Gone { key, position } => {
                self.mend(&key);
                if self.advance(progress, position) {
                    progress.writes.push(Write::Gone(key));
                }
            }
            // Nothing moved: the source only says that it is there.
            Event::Position(position) if self.plan.position() == Some(&position) => {}
            Event::Position(position) => {
                self.advance(progress, Some(position));
            }
            Event::Rejected(rejection) => {
                reject(&self.shared, self.source.name(), &rejection);
                self.faults.note(rejection.key.as_ref());
                match (&rejection.key, progress.in_snapshot) {
                    (Some(key), true) => progress.writes.push(Write::Keep(key.clone())),
                    (Some(_), false) if rejection.reason.is_object_fault() => {
                        self.advance(progress, rejection.position);
                    }
                    (None, true) => progress.lossy = true,
                    (_, false) => self.plan.doubt(Instant::now()),
                }
            }
            // An event that this version does not know may have been a change: another snapshot is due.
            _ if progress.in_snapshot => progress.lossy = true,
            _ => self.plan.doubt(Instant::now()),
        }
        ControlFlow::Continue(())
    }

    /// Notes that nothing is wrong with an object any more, if something was.
    fn mend(&mut self, key: &Key) {
        if self.faults.mend(key) {
            self.note_mended(key.clone());
        }
    }

    fn note_mended(&self, key: Key) {
        self.shared.journal.iter().for_each(|journal| journal.note(Entry::Mended(key.clone())));
    }

    /// Moves the position of the log; `false` if the entry was known already and is to be skipped.
    fn advance(&mut self, progress: &mut Progress, position: Option<Version>) -> bool {
        let Some(position) = position.filter(|position| !position.is_empty()) else {
            return true;
        };
        let order = self.capabilities.order;
        if !progress.in_snapshot
            && self.plan.position().is_some_and(|known| is_replay(order, &position, known))
        {
            self.shared.metrics.unchanged.inc();
            return false;
        }
        progress.entries += 1;
        self.plan.reached(position.clone());
        progress.position = Some(position);
        true
    }

    fn complete(&mut self, progress: &mut Progress, version: Version) -> ControlFlow<Error> {
        self.flush(progress);
        let known = self.plan.position();
        if !progress.origin.overrules
            && known.is_some_and(|known| self.capabilities.order.is_older(&version, known))
        {
            return ControlFlow::Break(Error::Expired(format!(
                "the snapshot is older ({version}) than what is known"
            )));
        }
        let now = Instant::now();
        let accepted = self.capabilities.confirm_shrink.is_none() || {
            let (gone, held) = self.shared.shrinkage(self.partition);
            self.plan.accept_shrink(gone, held)
        };
        if !accepted {
            tracing::warn!(
                informer = %self.shared.name,
                source = self.source.name(),
                "the snapshot lacks most objects; nothing is deleted until a second one confirms it"
            );
        }
        self.shared.complete(self.partition, version.clone(), progress.lossy || !accepted);
        self.plan.completed(version, progress.lossy, now);
        for key in self.faults.complete() {
            self.note_mended(key);
        }
        progress.in_snapshot = false;
        progress.origin.overrules = false;
        progress.following_since = Some(now);
        (self.report)(Report::Synced);
        ControlFlow::Continue(())
    }

    fn flush(&mut self, progress: &mut Progress) {
        let writes = std::mem::take(&mut progress.writes);
        let (shared, source) = (&self.shared, &self.source);
        let mut reject = |rejection| reject(shared, source.name(), &rejection);
        self.shared.apply(progress.origin, writes, progress.position.take(), &mut reject);
    }

    /// Learning takes a while; it is done aside, once.
    async fn learn_dictionary(&self) {
        let Some(samples) = self.shared.samples() else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let learned = tokio::task::spawn_blocking(move || {
            let learn = || match Dictionary::learn(&samples) {
                Some(dictionary) => shared.compress_with(dictionary),
                None => shared.codec.give_up_compression(),
            };
            if shared.metrics.supervisor().caught("dictionary", &shared.name, learn).is_none() {
                shared.codec.give_up_compression();
            }
        });
        // It is cancelled only if the runtime shuts down, and then nobody needs it.
        let _ = learned.await;
    }
}

/// A source that panics has failed like any other, and what it had in hand is lost.
fn panicked() -> Ended {
    let error = Error::Unavailable { answered: true, reason: "the source panicked".into() };
    Ended { end: End::Failed(error), following: false, followed_for: Duration::ZERO, entries: 0 }
}

/// Whether a log entry at `position` was applied before: with a total order, the log only goes up.
fn is_replay(order: Order, position: &Version, known: &Version) -> bool {
    matches!(order, Order::Total) && order.compare(position, known).is_some_and(|compared| compared.is_le())
}

fn reject(shared: &Shared, source: &str, rejection: &Rejection) {
    shared.metrics.rejected(rejection.reason.as_str());
    shared.journal.iter().for_each(|journal| journal.note(Entry::Rejected(rejection.clone())));
    tracing::warn!(informer = %shared.name, source, %rejection, "rejected");
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
