//! The clock of a test that runs in virtual time, with a server that does not.
//!
//! A paused clock jumps to the next timer as soon as nothing runs in this process. A server in another process would never
//! be waited for. So here the paused clock goes as the machine's does while something is under way, and faster when
//! nothing has been for a while: then all wait for timers.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::advance;

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

thread_local! {
    /// The traffic by which the clock of this thread's runtime goes: all environments of a test have the same.
    static SHARED: RefCell<Weak<Traffic>> = const { RefCell::new(Weak::new()) };
}

/// Keeps a paused clock going as long as the traffic is used; leaves any other alone.
pub(crate) fn keep() -> Arc<Traffic> {
    if !is_paused() {
        return Arc::default();
    }
    // Only a runtime of one thread, this one, can have a clock that is paused.
    SHARED.with_borrow_mut(|shared| {
        shared.upgrade().unwrap_or_else(|| {
            let traffic = Arc::default();
            *shared = Arc::downgrade(&traffic);
            go(shared.clone());
            traffic
        })
    })
}

fn go(traffic: Weak<Traffic>) {
    let (tick, mut ticks) = mpsc::channel(1);
    let used = traffic.clone();
    // As long as a blocking task runs, tokio does not move a paused clock.
    spawn_blocking(move || {
        while used.strong_count() > 0 && tick.blocking_send(()).is_ok() {
            thread::sleep(TICK);
        }
    });
    let is_calm = move || traffic.upgrade().is_some_and(|traffic| traffic.is_calm());
    tokio::spawn(async move {
        let mut last = Instant::now();
        while ticks.recv().await.is_some() {
            let passed = last.elapsed();
            last += passed;
            advance(passed).await;
            // In small steps, for what wakes up may have something to send.
            for _ in 1..SPEED {
                if !is_calm() {
                    break;
                }
                advance(TICK).await;
            }
        }
    });
}

fn is_paused() -> bool {
    let before = tokio::time::Instant::now();
    thread::sleep(TICK);
    tokio::time::Instant::now() == before
}
