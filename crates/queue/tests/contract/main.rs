//! The contract of [`watchkeeper_queue::Queue`], a sentence a test.
#![allow(clippy::unwrap_used)]

#[path = "../clock/mod.rs"]
mod clock;
mod metrics;
mod order;
mod runs;
mod shutdown;
mod timers;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use clock::ManualClock;
use watchkeeper_queue::{Backoff, Clock, JobOutcome, Queue, Sleep};

/// A queue whose time stands still, and the clock to move it. Waits have no jitter.
fn queue_and_clock() -> (Queue<u32>, ManualClock) {
    let clock = ManualClock::new();
    let backoff = Backoff::default().with_jitter(0.0);
    (Queue::builder().clock(clock.clone()).backoff(backoff).build(), clock)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs all that is ready; the keys in the order in which they ran.
fn run_all(queue: &Queue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| queue.try_get())
        .map(|job| {
            let key = *job.key();
            job.finish(JobOutcome::Done);
            key
        })
        .collect()
}

/// A waker that counts how often it was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

fn no_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
