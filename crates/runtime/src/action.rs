use std::time::Duration;

use watchkeeper_queue::Priority;

/// The result of a successful reconcile: done, or again after a time.
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_runtime::Action;
/// let done = Action::done();
/// let look_again = Action::requeue_after(Duration::from_secs(60)).at(10);
/// # assert_ne!(done, look_again);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub(crate) after: Option<Duration>,
    pub(crate) priority: Option<Priority>,
}

impl Action {
    /// Finished. The next change starts the next reconcile; a pending requeue is cancelled.
    pub const fn done() -> Self {
        Self { after: None, priority: None }
    }

    /// Finished, and reconciled again after this time, also if nothing changes until then.
    pub const fn requeue_after(after: Duration) -> Self {
        Self { after: Some(after), priority: None }
    }

    /// Sets the priority of the next reconcile. Default: that of this one.
    #[must_use]
    pub fn at(mut self, priority: impl Into<Priority>) -> Self {
        self.priority = Some(priority.into());
        self
    }
}
