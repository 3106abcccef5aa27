use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::{Call, Outcome};

type Hook = dyn Fn(&Call) -> Outcome + Send + Sync;

/// What tests have arranged to go wrong, in the order in which they did.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<Arc<Hook>>>);

/// A fault that was injected. It ends when this is dropped or [lifted](Self::lift).
#[must_use = "a fault ends when it is dropped"]
pub struct Fault {
    faults: Weak<Faults>,
    hook: Weak<Hook>,
}

impl Faults {
    pub(crate) fn add(self: &Arc<Self>, hook: impl Fn(&Call) -> Outcome + Send + Sync + 'static) -> Fault {
        let hook: Arc<Hook> = Arc::new(hook);
        let fault = Fault { faults: Arc::downgrade(self), hook: Arc::downgrade(&hook) };
        self.0.lock().push(hook);
        fault
    }

    /// What becomes of a request.
    pub(crate) fn judge(&self, call: &Call) -> Outcome {
        // Hooks are the test's code: they may add and lift faults.
        let hooks = self.0.lock().clone();
        hooks.iter().fold(Outcome::pass(), |outcome, hook| outcome.then(hook(call)))
    }
}

impl Fault {
    /// Ends the fault.
    pub fn lift(self) {}

    /// Keeps the fault until the environment ends.
    pub fn keep(mut self) {
        self.faults = Weak::new();
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        if let Some(faults) = self.faults.upgrade() {
            faults.0.lock().retain(|hook| !std::ptr::addr_eq(Arc::as_ptr(hook), self.hook.as_ptr()));
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fault")
    }
}
