//! The shell under shuttle: the code of this crate, with shuttle's mutex in place of `parking_lot`'s (see `sync.rs`),
//! through many random interleavings. A lost wake-up shows as a deadlock, which shuttle reports with a schedule that
//! replays it.

#[allow(dead_code)]
#[path = "../tests/clock/mod.rs"]
mod clock;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use shuttle::future;

use crate::backoff::Backoff;
use crate::clock::{Clock, Sleep};
use crate::get::Get;
use crate::outcome::JobOutcome;
use crate::queue::Queue;
use clock::ManualClock;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// `WATCHKEEPER_INTERLEAVINGS` raises how many each test tries.
fn interleavings() -> usize {
    std::env::var("WATCHKEEPER_INTERLEAVINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000)
}

fn check(test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), interleavings());
    shuttle::check_pct(test, interleavings(), 3);
}

fn queue_and_clock() -> (Queue<u32>, ManualClock) {
    let clock = ManualClock::new();
    let backoff = Backoff { base: ms(1), jitter: 0.0, ..Backoff::default() };
    (Queue::builder().clock(clock.clone()).backoff(backoff).build(), clock)
}

/// Counts runs by key, and that none runs twice at once.
#[derive(Default)]
struct Runs {
    running: AtomicUsize,
    total: AtomicUsize,
    by_key: std::sync::Mutex<BTreeMap<u32, usize>>,
}

impl Runs {
    fn total(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }

    fn of(&self, key: u32) -> usize {
        self.by_key.lock().unwrap().get(&key).copied().unwrap_or(0)
    }

    fn count(&self, key: u32) {
        *self.by_key.lock().unwrap().entry(key).or_default() += 1;
        self.total.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs what it gets until `enough` runs have been made by all workers together.
async fn work(queue: Queue<u32>, runs: Arc<Runs>, enough: usize) {
    while let Some(job) = queue.get().await {
        runs.count(*job.key());
        job.finish(JobOutcome::Done);
        if runs.total() >= enough {
            queue.shutdown();
        }
    }
}

/// Polls a get a number of times, then gives up. What it got by then it runs.
struct GiveUp<'a> {
    get: Get<'a, u32>,
    polls: usize,
}

impl Future for GiveUp<'_> {
    type Output = Option<u32>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match Pin::new(&mut self.get).poll(cx) {
            Poll::Ready(Some(job)) => {
                let key = *job.key();
                job.finish(JobOutcome::Done);
                Poll::Ready(Some(key))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

#[test]
fn every_add_is_run_whoever_waits_and_whoever_gives_up() {
    check(|| {
        let (queue, _clock) = queue_and_clock();
        let runs = Arc::new(Runs::default());
        let workers: Vec<_> =
            (0..2).map(|_| future::spawn(work(queue.clone(), Arc::clone(&runs), 3))).collect();
        let (fickle, seen) = (queue.clone(), Arc::clone(&runs));
        let quitter = future::spawn(async move {
            for polls in [1, 2] {
                if let Some(key) = (GiveUp { get: fickle.get(), polls }).await {
                    seen.count(key);
                }
            }
            // Its own runs may have been the last that the others were waiting for.
            if seen.total() >= 3 {
                fickle.shutdown();
            }
        });
        for key in 0..3 {
            let queue = queue.clone();
            shuttle::thread::spawn(move || queue.add(key));
        }
        future::block_on(async {
            quitter.await.unwrap();
            for worker in workers {
                worker.await.unwrap();
            }
        });
        assert_eq!((runs.of(0), runs.of(1), runs.of(2)), (1, 1, 1));
        assert_eq!(queue.counts().running, 0);
    });
}

#[test]
fn a_key_never_runs_twice_at_once_and_its_last_run_starts_after_the_last_add() {
    check(|| {
        let (queue, _clock) = queue_and_clock();
        let runs = Arc::new(Runs::default());
        let (world, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let worker = || {
            let (queue, runs, world, seen) =
                (queue.clone(), Arc::clone(&runs), Arc::clone(&world), Arc::clone(&seen));
            async move {
                while let Some(job) = queue.get().await {
                    assert_eq!(runs.running.fetch_add(1, Ordering::SeqCst), 0);
                    seen.store(world.load(Ordering::SeqCst), Ordering::SeqCst);
                    shuttle::thread::yield_now();
                    runs.count(*job.key());
                    assert_eq!(runs.running.fetch_sub(1, Ordering::SeqCst), 1);
                    job.finish(JobOutcome::Done);
                }
            }
        };
        let workers: Vec<_> = (0..2).map(|_| future::spawn(worker())).collect();
        for change in 1..=2 {
            world.store(change, Ordering::SeqCst);
            queue.add(1);
        }
        future::block_on(async {
            while !queue.counts().is_idle() {
                future::yield_now().await;
            }
            assert_eq!(seen.load(Ordering::SeqCst), 2);
            assert!(queue.drain().await.is_empty());
            for worker in workers {
                worker.await.unwrap();
            }
        });
        assert!((1..=2).contains(&runs.total()));
    });
}

#[test]
fn a_timer_is_kept_whoever_kept_it_before() {
    check(|| {
        let (queue, clock) = queue_and_clock();
        // Far off, so that whoever keeps the time for it has to be told of the others.
        queue.add_after(9, ms(1000));
        let runs = Arc::new(Runs::default());
        let workers: Vec<_> =
            (0..2).map(|_| future::spawn(work(queue.clone(), Arc::clone(&runs), 4))).collect();
        let (fickle, seen) = (queue.clone(), Arc::clone(&runs));
        let quitter = future::spawn(async move {
            if let Some(key) = (GiveUp { get: fickle.get(), polls: 2 }).await {
                seen.count(key);
                if seen.total() >= 4 {
                    fickle.shutdown();
                }
            }
        });
        let adders: Vec<_> = [(0, 20), (1, 10), (2, 0), (3, 20)]
            .into_iter()
            .map(|(key, delay)| {
                let queue = queue.clone();
                shuttle::thread::spawn(move || queue.add_after(key, ms(delay)))
            })
            .collect();
        clock.advance(ms(5));
        for adder in adders {
            adder.join().unwrap();
        }
        clock.advance(ms(10));
        clock.advance(ms(10));
        future::block_on(async {
            quitter.await.unwrap();
            for worker in workers {
                worker.await.unwrap();
            }
        });
        assert_eq!(runs.total(), 4);
    });
}

#[test]
fn items_that_become_ready_together_run_together() {
    check(|| {
        let (queue, clock) = queue_and_clock();
        let runs = Arc::new(Runs::default());
        let worker = || {
            let (queue, runs) = (queue.clone(), Arc::clone(&runs));
            async move {
                while let Some(job) = queue.get().await {
                    runs.count(*job.key());
                    // No run ends before all have started, so no end of a run can make up for a missing wake-up.
                    while runs.total() < 3 {
                        future::yield_now().await;
                    }
                    job.finish(JobOutcome::Done);
                    queue.shutdown();
                }
            }
        };
        let workers: Vec<_> = (0..3).map(|_| future::spawn(worker())).collect();
        (0..3).for_each(|key| queue.add_after(key, ms(10)));
        clock.advance(ms(10));
        future::block_on(async {
            for worker in workers {
                worker.await.unwrap();
            }
        });
        assert_eq!(runs.total(), 3);
    });
}

#[test]
fn retries_and_dropped_jobs_come_back() {
    check(|| {
        let (queue, clock) = queue_and_clock();
        let runs = Arc::new(Runs::default());
        let worker = |drops: bool| {
            let (queue, runs, clock) = (queue.clone(), Arc::clone(&runs), clock.clone());
            async move {
                while let Some(job) = queue.get().await {
                    runs.count(*job.key());
                    if runs.of(*job.key()) == 3 {
                        job.finish(JobOutcome::Done);
                        queue.shutdown();
                    } else if drops {
                        drop(job);
                    } else {
                        job.finish(JobOutcome::Retry);
                    }
                    clock.advance(ms(10));
                }
            }
        };
        let workers = [future::spawn(worker(false)), future::spawn(worker(true))];
        queue.add(1);
        future::block_on(async {
            for worker in workers {
                worker.await.unwrap();
            }
        });
        assert_eq!(runs.of(1), 3);
    });
}

#[test]
fn a_drain_ends_when_the_last_run_does_and_nothing_starts_after_it() {
    check(|| {
        let (queue, _clock) = queue_and_clock();
        let runs = Arc::new(Runs::default());
        (0..3).for_each(|key| queue.add(key));
        let workers: Vec<_> =
            (0..2).map(|_| future::spawn(work(queue.clone(), Arc::clone(&runs), usize::MAX))).collect();
        let adder = queue.clone();
        shuttle::thread::spawn(move || adder.add(3));
        let other = queue.clone();
        let other = future::spawn(async move { other.drain().await });
        future::block_on(async {
            let left = queue.drain().await;
            let ran = runs.total();
            assert_eq!(queue.counts().running, 0);
            assert!(left.running.is_empty() && left.delayed.is_empty());
            assert!((3..=4).contains(&(left.queued.len() + ran)));
            assert_eq!(other.await.unwrap(), left);
            for worker in workers {
                worker.await.unwrap();
            }
            assert_eq!(runs.total(), ran);
        });
    });
}
