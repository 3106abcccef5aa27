use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::Stats;

/// What the threads of one storage tell about themselves.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) checkpoint_failures: AtomicU64,
    pub(crate) checkpoint_bytes: AtomicU64,
    halted: Mutex<Option<String>>,
}

impl Counters {
    pub(crate) fn halted(&self) -> Option<String> {
        self.halted.lock().clone()
    }

    /// The first reason is the one that counts.
    pub(crate) fn halt(&self, reason: &str) {
        self.halted.lock().get_or_insert_with(|| reason.to_owned());
    }

    pub(crate) fn fill(&self, stats: Stats) -> Stats {
        Stats {
            commits: self.commits.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            log_bytes: self.log_bytes.load(Relaxed),
            checkpoints: self.checkpoints.load(Relaxed),
            checkpoint_failures: self.checkpoint_failures.load(Relaxed),
            halted: self.halted(),
            ..stats
        }
    }
}
