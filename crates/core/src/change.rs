use std::fmt;

use crate::Key;

/// One change of one object: the state before it and the state after it.
///
/// `T` is a handle to a state, cheap to clone. At least one of `old` and `new` is there. Both are states of the
/// *same incarnation* of the object; a delete and a re-create under one key are two changes.
///
/// A change may stand for several that came in quick succession: then `old` is the state before the first of them,
/// or of a delete the last state known, and `new` is the state after the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// The key of the object.
    pub key: Key,
    /// The state before; `None` if the object was not there.
    pub old: Option<T>,
    /// The state after; `None` if the object is gone, and `old` is then the last state that was known of it.
    pub new: Option<T>,
    /// The reason of the delivery.
    pub delivery: Delivery,
}

/// The reason why a change is delivered to a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The object was there before the subscriber had seen everything once. Comes as an addition.
    Initial,
    /// Something changed.
    Live,
    /// Nothing changed; the subscriber asked to see everything again from time to time. `old` and `new` are equal.
    Resync,
}

/// The three kinds of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// There was no object under the key, now there is.
    Added,
    /// The object has another state.
    Modified,
    /// The object is gone.
    Deleted,
}

impl<T> Change<T> {
    /// The kind of the change.
    pub fn kind(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (_, None) => ChangeKind::Deleted,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), Some(_)) => ChangeKind::Modified,
        }
    }

    /// Maps both states of the change to other handles.
    pub fn map<U>(self, mut handle: impl FnMut(T) -> U) -> Change<U> {
        let Self { key, old, new, delivery } = self;
        Change { key, old: old.map(&mut handle), new: new.map(handle), delivery }
    }

    /// The newest state that is known: `new`, or of a delete the last `old`.
    pub fn newest(&self) -> Option<&T> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        })
    }
}
