use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

/// The future of [`Clock::sleep_until`]: ends when its time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The clock of a queue.
///
/// [`TokioClock`] is the default; a test puts a clock of its own here and never waits.
pub trait Clock: Send + Sync + 'static {
    /// The time now. Never goes back. May be called with the queue locked, so it must not call the queue.
    fn now(&self) -> Instant;

    /// Ends when [`now`](Clock::now) has reached `deadline`, not before: a queue that is woken early sleeps again
    /// at once, so a clock that is always early makes it spin.
    fn sleep_until(&self, deadline: Instant) -> Sleep;
}

/// The clock of tokio, paused and advanced by `tokio::time::pause` and `advance` in tests.
///
/// Only a waiting [`get`](crate::Queue::get) with a delayed item pending needs a tokio runtime around it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(tokio::time::sleep_until(deadline.into()))
    }
}
