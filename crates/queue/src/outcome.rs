use std::time::Duration;

/// How a run ended; see [`Job::finish`](crate::Job::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well: attempts are forgotten, no timer.
    Done,
    /// All is well, but look again after this time: attempts are forgotten.
    RequeueAfter(Duration),
    /// It failed: try again after the key's [`Backoff`](crate::Backoff).
    Retry,
    /// It failed and trying again would not help: attempts are forgotten, no timer. The next add runs it again.
    Terminal,
}
