use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of events by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCounts {
    /// Events that were recorded, whatever their outcome.
    pub recorded: u64,
    /// Events that were written as new objects.
    pub created: u64,
    /// Repetitions, which were counted in the series of an earlier event.
    pub repeated: u64,
    /// Events that were dropped because the queue was full.
    pub overflowed: u64,
    /// Events that were dropped because there were too many about one object.
    pub limited: u64,
    /// Events that the server refused.
    pub rejected: u64,
    /// Events that could not be written after all retries, or made the writer panic.
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
