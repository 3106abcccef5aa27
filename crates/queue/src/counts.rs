/// Counts of the items of a queue, all at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCounts {
    /// Items that are ready, waiting for a worker.
    pub queued: usize,
    /// Items that are with a worker.
    pub running: usize,
    /// Keys that do not run and have a timer pending. Such a key can be queued as well.
    pub delayed: usize,
}

impl QueueCounts {
    /// Whether there is nothing to do, now or later.
    pub fn is_idle(&self) -> bool {
        *self == QueueCounts::default()
    }
}
