//! What the tables of built-in kinds are made of.
//!
//! A [`Layout`] is columns and a function that makes the cells of an object. Fields that Kubernetes fills in when they are left
//! out are read as if they had been filled in; [`Fields`] reads them.

use serde_json::Value;
use watchkeeper_go::Time;

pub use crate::column::{AGE, Column, NAME, boolean, integer, text, wide};
pub use crate::duration::{age, human_seconds};
pub use crate::fields::Fields;
pub use crate::quantity::{canonical, optional};
pub use crate::selector;

use crate::column::CREATED;

/// The table of a built-in kind: its columns, and how objects fill them.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub(crate) columns: &'static [Column],
    pub(crate) cells: fn(&View<'_>) -> Vec<Value>,
    pub(crate) completion: Option<fn(&Value) -> Option<Completion>>,
}

/// The reason why the row of an object is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The reason of the condition, `Succeeded`.
    pub reason: &'static str,
    /// The message of the condition.
    pub message: &'static str,
}

/// An object to be printed, at a moment.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The object.
    pub object: &'a Value,
    /// The moment up to which ages are counted.
    pub now: Time,
}

impl Layout {
    /// Name and age.
    pub const PLAIN: Self = Self::new(&[NAME, AGE], |view| vec![view.name(), view.age()]);

    /// Name and moment of creation: what kinds without a table of their own have in Kubernetes.
    pub const CREATED: Self = Self::new(&[NAME, CREATED], |view| vec![view.name(), view.created()]);

    /// A table with these columns. `cells` makes one cell for each.
    pub const fn new(columns: &'static [Column], cells: fn(&View<'_>) -> Vec<Value>) -> Self {
        Self { columns, cells, completion: None }
    }

    /// Makes a table whose rows say when an object is completed.
    pub const fn completed_when(self, completion: fn(&Value) -> Option<Completion>) -> Self {
        Self { completion: Some(completion), ..self }
    }
}

impl View<'_> {
    /// The name of the object.
    pub fn name(&self) -> Value {
        self.object.text("metadata.name").into()
    }

    /// The time since the object was created.
    pub fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// The time since the moment at `path`.
    pub fn since(&self, path: &str) -> String {
        match self.object.time(path) {
            Some(time) => age(time, self.now),
            None => "<unknown>".into(),
        }
    }

    /// Whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.object.has("metadata.deletionTimestamp")
    }

    fn created(&self) -> Value {
        self.object.time("metadata.creationTimestamp").unwrap_or(Time::ZERO).rfc3339().into()
    }
}
