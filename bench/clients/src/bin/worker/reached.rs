//! A number that only grows, and who waits for it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tokio::sync::Notify;

/// How far something has come. Whoever moves it pays for a wake-up only if what is waited for is reached.
pub(crate) struct Reached {
    now: AtomicU64,
    wanted: AtomicU64,
    notify: Notify,
}

impl Default for Reached {
    fn default() -> Self {
        Self { now: AtomicU64::new(0), wanted: AtomicU64::new(u64::MAX), notify: Notify::new() }
    }
}

impl Reached {
    /// One more.
    pub(crate) fn add_one(&self) {
        self.wake(self.now.fetch_add(1, SeqCst) + 1);
    }

    /// At least this far.
    pub(crate) fn raise(&self, to: u64) {
        self.wake(self.now.fetch_max(to, SeqCst).max(to));
    }

    fn wake(&self, now: u64) {
        if now >= self.wanted.load(SeqCst) {
            self.notify.notify_one();
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(SeqCst)
    }

    /// Waits until it has come this far. One waits at a time.
    pub(crate) async fn wait(&self, wanted: u64) {
        self.wanted.store(wanted, SeqCst);
        while self.now() < wanted {
            self.notify.notified().await;
        }
        self.wanted.store(u64::MAX, SeqCst);
    }
}
