use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::clock::now;

/// How often it is, in seconds.
const INTERVAL: u64 = 10;

/// Something that is logged seldom, however often it happens.
#[derive(Debug, Default)]
pub struct Seldom {
    /// When it was the last time, in seconds since 1970.
    last: AtomicU64,
}

impl Seldom {
    /// Whether it is time to log it again.
    pub(super) fn is_due(&self) -> bool {
        let (now, before) = (now(), self.last.load(Relaxed));
        now >= before.saturating_add(INTERVAL)
            && self.last.compare_exchange(before, now, Relaxed, Relaxed).is_ok()
    }
}
