//! Reads the conditions of a filter.

use serde_json::Value;
use watchkeeper_table::JsonPath;

use crate::condition::{Condition, State, Test};
use crate::node::Node;
use crate::template::read_path;

const TESTS: [&str; 5] = ["equals", "notEquals", "in", "notIn", "exists"];

/// All conditions of a filter; each has to hold.
pub(super) fn read(node: &Node<'_>) -> Option<Vec<Condition>> {
    // All are looked at, so that everything wrong is said at once.
    let conditions: Vec<Option<Condition>> = node.items().iter().map(condition).collect();
    conditions.into_iter().collect()
}

fn condition(node: &Node<'_>) -> Option<Condition> {
    let members = node.members(&[
        "changed",
        "path",
        "of",
        "equals",
        "notEquals",
        "in",
        "notIn",
        "exists",
        "any",
        "not",
        "cel",
    ])?;
    let (form, found) = members.one_of(&["changed", "path", "any", "not", "cel"])?;
    if form != "path" {
        for name in TESTS.iter().chain(&["of"]) {
            if let Some(node) = members.get(name) {
                node.wrong(format!("needs a path beside it, not {form}"));
            }
        }
    }
    match form {
        "changed" => Some(Condition::Changed(json_path(&found)?)),
        "any" => Some(Condition::Any(read(&found)?)),
        "not" => Some(Condition::Not(Box::new(condition(&found)?))),
        // The place for rules in CEL.
        "cel" => {
            found.wrong("rules in CEL are not built in yet: use path, changed, any and not");
            None
        }
        _ => {
            let path = json_path(&found);
            let of = match members.get("of") {
                Some(node) => match node.word(&["newest", "old", "new"])? {
                    "old" => State::Old,
                    "new" => State::New,
                    _ => State::Newest,
                },
                None => State::Newest,
            };
            let (name, node) = members.one_of(&TESTS)?;
            let values = || node.items().iter().map(|item| item.value.clone()).collect::<Vec<Value>>();
            let test = match name {
                "equals" => Test::In(vec![node.value.clone()]),
                "notEquals" => Test::NotIn(vec![node.value.clone()]),
                "in" => Test::In(values()),
                "notIn" => Test::NotIn(values()),
                _ => Test::Exists(node.bool()?),
            };
            Some(Condition::At { of, path: path?, test })
        }
    }
}

fn json_path(node: &Node<'_>) -> Option<JsonPath> {
    read_path(node.text()?).map_err(|message| node.wrong(message)).ok()
}
