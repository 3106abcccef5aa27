use std::sync::Arc;

use crate::{Entry, Revision};

/// The change of one key by one commit.
///
/// An event exists once, however many watchers are told of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// The commit.
    pub revision: Revision,
    /// The change.
    pub change: Change,
}

/// The two sides of an [`Event`].
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// The key did not exist before.
    Created(Arc<Entry>),
    /// The key had another entry before.
    Updated {
        /// Before.
        previous: Arc<Entry>,
        /// After.
        entry: Arc<Entry>,
    },
    /// The key does not exist any more; this was its last entry.
    Deleted(Arc<Entry>),
}

impl Event {
    /// The key.
    pub fn key(&self) -> &str {
        match &self.change {
            Change::Created(entry) | Change::Updated { entry, .. } | Change::Deleted(entry) => &entry.key,
        }
    }

    /// The entry after the commit, if there is one.
    pub fn entry(&self) -> Option<&Arc<Entry>> {
        match &self.change {
            Change::Created(entry) | Change::Updated { entry, .. } => Some(entry),
            Change::Deleted(_) => None,
        }
    }

    /// The entry before the commit, if there was one.
    pub fn previous(&self) -> Option<&Arc<Entry>> {
        match &self.change {
            Change::Created(_) => None,
            Change::Updated { previous, .. } | Change::Deleted(previous) => Some(previous),
        }
    }
}
