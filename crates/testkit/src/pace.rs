//! The clock of a test that runs in virtual time, with a server that does not.
//!
//! A paused clock jumps to the next timer as soon as nothing runs in this process. A server in another process would never
//! be waited for. So here the paused clock goes as the machine's does while something is under way, and faster when
//! nothing has been for a while: then all wait for timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::advance;
use tokio_util::sync::CancellationToken;

/// How often the clock is moved.
const TICK: Duration = Duration::from_millis(1);
/// Who has said nothing for so long has nothing to say. A watch of a busy server lags behind by a tenth of that.
const CALM: Duration = Duration::from_millis(500);
/// How much faster time goes then.
const SPEED: u32 = 100;

/// What is on its way from and to a server.
#[derive(Default)]
pub(crate) struct Traffic {
    under_way: AtomicUsize,
    last: Mutex<Option<Instant>>,
}

/// A request that is under way until this is dropped.
pub(crate) struct Trip(Arc<Traffic>);

impl Traffic {
    pub(crate) fn begin(self: &Arc<Self>) -> Trip {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Trip(Arc::clone(self))
    }

    /// Something came.
    pub(crate) fn note(&self) {
        *self.last.lock() = Some(Instant::now());
    }

    fn is_calm(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0
            && self.last.lock().is_some_and(|last| last.elapsed() > CALM)
    }
}

impl Drop for Trip {
    fn drop(&mut self) {
        self.0.note();
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps a paused clock going until `ended`; leaves any other alone.
pub(crate) fn keep(traffic: &Arc<Traffic>, ended: &CancellationToken) {
    if !is_paused() {
        return;
    }
    let (tick, mut ticks) = mpsc::channel(1);
    let ended = ended.clone();
    // As long as a blocking task runs, tokio does not move a paused clock.
    spawn_blocking(move || {
        while !ended.is_cancelled() && tick.blocking_send(()).is_ok() {
            thread::sleep(TICK);
        }
    });
    let traffic = Arc::clone(traffic);
    tokio::spawn(async move {
        let mut last = Instant::now();
        while ticks.recv().await.is_some() {
            let passed = last.elapsed();
            last += passed;
            // In small steps, so that no timer is late by more than a real one is.
            for _ in 0..if traffic.is_calm() { SPEED } else { 1 } {
                advance(passed).await;
            }
        }
    });
}

fn is_paused() -> bool {
    let before = tokio::time::Instant::now();
    thread::sleep(TICK);
    tokio::time::Instant::now() == before
}
