//! Objects that are not what they should be: nothing panics, whatever is where.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use std::time::SystemTime;
use watchkeeper_kinds::{Kind, Subresource};

fn kind_of(object: &Value) -> &'static Kind {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    watchkeeper_kinds::find_kind(group, version, object["kind"].as_str().unwrap()).unwrap()
}

/// Every place in a value, as a JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

fn go_through(kind: &Kind, object: &Value, old: &Value) {
    let mut object = object.clone();
    kind.default(&mut object);
    kind.validate(&object, Some(old));
    let mut created = object.clone();
    kind.prepare_for_create(&mut created);
    kind.validate(&created, None);
    for subresource in ["", "status", "finalize", "ephemeralcontainers", "resize"] {
        for (new, old) in [(&object, old), (old, &object)] {
            kind.prepare_for_update(Subresource::of(subresource).unwrap(), &mut new.clone(), old);
        }
    }
    for field in kind.selectable_fields {
        kind.selected(&object, field.label);
    }
    let printer = kind.printer();
    let cells = printer.cells(&object, SystemTime::UNIX_EPOCH).len();
    // The age of an address is in its row and has no column.
    assert_eq!(cells, printer.columns().len() + usize::from(kind.kind == "IPAddress"), "{object}");
    kind.from_stored(object.clone());
    kind.to_stored(object);
}

#[test]
fn odd_values_anywhere_make_no_panic() {
    let odd = [
        json!(null),
        json!(-1),
        json!("x"),
        json!([]),
        json!({}),
        json!([null, 1]),
        json!({"a": null, "name": 5}),
    ];
    for line in include_str!("data/real.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let object = &line["object"];
        let kind = kind_of(object);
        let mut found = Vec::new();
        places(object, "", &mut found);
        // A third of the places, another third for each kind of value: the corpus is large enough to meet them all.
        for (number, place) in found.into_iter().enumerate() {
            for (_, value) in odd.iter().enumerate().filter(|(index, _)| (index + number) % 3 == 0) {
                let mut changed = object.clone();
                *changed.pointer_mut(&place).unwrap() = value.clone();
                go_through(kind, &changed, object);
                if kind.coerce(&mut changed).is_ok() {
                    let once = changed.clone();
                    assert_eq!(kind.coerce(&mut changed), Ok(Vec::new()), "{once}");
                    assert_eq!(changed, once);
                    go_through(kind, &changed, object);
                }
            }
        }
    }
}
