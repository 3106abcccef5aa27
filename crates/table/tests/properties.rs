//! Nothing panics and nothing is forgotten, whatever comes in.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use watchkeeper_table::{FieldPath, JsonPath, Printer};

/// Names that built-in kinds have, so that objects are not missed altogether.
const NAMES: [&str; 22] = [
    "metadata",
    "spec",
    "status",
    "name",
    "creationTimestamp",
    "deletionTimestamp",
    "conditions",
    "type",
    "reason",
    "state",
    "terminated",
    "waiting",
    "containerStatuses",
    "initContainerStatuses",
    "restartCount",
    "subsets",
    "addresses",
    "ports",
    "metrics",
    "hard",
    "used",
    "a",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c1]{0,3}".prop_map(Value::from),
        prop::sample::select(vec![
            "2026-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "0000-01-01T00:00:00Z",
            "1Gi",
            "99999999999999999999999999999999E",
            "é",
            "True",
            "Ready",
            "Resource",
        ])
        .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 40, 5, |inner| {
        let name = prop::sample::select(NAMES.to_vec()).prop_map(String::from);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Mostly pieces of paths, put together as they come.
fn path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        ".",
        "a",
        "spec",
        "..",
        "*",
        "[",
        "]",
        "[*]",
        "[0]",
        "[-1]",
        "[1:",
        ":2]",
        "[?(",
        ")]",
        "@",
        "==",
        "<",
        "\"",
        "'",
        "\\",
        "{",
        "}",
        " ",
        "\n",
        ",",
        "$",
        "5",
        "-",
        "1.5",
        "true",
        "range",
        "é",
        "٣",
        "[?(@.a==\"x\")]",
        "['a']",
        "[0,1]",
    ]);
    prop_oneof![4 => prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat()), 1 => ".*"]
}

#[test]
fn a_text_behind_a_missing_field_is_the_first_value_too() {
    let path = JsonPath::parse("['a']''").unwrap();
    let value = serde_json::json!([]);
    assert_eq!(path.first(&value), path.find(&value).first().copied());
}

proptest! {
    #[test]
    fn any_path_is_refused_or_followed(path in path(), value in value()) {
        if let Ok(parsed) = JsonPath::parse(&path) {
            prop_assert_eq!(parsed.first(&value), parsed.find(&value).first().copied());
        }
    }

    #[test]
    fn any_columns_are_refused_or_filled(
        columns in prop::collection::vec((path(), prop::sample::select(vec!["string", "integer", "number", "date", "x"])), 0..4),
        odd in value(),
        object in value(),
    ) {
        let _ = Printer::custom(std::slice::from_ref(&odd));
        let columns: Vec<Value> =
            columns.iter().map(|(path, kind)| json!({"name": "c", "type": kind, "jsonPath": path})).collect();
        if let Ok(printer) = Printer::custom(&columns) {
            let cells = printer.cells(&object, SystemTime::UNIX_EPOCH);
            prop_assert_eq!(cells.len(), columns.len().max(1) + 1);
        }
    }

    #[test]
    fn what_is_set_is_found_and_what_cannot_be_set_changes_nothing(
        path in "(\\.[a-c]){1,3}|\\.|\\..*",
        mut object in value(),
        new in value(),
    ) {
        let path = FieldPath::parse(&path).unwrap();
        let before = object.clone();
        if path.set(&mut object, new.clone()) {
            prop_assert_eq!(path.get(&object), Some(&new));
        } else {
            prop_assert_eq!(object, before);
        }
    }
}
