use std::time::Duration;

/// How a run ended; see [`Job::finish`](crate::Job::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// All is well: attempts are forgotten, no timer.
    Done,
    /// All is well, but look again after this time: attempts are forgotten.
    RequeueAfter(Duration),
    /// It failed: try again after the key's [`Backoff`](crate::Backoff).
    Retry,
    /// It failed: try again after this time instead of the back-off. Counts as an attempt.
    RetryAfter(Duration),
    /// It failed and trying again would not help: attempts are forgotten, no timer. The next add runs it again.
    Terminal,
}

impl JobOutcome {
    /// Whether it counts as a failed attempt.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Retry | Self::RetryAfter(_))
    }
}
