//! One change, as far as it is to be shown.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind, Key, Version};
use watchkeeper_diff::{Difference, Path, compare, fields, is_bookkeeping, managers};
use watchkeeper_informer::{DecodeError, Object};

use super::secret;
use super::target::Target;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Nothing: it is there.
    Present,
    Happened(ChangeKind),
}

impl What {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Present => "PRESENT",
            Self::Happened(ChangeKind::Added) => "ADDED",
            Self::Happened(ChangeKind::Modified) => "MODIFIED",
            Self::Happened(ChangeKind::Deleted) => "DELETED",
        }
    }
}

/// Which fields are worth showing.
#[derive(Default)]
pub(super) struct Filter {
    /// Also those that always move.
    pub(super) all_fields: bool,
    /// Only these and what is below them; all if there are none.
    pub(super) fields: Vec<Path>,
}

impl Filter {
    fn shows(&self, path: &Path) -> bool {
        if self.fields.is_empty() {
            return self.all_fields || !is_bookkeeping(path);
        }
        let mut covering = self.fields.iter().filter(|field| field.covers(path)).peekable();
        // Who names such a field wants to see it.
        covering.peek().is_some()
            && (self.all_fields || !is_bookkeeping(path) || covering.any(is_bookkeeping))
    }
}

/// One change with what is shown of it.
pub(super) struct Report {
    pub(super) time: Timestamp,
    pub(super) what: What,
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) managers: Vec<String>,
    pub(super) differences: Vec<Difference>,
    /// The newest state that is known, without secrets.
    pub(super) object: Option<Arc<Value>>,
    /// It was found by comparing, and may stand for several changes.
    pub(super) compared: bool,
}

impl Report {
    /// What to show of a change; `None` if nothing of it is to be shown.
    pub(super) fn of(
        change: &Change<Object<Value>>,
        what: What,
        target: &Target,
        filter: &Filter,
    ) -> Result<Option<Self>, DecodeError> {
        let Some(newest) = change.newest() else { return Ok(None) };
        let state = newest.get()?;
        let old = match (&change.old, &change.new) {
            (Some(old), Some(_)) => Some(old.get()?),
            _ => None,
        };
        let (mut differences, named) = match (&old, what) {
            (Some(old), _) => {
                let differences = compare(old, &state);
                let named = managers(Some(old), &state, &differences);
                (differences, named)
            }
            // Who deleted something is not on record.
            (None, What::Happened(ChangeKind::Deleted)) => (Vec::new(), Vec::new()),
            (None, _) => {
                let differences = if filter.fields.is_empty() { Vec::new() } else { fields(&state) };
                let named = if what == What::Present { Vec::new() } else { managers(None, &state, &[]) };
                (differences, named)
            }
        };
        differences.retain(|difference| filter.shows(&difference.path));
        if old.is_some() && differences.is_empty() {
            return Ok(None);
        }
        let mut object = state;
        if target.is_secret() {
            secret::hide(&mut differences);
            let mut without = Value::clone(&object);
            secret::hide_in(&mut without);
            object = Arc::new(without);
        }
        Ok(Some(Self {
            time: Timestamp::now(),
            what,
            key: change.key.clone(),
            version: newest.version().clone(),
            managers: named,
            differences,
            object: Some(object),
            compared: false,
        }))
    }
}
