use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_core::Key;

/// The type of a change since the last delivery of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The object is new, or it was never delivered.
    Added,
    /// The object has changed.
    Changed,
    /// The object is gone.
    Gone,
}

impl Event {
    /// All of them, in the order in which they happen.
    pub const ALL: [Self; 3] = [Self::Added, Self::Changed, Self::Gone];

    /// `added`, `changed` or `gone`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One change of one object, as a reaction sees it: from the state that it was told last to the state that there is.
///
/// Several changes in quick succession are one. `old` of a [`Gone`](Event::Gone) object may be unknown, if it went while nobody was
/// looking and no state file was kept.
#[derive(Clone, Debug)]
pub struct Change {
    /// The name of the source in the reactor's file.
    pub source: Arc<str>,
    /// The key of the object.
    pub key: Key,
    /// The type of the change.
    pub event: Event,
    /// The state that was delivered last.
    pub old: Option<Arc<Value>>,
    /// The state that there is.
    pub new: Option<Arc<Value>>,
}

impl Change {
    /// The newest state that is known: of an object that is gone, the last one.
    pub fn newest(&self) -> Option<&Value> {
        self.new.as_deref().or(self.old.as_deref())
    }

    /// All of it as JSON: what a request has as its body unless a template says otherwise.
    pub fn to_json(&self) -> Value {
        json!({
            "event": self.event.word(),
            "source": &*self.source,
            "key": self.key.to_string(),
            "namespace": self.key.namespace(),
            "name": self.key.name(),
            "old": self.old.as_deref(),
            "new": self.new.as_deref(),
        })
    }
}

/// `added shop/cart`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.event, self.key)
    }
}
