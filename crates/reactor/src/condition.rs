//! Which changes a reaction is for.

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
