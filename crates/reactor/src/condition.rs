//! The filter of a reaction: which changes it handles.

use serde_json::Value;
use watchkeeper_table::JsonPath;

use crate::change::{Change, Event};

/// What a change has to be for a reaction to happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only these; all if there are none.
    pub(crate) events: Vec<Event>,
    /// All of these.
    pub(crate) conditions: Vec<Condition>,
}

/// Something that is true of a change, or is not. Rules in CEL will be another variant.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// What is at the path differs between the state before and the state after. Where one of them is missing, nothing is there.
    Changed(JsonPath),
    /// What is at the path of a state passes the test.
    At { of: State, path: JsonPath, test: Test },
    /// One of these holds.
    Any(Vec<Condition>),
    /// This does not hold.
    Not(Box<Condition>),
}

/// Which state is looked at. Where there is none, nothing is at any path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Newest,
    Old,
    New,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Exists(bool),
    /// One of the values found equals one of these.
    In(Vec<Value>),
    /// None of the values found equals one of these.
    NotIn(Vec<Value>),
}

impl Filter {
    /// Whether the reaction happens.
    pub(crate) fn lets_pass(&self, change: &Change) -> bool {
        (self.events.is_empty() || self.events.contains(&change.event))
            && self.conditions.iter().all(|condition| condition.holds(change))
    }
}

impl Condition {
    fn holds(&self, change: &Change) -> bool {
        match self {
            Self::Changed(path) => {
                let at = |state: Option<&Value>| {
                    state.map(|state| path.find(state).into_iter().cloned().collect::<Vec<_>>())
                };
                at(change.old.as_deref()).unwrap_or_default() != at(change.new.as_deref()).unwrap_or_default()
            }
            Self::At { of, path, test } => {
                let state = match of {
                    State::Newest => change.newest(),
                    State::Old => change.old.as_deref(),
                    State::New => change.new.as_deref(),
                };
                let found = state.map(|state| path.find(state)).unwrap_or_default();
                match test {
                    Test::Exists(wanted) => *wanted != found.is_empty(),
                    Test::In(values) => found.iter().any(|found| values.contains(found)),
                    Test::NotIn(values) => !found.iter().any(|found| values.contains(found)),
                }
            }
            Self::Any(conditions) => conditions.iter().any(|condition| condition.holds(change)),
            Self::Not(condition) => !condition.holds(change),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::read_path;
    use serde_json::json;
    use std::sync::Arc;
    use watchkeeper_core::Key;

    fn change(old: Option<Value>, new: Option<Value>) -> Change {
        let event = match (&old, &new) {
            (None, _) => Event::Added,
            (Some(_), Some(_)) => Event::Changed,
            (Some(_), None) => Event::Gone,
        };
        let (old, new) = (old.map(Arc::new), new.map(Arc::new));
        Change { source: "s".into(), key: Key::new(None, "k"), event, old, new }
    }

    fn at(of: State, path: &str, test: Test) -> Condition {
        Condition::At { of, path: read_path(path).unwrap(), test }
    }

    #[test]
    fn conditions_look_at_the_old_and_the_new_state() {
        let state = |phase: &str, tags: Value| json!({"phase": phase, "tags": tags});
        let flipped = change(Some(state("new", json!([]))), Some(state("done", json!(["a", "b"]))));
        let added = change(None, Some(state("new", json!([]))));
        let gone = change(Some(state("new", json!([]))), None);
        let changed = |path: &str| Condition::Changed(read_path(path).unwrap());
        let is = |value: &str| Test::In(vec![value.into()]);
        for (condition, expected) in [
            (changed(".phase"), [true, true, true]),
            (changed(".missing"), [false, false, false]),
            (at(State::Newest, ".phase", is("new")), [false, true, true]),
            (at(State::Old, ".phase", is("new")), [true, false, true]),
            (at(State::New, ".phase", is("done")), [true, false, false]),
            (at(State::New, ".tags[*]", is("b")), [true, false, false]),
            (at(State::New, ".tags[*]", Test::NotIn(vec!["b".into()])), [false, true, true]),
            (at(State::Newest, ".tags[0]", Test::Exists(true)), [true, false, false]),
            (at(State::Old, ".phase", Test::Exists(false)), [false, true, false]),
            (Condition::Not(Box::new(changed(".phase"))), [false, false, false]),
            (
                Condition::Any(vec![changed(".missing"), at(State::Old, ".phase", is("new"))]),
                [true, false, true],
            ),
            (Condition::Any(Vec::new()), [false, false, false]),
        ] {
            assert_eq!(
                [&flipped, &added, &gone].map(|change| condition.holds(change)),
                expected,
                "{condition:?}"
            );
        }
        let filter = Filter { events: vec![Event::Gone], conditions: vec![changed(".phase")] };
        assert_eq!([&flipped, &added, &gone].map(|change| filter.lets_pass(change)), [false, false, true]);
    }
}
