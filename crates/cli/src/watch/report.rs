//! One change, as far as it is to be shown.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind, Key, Version};
use watchkeeper_diff::{Difference, Path, Segment, compare, fields, is_bookkeeping, managers};
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
    /// Leaves out what is not worth showing, also within list items that come or go.
    fn reduce(&self, differences: &mut Vec<Difference>) {
        differences.retain(|difference| {
            self.shows(&difference.path) && (self.all_fields || !is_order_of_conditions(difference))
        });
        for difference in differences {
            let Difference { path, from, to } = difference;
            if let (Some(Value::Object(members)), None) | (None, Some(Value::Object(members))) = (from, to) {
                members
                    .retain(|name, _| self.all_fields || !is_bookkeeping(&path.then(Segment::field(name))));
            }
        }
    }

    fn shows(&self, path: &Path) -> bool {
        if self.fields.is_empty() {
            return self.all_fields || !is_bookkeeping(path);
        }
        let mut covering = self.fields.iter().filter(|field| field.covers(path)).peekable();
        // Who names such a field wants to see it.
        covering.peek().is_some()
            && (self.all_fields || !is_bookkeeping(path) || covering.any(|field| names(field, path)))
    }
}

/// Whether somebody who names `field` means this very one, or one of the fields that always move above it.
fn names(field: &Path, path: &Path) -> bool {
    is_bookkeeping(field) || field.fields().eq(path.fields())
}

/// Some controllers write their conditions in another order each time.
fn is_order_of_conditions(difference: &Difference) -> bool {
    let lists = [&difference.from, &difference.to].iter().all(|value| matches!(value, Some(Value::Array(_))));
    lists && difference.path.0.last() == Some(&Segment::field("conditions"))
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
    /// What is in it is not to be shown.
    pub(super) secret: bool,
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
        filter.reduce(&mut differences);
        if old.is_some() && differences.is_empty() {
            return Ok(None);
        }
        let mut object = state;
        let secret = target.is_secret() || state_is_secret(&object);
        if secret {
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
            secret,
            compared: false,
        }))
    }
}

/// Whether an object that is not of a cluster is a Secret all the same.
fn state_is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(filter: &Filter, old: &Value, new: &Value) -> Vec<String> {
        let mut differences = compare(old, new);
        filter.reduce(&mut differences);
        differences.iter().map(|it| watchkeeper_diff::Wording::of(it, 80).to_string()).collect()
    }

    #[test]
    fn what_tells_nothing_is_left_out_unless_it_is_asked_for() {
        let condition =
            |kind: &str, time: u8| json!({"type": kind, "status": "True", "lastTransitionTime": time});
        let state = |generation: u8, conditions: &[Value]| json!({"metadata": {"generation": generation}, "spec": {"x": generation}, "status": {"conditions": conditions}});
        let old = state(1, &[condition("A", 1), condition("B", 1)]);
        let new = state(2, &[condition("B", 2), condition("A", 1), condition("C", 2)]);
        let plain = ["spec.x: 1 -> 2", "+ status.conditions[type=C]: {\"status\":\"True\"}"];
        let paths = |text: &str| text.split(',').map(|path| path.parse().unwrap_or_default()).collect();
        assert_eq!(shown(&Filter::default(), &old, &new), plain);
        let status = Filter { fields: paths("status"), ..Filter::default() };
        assert_eq!(shown(&status, &old, &new), plain[1..]);
        let times = Filter { fields: paths("status.conditions.lastTransitionTime"), ..Filter::default() };
        assert_eq!(shown(&times, &old, &new)[0], "status.conditions[type=B].lastTransitionTime: 1 -> 2");
        let all = shown(&Filter { all_fields: true, ..Filter::default() }, &old, &new);
        assert_eq!(all.len(), 5, "{all:?}");
        assert!(all.iter().any(|line| line.contains("[\"A\",\"B\"] -> [\"B\",\"A\"]")), "{all:?}");
    }
}
