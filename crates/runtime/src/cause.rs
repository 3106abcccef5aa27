use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_core::{ChangeKind, Key};

use crate::request::WorkKey;

/// Why a reconcile runs: the newest of the changes that asked for it.
///
/// There is none when a requeue, a retry or [`Trigger::fire`](crate::Trigger::fire) asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// What was watched, by the name of its source: `configmaps`, `widgets.demo.dev`, `routes.d`. Of a union, the member that the object
    /// came from.
    pub source: Arc<str>,
    /// Which object changed.
    pub object: Key,
    /// How.
    pub change: ChangeKind,
    /// Whether it was there before and came with the first list.
    pub initial: bool,
    /// Whether it is a write of this program that comes back.
    pub own_write: bool,
}

/// `MODIFIED configmaps default/web`
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.initial { "INITIAL".to_owned() } else { self.change.to_string() };
        write!(f, "{word} {} {}", self.source, self.object)
    }
}

/// The causes of what is queued. Taken when a run starts, so that there are never more than queued keys.
pub(crate) struct Causes<R> {
    newest: Mutex<HashMap<R, Cause>>,
}

impl<R> Default for Causes<R> {
    fn default() -> Self {
        Self { newest: Mutex::default() }
    }
}

impl<R: WorkKey> Causes<R> {
    pub(crate) fn note(&self, work: &R, cause: Cause) {
        self.newest.lock().insert(work.clone(), cause);
    }

    pub(crate) fn take(&self, work: &R) -> Option<Cause> {
        self.newest.lock().remove(work)
    }
}
