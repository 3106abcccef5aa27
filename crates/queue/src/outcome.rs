use std::time::Duration;

/// The outcome of a run; see [`Job::finish`](crate::Job::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobOutcome {
    /// All is well: attempts are forgotten, no timer.
    Done,
    /// All is well, but look again after this time: attempts are forgotten.
    RequeueAfter(Duration),
    /// Failed: retried after the key's [`Backoff`](crate::Backoff).
    Retry,
    /// Failed: retried after this time instead of the back-off. Counts as an attempt.
    RetryAfter(Duration),
    /// Failed for good: attempts are forgotten, and there is no retry. The next add runs the key again.
    Terminal,
}

impl JobOutcome {
    /// Whether it counts as a failed attempt.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Retry | Self::RetryAfter(_))
    }
}
