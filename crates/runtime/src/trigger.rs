use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use watchkeeper_queue::{Add, Priority, Queue};

use crate::request::{Request, WorkKey};

/// Starts reconciles from anywhere: a webhook, a message, a timer of your own.
///
/// A handle, cheap to clone; it works before the manager runs and does nothing after it has stopped. Work that is
/// asked for twice before it runs is done once.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use watchkeeper_core::Key;
/// use watchkeeper_runtime::Controller;
/// let controller = Controller::of::<ConfigMap>();
/// let trigger = controller.trigger();
/// trigger.fire(Key::new(Some("default"), "web"));
/// ```
pub struct Trigger<R = Request> {
    state: Arc<Mutex<State<R>>>,
}

enum State<R> {
    /// The controller does not run yet; what was asked for so far.
    Early(Vec<(R, Add)>),
    Running(Queue<R>),
}

impl<R: WorkKey> Trigger<R> {
    pub(crate) fn new() -> Self {
        Self { state: Arc::new(Mutex::new(State::Early(Vec::new()))) }
    }

    /// From now on there is a queue.
    pub(crate) fn connect(&self, queue: &Queue<R>) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Running(queue.clone()));
        if let State::Early(work) = before {
            work.into_iter().for_each(|(work, add)| queue.add_with(work, add));
        }
    }

    /// Starts a reconcile as soon as a worker is free.
    pub fn fire(&self, work: impl Into<R>) {
        self.add(work.into(), Add::default());
    }

    /// Starts a reconcile after a delay. Of several, the earliest counts.
    pub fn fire_after(&self, work: impl Into<R>, delay: Duration) {
        self.add(work.into(), Add::default().after(delay));
    }

    /// Starts a reconcile with another priority than the normal one.
    pub fn fire_at(&self, work: impl Into<R>, priority: impl Into<Priority>) {
        self.add(work.into(), Add::from(priority.into()));
    }

    fn add(&self, work: R, add: Add) {
        match &mut *self.state.lock() {
            State::Early(early) => early.push((work, add)),
            State::Running(queue) => queue.add_with(work, add),
        }
    }
}

impl<R> Clone for Trigger<R> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<R> std::fmt::Debug for Trigger<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trigger")
    }
}
