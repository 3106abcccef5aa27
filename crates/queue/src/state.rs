//! The queue as a pure state machine: what happens, and when, goes in; what to run comes out. It knows no locks, no
//! wakers and no clock.

use std::time::Duration;

use slab::Slab;

use crate::backoff::Backoff;
use crate::bands::Bands;
use crate::counts::QueueCounts;
use crate::durations::Durations;
use crate::index::Index;
use crate::list::NONE;
use crate::outcome::JobOutcome;
use crate::priority::{Add, Priority};
use crate::timers::{Nanos, Timer, Timers};

/// Below this many slots there is nothing worth giving back.
const SMALLEST_SHRINK: usize = 4096;

/// A key with what decides where it goes, worked out before the lock is taken.
pub(crate) struct Hashed<K> {
    pub(crate) key: K,
    pub(crate) hash: u32,
    pub(crate) tenant: u64,
}

/// All about one live key. A key is live, and has exactly one of these, while it is queued, running or delayed; its
/// failures live and die with it.
struct Slot<K> {
    key: K,
    hash: u32,
    tenant: u64,
    /// Of the queued item: when it became ready, and the highest priority asked for.
    since: Nanos,
    priority: Priority,
    failures: u32,
    /// Into `runs`, or `NONE`.
    run: u32,
}

/// A key that is with a worker. Its timers wait here and not among the others: for this key they can do no more than
/// ask for another run, and that is early enough when someone looks.
struct Run {
    slot: u32,
    started: Nanos,
    priority: Priority,
    again: Option<Priority>,
    /// Set before the run started: replaced by its result.
    before: Option<Timer>,
    /// Asked for by someone else since: the run cannot have known, so it stays.
    during: Option<Timer>,
}

impl Run {
    /// What fires while the key runs is a re-add.
    fn fire(&mut self, now: Nanos) {
        for timer in [&mut self.before, &mut self.during] {
            if let Some(due) = timer.take_if(|timer| timer.at <= now) {
                self.again = self.again.max(Some(due.priority));
            }
        }
    }
}

/// What a worker gets.
pub(crate) struct Started<K> {
    pub(crate) run: u32,
    pub(crate) key: K,
    pub(crate) attempt: u32,
    pub(crate) priority: Priority,
    pub(crate) queued_for: Duration,
}

pub(crate) struct State<K> {
    now: Nanos,
    index: Index,
    slots: Slab<Slot<K>>,
    runs: Slab<Run>,
    bands: Bands,
    timers: Timers,
    backoff: Backoff,
    rng: fastrand::Rng,
    shut_down: bool,
    adds: u64,
    retries: u64,
    durations: Option<Box<Durations>>,
}

impl<K> State<K> {
    pub(crate) fn new(bands: Bands, backoff: Backoff, rng: fastrand::Rng, measure: bool) -> Self {
        State {
            now: 0,
            index: Index::default(),
            slots: Slab::new(),
            runs: Slab::new(),
            bands,
            timers: Timers::default(),
            backoff,
            rng,
            shut_down: false,
            adds: 0,
            retries: 0,
            durations: measure.then(Box::default),
        }
    }

    /// Moves the time on; due timers fire, each as of its own time, so that it does not matter how often or how late
    /// this is called. Threads may come with their readings in any order: time that goes back is ignored.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while let Some((slot, timer)) = self.timers.pop_due(self.now) {
            self.enqueue(slot, timer.priority, timer.at);
        }
    }

    pub(crate) fn add(&mut self, item: Hashed<K>, add: Add)
    where
        K: Eq,
    {
        if self.shut_down {
            return;
        }
        let slot = self.slot_of(item);
        if add.after.is_zero() {
            self.enqueue(slot, add.priority, self.now);
        } else {
            let timer = Timer { at: self.after(add.after), priority: add.priority };
            self.retries += 1;
            match self.runs.get_mut(self.slots[slot as usize].run as usize) {
                Some(run) => {
                    run.fire(self.now);
                    run.during = Some(run.during.map_or(timer, |old| old.merge(timer)));
                }
                None => self.timers.merge(slot, timer),
            }
        }
    }

    pub(crate) fn start(&mut self) -> Option<Started<K>>
    where
        K: Clone,
    {
        if self.shut_down {
            return None;
        }
        let id = self.bands.next()?;
        // First, because it is the caller's code: should it panic, nothing has happened yet.
        let key = self.slots[id as usize].key.clone();
        self.bands.pop();
        let slot = &mut self.slots[id as usize];
        let run = Run {
            slot: id,
            started: self.now,
            priority: slot.priority,
            again: None,
            before: self.timers.cancel(id),
            during: None,
        };
        slot.run = self.runs.insert(run) as u32;
        let queued_for = self.now - slot.since;
        if let Some(durations) = &mut self.durations {
            durations.queued.observe(queued_for);
        }
        Some(Started {
            run: slot.run,
            key,
            attempt: slot.failures,
            priority: slot.priority,
            queued_for: Duration::from_nanos(queued_for),
        })
    }

    /// Whether the time matters for how a run ends. Most often it does not, and reading a clock is a good part of what
    /// an item costs.
    pub(crate) fn finish_takes_time(&self, run: u32, outcome: JobOutcome) -> bool {
        let is_plain = |run: &Run| run.again.is_none() && run.before.is_none() && run.during.is_none();
        let ends_here = matches!(outcome, JobOutcome::Done | JobOutcome::Terminal);
        !(ends_here && self.durations.is_none() && self.runs.get(run as usize).is_none_or(is_plain))
    }

    /// Ends a run. Its result replaces the timer from before it; see the timer rule of [`Queue`](crate::Queue).
    pub(crate) fn finish(&mut self, run: u32, outcome: JobOutcome, priority: Option<Priority>) {
        let Some(mut run) = self.runs.try_remove(run as usize) else {
            return;
        };
        if let Some(durations) = &mut self.durations {
            durations.worked.observe(self.now - run.started);
        }
        let slot = &mut self.slots[run.slot as usize];
        slot.run = NONE;
        slot.failures = if outcome.is_failure() { slot.failures.saturating_add(1) } else { 0 };
        let delay = match outcome {
            JobOutcome::Done | JobOutcome::Terminal => None,
            JobOutcome::RequeueAfter(delay) | JobOutcome::RetryAfter(delay) => Some(delay),
            JobOutcome::Retry => Some(self.backoff.delay(slot.failures, &mut self.rng)),
        };
        self.retries += u64::from(delay.is_some());
        let result =
            delay.map(|delay| Timer { at: self.after(delay), priority: priority.unwrap_or(run.priority) });
        run.fire(self.now);
        let mut again = run.again;
        for timer in [run.during, result].into_iter().flatten() {
            if timer.at <= self.now {
                again = again.max(Some(timer.priority));
            } else {
                self.timers.merge(run.slot, timer);
            }
        }
        if let Some(priority) = again {
            self.enqueue(run.slot, priority, self.now);
        }
        self.release(run.slot);
    }

    /// Forgets failures and timers of a key; what is queued or running stays so.
    pub(crate) fn forget(&mut self, hash: u32, key: &K)
    where
        K: Eq,
    {
        let Some(id) = self.index.find(hash, |id| self.slots[id as usize].key == *key) else {
            return;
        };
        let slot = &mut self.slots[id as usize];
        slot.failures = 0;
        if let Some(run) = self.runs.get_mut(slot.run as usize) {
            run.fire(self.now);
            run.before = None;
            run.during = None;
        }
        self.timers.cancel(id);
        self.release(id);
    }

    pub(crate) fn shut_down(&mut self) {
        self.shut_down = true;
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// How many items a worker could get now.
    pub(crate) fn ready(&self) -> usize {
        if self.shut_down { 0 } else { self.bands.len() }
    }

    pub(crate) fn next_timer(&self) -> Option<Nanos> {
        if self.shut_down { None } else { self.timers.next_at() }
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        QueueCounts { queued: self.bands.len(), running: self.runs.len(), delayed: self.timers.len() }
    }

    pub(crate) fn depths(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.bands.depths()
    }

    pub(crate) fn queued_keys(&self) -> impl Iterator<Item = &K> {
        self.bands.slots().map(|id| &self.slots[id as usize].key)
    }

    /// The keys that wait for a timer only.
    pub(crate) fn delayed_keys(&self) -> impl Iterator<Item = &K> {
        self.timers.slots().filter(|&id| !self.bands.contains(id)).map(|id| &self.slots[id as usize].key)
    }

    pub(crate) fn running_keys(&self) -> impl Iterator<Item = &K> {
        self.runs.iter().map(|(_, run)| &self.slots[run.slot as usize].key)
    }

    /// For how long each run has been going on.
    pub(crate) fn run_times(&self) -> impl Iterator<Item = Nanos> {
        self.runs.iter().map(|(_, run)| self.now - run.started)
    }

    /// Items that became ready, and items that were put off, since the queue was made.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.adds, self.retries)
    }

    pub(crate) fn durations(&self) -> Option<&Durations> {
        self.durations.as_deref()
    }

    /// Keys about which anything is known.
    #[cfg(test)]
    pub(crate) fn live(&self) -> usize {
        assert_eq!(self.index.len(), self.slots.len());
        self.slots.len()
    }

    /// Room for entries, over all that grows with the number of keys.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.index.capacity() + self.slots.capacity() + self.bands.capacity() + self.timers.capacity()
    }

    fn after(&self, delay: Duration) -> Nanos {
        self.now.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))
    }

    fn slot_of(&mut self, item: Hashed<K>) -> u32
    where
        K: Eq,
    {
        let Hashed { key, hash, tenant } = item;
        if let Some(id) = self.index.find(hash, |id| self.slots[id as usize].key == key) {
            return id;
        }
        let (since, priority) = (self.now, Priority::NORMAL);
        let slot = Slot { key, hash, tenant, since, priority, failures: 0, run: NONE };
        // Four thousand million live keys do not fit into memory, so an id fits into 32 bits.
        let id = self.slots.insert(slot) as u32;
        self.index.insert(hash, id);
        id
    }

    fn enqueue(&mut self, id: u32, priority: Priority, since: Nanos) {
        let slot = &mut self.slots[id as usize];
        if let Some(run) = self.runs.get_mut(slot.run as usize) {
            run.again = run.again.max(Some(priority));
        } else if !self.bands.contains(id) {
            self.adds += 1;
            slot.since = since;
            slot.priority = priority;
            self.bands.push(id, slot.tenant, priority, since);
        } else if priority > slot.priority {
            slot.priority = priority;
            self.bands.promote(id, slot.tenant, priority, since);
        }
    }

    /// Lets go of a slot that nothing is left to do for.
    fn release(&mut self, id: u32) {
        let slot = &self.slots[id as usize];
        if slot.run != NONE || self.bands.contains(id) || self.timers.contains(id) {
            return;
        }
        self.index.remove(slot.hash, id);
        self.slots.remove(id as usize);
        if self.slots.capacity() > SMALLEST_SHRINK && self.slots.len() < self.slots.capacity() / 8 {
            self.shrink();
        }
    }

    /// Moves the live slots together and gives the rest back. At an eighth full, the cost is a fraction of what it took
    /// to empty the other seven.
    #[cold]
    fn shrink(&mut self) {
        self.slots.compact(|slot, from, to| {
            let (from, to) = (from as u32, to as u32);
            self.index.rename(slot.hash, from, to);
            if let Some(run) = self.runs.get_mut(slot.run as usize) {
                run.slot = to;
            }
            self.bands.rename(from, to);
            self.timers.rename(from, to);
            true
        });
        let len = self.slots.len();
        self.bands.truncate(len);
        self.timers.truncate(len);
        self.index.shrink();
    }
}
