use std::fmt;
use std::time::Duration;

/// The priority of an item; the higher, the sooner. Zero is normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// The priority of background work: the objects of the first list, and resyncs.
    pub const LOW: Priority = Priority(-100);
    /// For a change that has really happened.
    pub const NORMAL: Priority = Priority(0);
}

impl From<i32> for Priority {
    fn from(value: i32) -> Self {
        Priority(value)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Options of an add: see [`Queue::add_with`](crate::Queue::add_with).
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_queue::{Add, Priority, Queue};
/// let queue = Queue::new();
/// queue.add_with("web-1", Priority::LOW);
/// queue.add_with("web-2", Add::from(Priority::LOW).after(Duration::from_secs(5)));
/// # assert_eq!((queue.len(), queue.counts().delayed), (1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Add {
    /// The priority that the item is to have at least.
    pub priority: Priority,
    /// The delay before the key is ready; zero is at once.
    pub after: Duration,
}

impl Add {
    /// Sets the delay before the key is ready. Default: none.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }
}

impl From<Priority> for Add {
    fn from(priority: Priority) -> Self {
        Add { priority, after: Duration::ZERO }
    }
}
