use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::engine::Engine;
use crate::hub::Mailbox;
use crate::watch::Watching;
use crate::{Error, Event, Revision, Update};

/// So many events of the past are looked at before the lock is given back.
const STRIDE: usize = 512;

/// One watcher: reads the past up to the present, then waits for its mail; if the mailbox overflows, it reads the past
/// again from there.
pub(crate) struct Follower {
    engine: Arc<Engine>,
    prefix: Box<[u8]>,
    id: u64,
    mailbox: Arc<Mailbox>,
    ready: VecDeque<Arc<Event>>,
    phase: Phase,
    progress_wanted: bool,
}

enum Phase {
    /// Everything up to this revision has been told or is ready.
    Reading(Revision),
    /// Everything that is not ready is or will be in the mailbox.
    Waiting,
    Over,
}

type Step = Poll<Option<Result<Update, Error>>>;

impl Follower {
    /// The mailbox is still closed, and was added to the hub when `after` could be asked for.
    pub(crate) fn new(
        engine: Arc<Engine>,
        prefix: &str,
        id: u64,
        mailbox: Arc<Mailbox>,
        after: Revision,
    ) -> Self {
        Self {
            engine,
            prefix: prefix.as_bytes().into(),
            id,
            mailbox,
            ready: VecDeque::new(),
            phase: Phase::Reading(after),
            progress_wanted: false,
        }
    }

    fn fail(&mut self, error: Error) -> Step {
        self.phase = Phase::Over;
        Poll::Ready(Some(Err(error)))
    }

    /// Reads a stretch of the past. Once it reaches the present, the mailbox is opened: nobody can publish in between.
    fn read_on(&mut self, told: Revision) -> Result<(), Error> {
        let state = self.engine.write();
        let oldest = state.history.oldest();
        if told < oldest || self.mailbox.inner.lock().lost {
            return Err(Error::Lagged { oldest });
        }
        let pack = state.history.packs_after(told).next().cloned();
        if let Some(pack) = pack {
            drop(state);
            self.phase = Phase::Reading(pack.last());
            if pack.concerns(&self.prefix) {
                // Cannot fail, and if it did, it would be as if the past were forgotten.
                let events = self.engine.unpack(&pack).ok_or(Error::Lagged { oldest })?;
                let is_wanted = |event: &&Arc<Event>| {
                    event.revision > told && event.key().as_bytes().starts_with(&self.prefix)
                };
                self.ready.extend(events.iter().filter(is_wanted).cloned());
            }
            return Ok(());
        }
        let mut reached = told;
        for (looked_at, event) in state.history.after(told).enumerate() {
            // Only ever stops between revisions.
            if looked_at >= STRIDE && event.revision > reached {
                self.phase = Phase::Reading(reached);
                return Ok(());
            }
            reached = event.revision;
            if event.key().as_bytes().starts_with(&self.prefix) {
                self.ready.push_back(Arc::clone(event));
            }
        }
        let mut mail = self.mailbox.inner.lock();
        mail.missed = None;
        mail.closed = state.closed;
        self.phase = Phase::Waiting;
        Ok(())
    }

    /// Looks into the mailbox. `None` if there is more to do at once.
    fn wait(&mut self, context: &Context<'_>) -> Option<Step> {
        {
            let mut mail = self.mailbox.inner.lock();
            if !mail.events.is_empty() {
                std::mem::swap(&mut mail.events, &mut self.ready);
                return None;
            }
            if mail.lost {
                drop(mail);
                let oldest = self.engine.read().history.oldest();
                return Some(self.fail(Error::Lagged { oldest }));
            }
            if let Some(missed) = mail.missed {
                self.phase = Phase::Reading(missed - 1);
                return None;
            }
            if mail.closed {
                drop(mail);
                return Some(self.fail(Error::Closed));
            }
            if !self.progress_wanted {
                mail.waker = Some(context.waker().clone());
                return Some(Poll::Pending);
            }
        }
        // With the state held, what is not in the mailbox has not been published.
        let state = self.engine.read();
        let mail = self.mailbox.inner.lock();
        if !mail.events.is_empty() || mail.missed.is_some() || mail.lost {
            return None;
        }
        self.progress_wanted = false;
        Some(Poll::Ready(Some(Ok(Update::Progress(state.revision())))))
    }
}

impl Watching for Follower {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Step {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Update::Event(event))));
            }
            match self.phase {
                Phase::Over => return Poll::Ready(None),
                Phase::Reading(told) => {
                    if let Err(error) = self.read_on(told) {
                        return self.fail(error);
                    }
                }
                Phase::Waiting => {
                    if let Some(step) = self.wait(context) {
                        return step;
                    }
                }
            }
        }
    }

    fn request_progress(&mut self) {
        self.progress_wanted = true;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.engine.write().hub.remove(&self.prefix, self.id);
    }
}
