use std::sync::atomic::{AtomicU64, Ordering};

/// How many events became what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCounts {
    /// Were recorded, whatever became of them.
    pub recorded: u64,
    /// Were written as new objects.
    pub created: u64,
    /// Were repetitions, counted in the series of an earlier one.
    pub repeated: u64,
    /// Were dropped because the queue was full.
    pub overflowed: u64,
    /// Were dropped because there were too many about one object.
    pub limited: u64,
    /// Were refused by the server.
    pub rejected: u64,
    /// Could not be written, however often that was tried, or made the writer panic.
    pub failed: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) recorded: AtomicU64,
    pub(crate) created: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) overflowed: AtomicU64,
    pub(crate) limited: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> EventCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EventCounts {
            recorded: read(&self.recorded),
            created: read(&self.created),
            repeated: read(&self.repeated),
            overflowed: read(&self.overflowed),
            limited: read(&self.limited),
            rejected: read(&self.rejected),
            failed: read(&self.failed),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
