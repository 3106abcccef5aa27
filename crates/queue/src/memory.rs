//! What the state keeps, and gives back.

use std::hash::BuildHasher;
use std::time::Duration;

use hashbrown::DefaultHashBuilder;

use crate::backoff::Backoff;
use crate::bands::Bands;
use crate::counts::QueueCounts;
use crate::outcome::JobOutcome;
use crate::priority::{Add, Priority};
use crate::state::{Hashed, State};

const MANY: u32 = 1_000_000;
const HOUR: u64 = 3_600_000_000_000;

struct Test {
    state: State<u32>,
    hasher: DefaultHashBuilder,
    now: u64,
}

impl Test {
    fn new(fair: bool) -> Self {
        let bands = Bands::new(Duration::from_millis(100), fair);
        let state = State::new(bands, Backoff::default(), fastrand::Rng::with_seed(5), false);
        Test { state, hasher: DefaultHashBuilder::default(), now: 0 }
    }

    fn hash(&self, key: u32) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn add(&mut self, key: u32, add: impl Into<Add>) {
        let hash = self.hash(key);
        self.state.add(Hashed { key, hash, tenant: u64::from(key % 5000) }, add.into());
    }

    fn wait(&mut self) {
        self.now += HOUR;
        self.state.advance(self.now);
    }

    fn run_all(&mut self, outcome: JobOutcome) -> u32 {
        let mut runs = 0;
        while let Some(started) = self.state.start() {
            self.state.finish(started.run, outcome, None);
            runs += 1;
        }
        runs
    }

    fn fail_many(&mut self) {
        (0..MANY).for_each(|key| self.add(key, Priority::NORMAL));
        assert_eq!(self.run_all(JobOutcome::Retry), MANY);
        assert_eq!(self.state.live(), MANY as usize);
    }
}

#[test]
fn a_million_keys_that_failed_leave_nothing_behind_once_they_succeed_or_fail_for_good_or_are_forgotten() {
    let mut test = Test::new(true);
    test.fail_many();
    for key in (0..MANY).filter(|key| key % 3 == 0) {
        let hash = test.hash(key);
        test.state.forget(hash, &key);
    }
    test.wait();
    let mut outcomes = [JobOutcome::Done, JobOutcome::Terminal].into_iter().cycle();
    while let Some(started) = test.state.start() {
        assert!(started.attempt == 1 && started.key % 3 != 0);
        test.state.finish(started.run, outcomes.next().unwrap(), None);
    }
    assert_eq!(test.state.live(), 0);
    assert!(test.state.capacity() < 100_000, "{}", test.state.capacity());
}

#[test]
fn memory_follows_the_live_keys_down_while_some_stay() {
    for fair in [false, true] {
        let mut test = Test::new(fair);
        test.fail_many();
        // Every thousandth is asked for again, and some of them have a timer as well: they must survive the moves.
        for key in (0..MANY).filter(|key| key % 1000 != 0) {
            let hash = test.hash(key);
            if key % 1000 == 1 {
                test.add(key - 1, Priority(i32::try_from(key % 7).unwrap()));
            }
            test.state.forget(hash, &key);
        }
        assert_eq!(test.state.live(), 1000);
        assert!(test.state.capacity() < 100_000, "{}", test.state.capacity());
        (0..MANY).filter(|key| key % 1000 == 0).for_each(|key| test.add(key, Priority::LOW));
        assert_eq!(
            (test.state.live(), test.state.counts()),
            (1000, QueueCounts { queued: 1000, running: 0, delayed: 1000 })
        );
        let mut keys = Vec::new();
        while let Some(started) = test.state.start() {
            assert_eq!(started.attempt, 1);
            keys.push(started.key);
            test.state.finish(started.run, JobOutcome::Done, None);
        }
        keys.sort_unstable();
        assert_eq!(keys, (0..1000).map(|n| 1000 * n).collect::<Vec<_>>());
        assert_eq!((test.state.live(), test.state.counts()), (0, QueueCounts::default()));
    }
}

#[test]
fn a_run_goes_on_while_everything_around_it_moves() {
    let mut test = Test::new(true);
    (0..MANY / 10).for_each(|key| test.add(key, Priority::NORMAL));
    let mut runs = Vec::new();
    while let Some(started) = test.state.start() {
        if started.key % 10_000 == 9_999 {
            runs.push(started);
        } else {
            test.state.finish(started.run, JobOutcome::Done, None);
        }
    }
    assert_eq!((test.state.live(), runs.len()), (10, 10));
    for run in &runs {
        test.add(run.key, Priority::NORMAL);
    }
    assert_eq!(test.state.live(), 10);
    for run in &runs {
        test.state.finish(run.run, JobOutcome::Retry, None);
    }
    let again: Vec<_> = std::iter::from_fn(|| test.state.start()).map(|run| (run.key, run.attempt)).collect();
    assert_eq!(again, runs.iter().map(|run| (run.key, 1)).collect::<Vec<_>>());
}

#[test]
fn promotions_leave_nothing_behind() {
    let mut test = Test::new(true);
    for priority in 0..100_000 {
        test.add(1, Priority(priority));
    }
    assert_eq!(test.state.depths().collect::<Vec<_>>(), [(Priority(99_999), 1)]);
    assert!(test.state.capacity() < 100);
}
