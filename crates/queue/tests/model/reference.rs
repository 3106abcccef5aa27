//! The contract of the queue, written down as plainly as possible: one vector, scanned for everything.

use std::time::Duration;

use watchkeeper_queue::{JobOutcome, Priority};

pub(crate) type Key = u8;

#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) now: Duration,
    age_step: Duration,
    fair: bool,
    keys: Vec<State>,
    turns: Vec<Turn>,
    counter: u64,
    shut_down: bool,
}

#[derive(Debug)]
struct State {
    key: Key,
    queued: Option<Queued>,
    running: Option<Running>,
    timer: Option<Timer>,
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    ready: Duration,
    priority: Priority,
    band: Priority,
    joined: Duration,
    order: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    priority: Priority,
    again: Option<Priority>,
    asked_during: Option<Timer>,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Duration,
    order: u64,
    priority: Priority,
}

/// Since when a tenant has been waiting for its turn in a band.
#[derive(Debug)]
struct Turn {
    band: Priority,
    tenant: u8,
    order: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) key: Key,
    pub(crate) attempt: u32,
    pub(crate) priority: Priority,
    pub(crate) queued_for: Duration,
}

pub(crate) fn tenant(key: Key) -> u8 {
    key % 2
}

pub(crate) fn backoff(failures: u32) -> Duration {
    (Duration::from_millis(5) * 2u32.pow((failures - 1).min(20))).min(Duration::from_secs(1000))
}

fn rank(since: Duration, priority: Priority, age_step: Duration) -> i128 {
    since.as_nanos() as i128 - i128::from(priority.0) * age_step.as_nanos() as i128
}

impl Reference {
    pub(crate) fn new(age_step: Duration, fair: bool) -> Self {
        Reference {
            now: Duration::ZERO,
            age_step,
            fair,
            keys: Vec::new(),
            turns: Vec::new(),
            counter: 0,
            shut_down: false,
        }
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.now += by;
        while let Some((at, _, index, during)) = self.first_due() {
            let state = &mut self.keys[index];
            let timer = match (&mut state.running, during) {
                (Some(running), true) => running.asked_during.take(),
                _ => state.timer.take(),
            };
            self.enqueue(index, timer.unwrap().priority, at);
        }
    }

    fn first_due(&self) -> Option<(Duration, u64, usize, bool)> {
        let mut due = Vec::new();
        for (index, state) in self.keys.iter().enumerate() {
            due.extend(state.timer.map(|t| (t.at, t.order, index, false)));
            due.extend(state.running.and_then(|r| r.asked_during).map(|t| (t.at, t.order, index, true)));
        }
        due.into_iter().filter(|(at, ..)| *at <= self.now).min()
    }

    pub(crate) fn add(&mut self, key: Key, priority: Priority, after: Duration) {
        if self.shut_down {
            return;
        }
        let index = self.index(key);
        if after.is_zero() {
            self.enqueue(index, priority, self.now);
            return;
        }
        let new = Timer { at: self.now + after, order: self.count(), priority };
        let state = &mut self.keys[index];
        let timer = match &mut state.running {
            Some(running) => &mut running.asked_during,
            None => &mut state.timer,
        };
        *timer = Some(earlier(*timer, new));
    }

    pub(crate) fn get(&mut self) -> Option<Run> {
        if self.shut_down {
            return None;
        }
        let index = self.first()?;
        let queued = self.keys[index].queued.unwrap();
        self.dequeue(index);
        if let Some(turn) = self.turn(queued.band, self.keys[index].key) {
            self.turns[turn].order = self.count();
        }
        let state = &mut self.keys[index];
        state.running = Some(Running { priority: queued.priority, again: None, asked_during: None });
        Some(Run {
            key: state.key,
            attempt: state.failures,
            priority: queued.priority,
            queued_for: self.now - queued.ready,
        })
    }

    fn first(&self) -> Option<usize> {
        let queued = || self.keys.iter().enumerate().filter_map(|(i, s)| Some((i, s.key, s.queued?)));
        let (.., oldest) = queued().min_by_key(|(_, _, q)| {
            (rank(q.joined, q.band, self.age_step), std::cmp::Reverse(q.band), q.order)
        })?;
        let band = queued().filter(|(_, _, q)| q.band == oldest.band);
        let (index, ..) = if self.fair {
            band.min_by_key(|(_, key, q)| (self.turns[self.turn(q.band, *key).unwrap()].order, q.order))?
        } else {
            band.min_by_key(|(_, _, q)| q.order)?
        };
        Some(index)
    }

    pub(crate) fn finish(&mut self, key: Key, outcome: JobOutcome, priority: Option<Priority>) {
        let index = self.index(key);
        let running = self.keys[index].running.take().unwrap();
        let state = &mut self.keys[index];
        // The result replaces whatever timer was there when the run began.
        state.timer = None;
        let failed = matches!(outcome, JobOutcome::Retry | JobOutcome::RetryAfter(_));
        state.failures = if failed { state.failures + 1 } else { 0 };
        let delay = match outcome {
            JobOutcome::Done | JobOutcome::Terminal => None,
            JobOutcome::RequeueAfter(delay) | JobOutcome::RetryAfter(delay) => Some(delay),
            JobOutcome::Retry => Some(backoff(state.failures)),
            other => panic!("the reference does not know {other:?}"),
        };
        state.timer = running.asked_during;
        let mut again = running.again;
        if let Some(delay) = delay {
            let priority = priority.unwrap_or(running.priority);
            if delay.is_zero() {
                again = again.max(Some(priority));
            } else {
                let new = Timer { at: self.now + delay, order: self.count(), priority };
                self.keys[index].timer = Some(earlier(self.keys[index].timer, new));
            }
        }
        if let Some(priority) = again {
            self.enqueue(index, priority, self.now);
        }
        if let (Some(_), order) = (self.keys[index].timer, self.count()) {
            self.keys[index].timer.as_mut().unwrap().order = order;
        }
        self.tidy();
    }

    pub(crate) fn forget(&mut self, key: Key) {
        let index = self.index(key);
        let state = &mut self.keys[index];
        state.failures = 0;
        state.timer = None;
        if let Some(running) = &mut state.running {
            running.asked_during = None;
        }
        self.tidy();
    }

    pub(crate) fn shut_down(&mut self) {
        self.shut_down = true;
    }

    pub(crate) fn depths(&self) -> Vec<(Priority, usize)> {
        let mut bands: Vec<_> = self.keys.iter().filter_map(|s| Some(s.queued?.band)).collect();
        bands.sort_by(|a, b| b.cmp(a));
        bands.chunk_by(|a, b| a == b).map(|band| (band[0], band.len())).collect()
    }

    pub(crate) fn running(&self) -> Vec<Key> {
        self.sorted(|s| s.running.is_some())
    }

    pub(crate) fn delayed(&self) -> usize {
        self.sorted(|s| s.timer.is_some() && s.running.is_none()).len()
    }

    pub(crate) fn delayed_only(&self) -> Vec<Key> {
        self.sorted(|s| s.timer.is_some() && s.running.is_none() && s.queued.is_none())
    }

    pub(crate) fn queued(&self) -> Vec<Key> {
        let mut queued: Vec<_> = self.keys.iter().filter_map(|s| Some((s.queued?, s.key))).collect();
        queued.sort_by_key(|(q, _)| (std::cmp::Reverse(q.band), q.order));
        queued.into_iter().map(|(_, key)| key).collect()
    }

    fn sorted(&self, of_interest: impl Fn(&State) -> bool) -> Vec<Key> {
        let mut keys: Vec<_> = self.keys.iter().filter(|s| of_interest(s)).map(|s| s.key).collect();
        keys.sort_unstable();
        keys
    }

    fn enqueue(&mut self, index: usize, priority: Priority, at: Duration) {
        if let Some(running) = &mut self.keys[index].running {
            running.again = running.again.max(Some(priority));
            return;
        }
        let Some(queued) = self.keys[index].queued else {
            self.join(index, Queued { ready: at, priority, band: priority, joined: at, order: 0 });
            return;
        };
        if priority <= queued.priority {
            return;
        }
        if rank(at, priority, self.age_step) < rank(queued.joined, queued.band, self.age_step) {
            self.dequeue(index);
            self.join(index, Queued { priority, band: priority, joined: at, ..queued });
        } else {
            self.keys[index].queued = Some(Queued { priority, ..queued });
        }
    }

    fn join(&mut self, index: usize, queued: Queued) {
        let key = self.keys[index].key;
        if self.turn(queued.band, key).is_none() {
            let order = self.count();
            self.turns.push(Turn { band: queued.band, tenant: tenant(key), order });
        }
        let order = self.count();
        self.keys[index].queued = Some(Queued { order, ..queued });
    }

    fn dequeue(&mut self, index: usize) {
        let queued = self.keys[index].queued.take().unwrap();
        let tenant_of = tenant(self.keys[index].key);
        let waits = |s: &State| s.queued.is_some_and(|q| q.band == queued.band) && tenant(s.key) == tenant_of;
        if !self.keys.iter().any(waits) {
            self.turns.retain(|turn| turn.band != queued.band || turn.tenant != tenant_of);
        }
    }

    fn turn(&self, band: Priority, key: Key) -> Option<usize> {
        self.turns.iter().position(|turn| turn.band == band && turn.tenant == tenant(key))
    }

    fn index(&mut self, key: Key) -> usize {
        self.keys.iter().position(|s| s.key == key).unwrap_or_else(|| {
            self.keys.push(State { key, queued: None, running: None, timer: None, failures: 0 });
            self.keys.len() - 1
        })
    }

    fn tidy(&mut self) {
        self.keys.retain(|s| s.queued.is_some() || s.running.is_some() || s.timer.is_some());
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

fn earlier(old: Option<Timer>, new: Timer) -> Timer {
    match old {
        Some(old) => {
            Timer { at: old.at.min(new.at), priority: old.priority.max(new.priority), order: new.order }
        }
        None => new,
    }
}
