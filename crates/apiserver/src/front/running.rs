use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the requests of a connection, those that run and those that ever did.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Counts>);

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// One request that runs until this is dropped.
pub(super) struct Run(Arc<Counts>);

impl Running {
    pub(super) fn begin(&self) -> Run {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Run(Arc::clone(&self.0))
    }

    /// How many requests have begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.0.begun.load(Ordering::Relaxed)
    }

    /// Whether none is running.
    pub(super) fn is_idle(&self) -> bool {
        // Ended first: one that begins and ends in between must not make it look as if none ran.
        let ended = self.0.ended.load(Ordering::Acquire);
        ended == self.0.begun.load(Ordering::Relaxed)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}
