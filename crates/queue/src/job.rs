use std::fmt;
use std::time::Duration;

use crate::outcome::JobOutcome;
use crate::priority::Priority;
use crate::queue::Queue;
use crate::state::Started;

/// A key that is to be worked on, and the right to be the only one to do so.
///
/// Ends with [`finish`](Job::finish). Dropping it instead, as happens when its worker panics or is cancelled, counts
/// as [`JobOutcome::Retry`].
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_queue::{JobOutcome, Queue};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = Queue::new();
/// queue.add("default/web");
/// let Some(job) = queue.get().await else { return };
/// assert_eq!((*job.key(), job.attempt()), ("default/web", 0));
/// job.finish(JobOutcome::RetryAfter(Duration::from_millis(1)));
///
/// let Some(job) = queue.get().await else { return };
/// assert_eq!(job.attempt(), 1);
/// job.finish(JobOutcome::Done);
/// # }
/// ```
#[must_use = "a job that is dropped counts as failed"]
pub struct Job<K> {
    queue: Queue<K>,
    started: Started<K>,
    finished: bool,
}

impl<K> Job<K> {
    pub(crate) fn new(queue: Queue<K>, started: Started<K>) -> Self {
        Job { queue, started, finished: false }
    }

    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.started.key
    }

    /// The failures of this key in a row; 0 on the first try.
    pub fn attempt(&self) -> u32 {
        self.started.attempt
    }

    /// The highest priority with which this run was asked for.
    pub fn priority(&self) -> Priority {
        self.started.priority
    }

    /// The time for which the item was ready before this run started.
    pub fn queued_for(&self) -> Duration {
        self.started.queued_for
    }

    /// Ends the run. A requeue or a retry has the priority of this run.
    pub fn finish(mut self, outcome: JobOutcome) {
        self.end(outcome, None);
    }

    /// Ends the run. A requeue or a retry has the given priority.
    pub fn finish_with(mut self, outcome: JobOutcome, priority: Priority) {
        self.end(outcome, Some(priority));
    }

    fn end(&mut self, outcome: JobOutcome, priority: Option<Priority>) {
        if !std::mem::replace(&mut self.finished, true) {
            self.queue.finish(self.started.run, outcome, priority);
        }
    }
}

impl<K> Drop for Job<K> {
    fn drop(&mut self) {
        self.end(JobOutcome::Retry, None);
    }
}

impl<K: fmt::Debug> fmt::Debug for Job<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("key", self.key())
            .field("attempt", &self.attempt())
            .field("priority", &self.priority())
            .field("queued_for", &self.queued_for())
            .finish_non_exhaustive()
    }
}
