use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_core::{ChangeKind, Key};

use crate::request::WorkKey;

/// The cause of a reconcile: the newest of the changes that asked for it.
///
/// There is none when a requeue, a retry or [`Trigger::fire`](crate::Trigger::fire) asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The name of the source of the change: `configmaps`, `widgets.demo.dev`, `routes.d`. Of a union, the member that the object
    /// came from.
    pub source: Arc<str>,
    /// The key of the object that changed.
    pub object: Key,
    /// The kind of the change.
    pub change: ChangeKind,
    /// Whether the object came with the first list.
    pub initial: bool,
    /// Whether the change is a write of this program.
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
