//! The queue against a reference that is too simple to be wrong, over random schedules.
//!
//! `WATCHKEEPER_SCHEDULES` sets how many (30,000 if unset), `WATCHKEEPER_SEED` repeats a run.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[allow(dead_code)]
#[path = "../clock/mod.rs"]
mod clock;
mod reference;

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use watchkeeper_queue::{Add, Backoff, Clock, Job, JobOutcome, Priority, Queue, Sleep};

use clock::ManualClock;
use reference::{Key, Reference, Run};

const KEYS: Key = 6;
const PRIORITIES: [Priority; 4] = [Priority::LOW, Priority::NORMAL, Priority(7), Priority(-1)];
const TIMES_MS: [u64; 9] = [0, 1, 5, 10, 20, 100, 700, 9_900, 30_000];

#[derive(Clone, Debug)]
enum Op {
    Add(Key, Priority),
    AddAfter(Key, Priority, Duration),
    Get,
    Finish(usize, JobOutcome, Option<Priority>),
    Drop(usize),
    Forget(Key),
    Advance(Duration),
    Shutdown,
}

#[derive(Clone, Debug)]
struct Schedule {
    fair: bool,
    age_step: Duration,
    ops: Vec<Op>,
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let key = || 0..KEYS;
    let priority = || proptest::sample::select(&PRIORITIES[..]);
    let time = || proptest::sample::select(&TIMES_MS[..]).prop_map(Duration::from_millis);
    let outcome = prop_oneof![
        2 => Just(JobOutcome::Done),
        2 => time().prop_map(JobOutcome::RequeueAfter),
        3 => Just(JobOutcome::Retry),
        1 => time().prop_map(JobOutcome::RetryAfter),
        1 => Just(JobOutcome::Terminal),
    ];
    let op = prop_oneof![
        20 => (key(), priority()).prop_map(|(key, priority)| Op::Add(key, priority)),
        12 => (key(), priority(), time()).prop_map(|(key, priority, after)| Op::AddAfter(key, priority, after)),
        20 => Just(Op::Get),
        16 => (0..8usize, outcome, proptest::option::weighted(0.2, priority()))
            .prop_map(|(which, outcome, priority)| Op::Finish(which, outcome, priority)),
        2 => (0..8usize).prop_map(Op::Drop),
        2 => key().prop_map(Op::Forget),
        16 => time().prop_map(Op::Advance),
        1 => prop_oneof![9 => Just(Op::Get), 1 => Just(Op::Shutdown)],
    ];
    let step = proptest::sample::select(vec![Duration::from_millis(100), Duration::ZERO, Duration::MAX]);
    (any::<bool>(), step, proptest::collection::vec(op, 1..80)).prop_map(|(fair, age_step, ops)| Schedule {
        fair,
        age_step,
        ops,
    })
}

struct Pair {
    clock: ManualClock,
    queue: Queue<Key>,
    jobs: Vec<Job<Key>>,
    reference: Reference,
}

impl Pair {
    fn new(schedule: &Schedule) -> Self {
        let clock = ManualClock::new();
        let mut builder = Queue::builder()
            .clock(clock.clone())
            .age_step(schedule.age_step)
            .backoff(Backoff::default().with_jitter(0.0));
        if schedule.fair {
            builder = builder.fair_by(|&key| reference::tenant(key));
        }
        let reference = Reference::new(schedule.age_step, schedule.fair);
        Pair { clock, queue: builder.build(), jobs: Vec::new(), reference }
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Add(key, priority) => {
                self.queue.add_with(key, priority);
                self.reference.add(key, priority, Duration::ZERO);
            }
            Op::AddAfter(key, priority, after) => {
                self.queue.add_with(key, Add::from(priority).after(after));
                self.reference.add(key, priority, after);
            }
            Op::Get => {
                let job = self.queue.try_get();
                let run = job.as_ref().map(|job| Run {
                    key: *job.key(),
                    attempt: job.attempt(),
                    priority: job.priority(),
                    queued_for: job.queued_for(),
                });
                self.jobs.extend(job);
                prop_assert_eq!(run, self.reference.get());
            }
            Op::Finish(which, outcome, priority) => {
                if let Some(job) = self.take(which) {
                    self.reference.finish(*job.key(), outcome, priority);
                    match priority {
                        Some(priority) => job.finish_with(outcome, priority),
                        None => job.finish(outcome),
                    }
                }
            }
            Op::Drop(which) => {
                if let Some(job) = self.take(which) {
                    self.reference.finish(*job.key(), JobOutcome::Retry, None);
                }
            }
            Op::Forget(key) => {
                self.queue.forget(&key);
                self.reference.forget(key);
            }
            Op::Advance(by) => {
                self.clock.advance(by);
                self.reference.advance(by);
            }
            Op::Shutdown => {
                self.queue.shutdown();
                self.reference.shut_down();
            }
        }
        Ok(())
    }

    fn take(&mut self, which: usize) -> Option<Job<Key>> {
        (!self.jobs.is_empty()).then(|| self.jobs.swap_remove(which % self.jobs.len()))
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.queue.depths(), self.reference.depths());
        prop_assert_eq!(self.queue.counts().running, self.reference.running().len());
        prop_assert_eq!(self.queue.counts().delayed, self.reference.delayed());
        Ok(())
    }

    /// Runs what is left to its end, so that every timer shows when it was set for, then compares what nobody ran.
    fn end(mut self) -> Result<(), TestCaseError> {
        for millis in [0, 1, 2, 3, 5, 10, 20, 40, 100, 500, 5_000, 10_000, 20_000] {
            self.step(&Op::Advance(Duration::from_millis(millis)))?;
            self.compare()?;
            self.step(&Op::Get)?;
        }
        self.step(&Op::Shutdown)?;
        let mut left = match pin!(self.queue.drain_within(Duration::ZERO))
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(left) => left,
            Poll::Pending => return Err(TestCaseError::fail("the grace was over, but the drain waits")),
        };
        left.delayed.sort_unstable();
        left.running.sort_unstable();
        prop_assert_eq!(left.queued, self.reference.queued());
        prop_assert_eq!(left.delayed, self.reference.delayed_only());
        prop_assert_eq!(left.running, self.reference.running());
        Ok(())
    }
}

fn from_env<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_queue_does_what_the_reference_does_over_random_schedules() {
    let cases = from_env("WATCHKEEPER_SCHEDULES").unwrap_or(30_000);
    let seed: u64 = from_env("WATCHKEEPER_SEED").unwrap_or_else(|| fastrand::u64(..));
    let mut seed_bytes = [0; 32];
    seed_bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
    let config = Config { cases, failure_persistence: None, ..Config::default() };

    let (ran, steps) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new_with_rng(config, rng).run(&schedules(), |schedule| {
        let mut pair = Pair::new(&schedule);
        for op in &schedule.ops {
            pair.step(op)?;
            pair.compare()?;
        }
        ran.set(ran.get() + 1);
        steps.set(steps.get() + schedule.ops.len());
        pair.end()
    });
    if let Err(error) = result {
        panic!("WATCHKEEPER_SEED={seed} repeats this: {error}");
    }
    println!("{} schedules, {} steps, seed {seed}", ran.get(), steps.get());
    assert!(ran.get() >= cases);
}
