//! What a function changed of a typed object, as a JSON patch of the object as it was sent.
//!
//! A type knows some of the fields of an object. The patch says what differs between the typed object before and after, and
//! nothing else, so that fields which the type does not know, and values which it writes in another way, stay as they are.

use serde_json::{Value, json};

/// The operations that make of `sent` what a change from `before` to `after` means for it.
///
/// `before` is `sent` as the type has it: fields may be missing or added, elements of arrays are not.
pub(crate) fn patch(sent: &Value, before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(Some(sent), before, after, String::new(), &mut operations);
    operations
}

fn compare(sent: Option<&Value>, before: &Value, after: &Value, path: String, to: &mut Vec<Value>) {
    if before == after {
        return;
    }
    match (sent, before, after) {
        (Some(Value::Object(sent)), Value::Object(before), Value::Object(after)) => {
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                if sent.contains_key(name) {
                    to.push(json!({"op": "remove", "path": inside(&path, name)}));
                }
            }
            for (name, value) in after {
                let was = before.get(name).unwrap_or(&Value::Null);
                compare(sent.get(name), was, value, inside(&path, name), to);
            }
        }
        (Some(Value::Array(sent)), Value::Array(before), Value::Array(after))
            if sent.len() == before.len() =>
        {
            elements(sent, before, after, &path, to);
        }
        // What is not there is as good as `null`.
        (None, _, Value::Null) => {}
        (Some(_), _, Value::Null) if !path.is_empty() => to.push(json!({"op": "remove", "path": path})),
        (None, _, value) => to.push(json!({"op": "add", "path": path, "value": value})),
        (Some(_), _, value) => to.push(json!({"op": "replace", "path": path, "value": value})),
    }
}

/// Elements that are equal at the beginning and at the end are the same; of those between, one is taken for the other in
/// order, and what is left over was removed or added.
fn elements(sent: &[Value], before: &[Value], after: &[Value], path: &str, to: &mut Vec<Value>) {
    let same = |(one, other): &(&Value, &Value)| one == other;
    let head = before.iter().zip(after).take_while(same).count();
    let (rest_before, rest_after) = (&before[head..], &after[head..]);
    let tail = rest_before.iter().rev().zip(rest_after.iter().rev()).take_while(same).count();
    let (was, is) = (rest_before.len() - tail, rest_after.len() - tail);
    for at in 0..was.min(is) {
        let at = head + at;
        compare(sent.get(at), &before[at], &after[at], format!("{path}/{at}"), to);
    }
    for at in (head + is..head + was).rev() {
        to.push(json!({"op": "remove", "path": format!("{path}/{at}")}));
    }
    for (at, value) in after.iter().enumerate().take(head + is).skip(head + was) {
        to.push(json!({"op": "add", "path": format!("{path}/{at}"), "value": value}));
    }
}

fn inside(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use watchkeeper_schema::patch::JsonPatch;

    use super::*;

    fn applied(sent: &Value, operations: &[Value]) -> Value {
        let text = Value::from(operations.to_vec()).to_string();
        JsonPatch::decode(text.as_bytes()).unwrap().apply(sent).unwrap()
    }

    #[test]
    fn what_the_type_does_not_know_stays() {
        let sent =
            json!({"a": 1, "new": {"x": [1]}, "list": [{"n": 1, "new": 2}, {"n": 5}], "m": {"k/~": 1}});
        let before = json!({"a": 1, "b": null, "list": [{"n": 1}, {"n": 5}], "m": {"k/~": 1}});
        let after = json!({"a": 2, "b": {"c": 3}, "list": [{"n": 3}], "m": {}});
        let operations = patch(&sent, &before, &after);
        let wanted = json!({"a": 2, "b": {"c": 3}, "new": {"x": [1]}, "list": [{"n": 3, "new": 2}], "m": {}});
        assert_eq!(applied(&sent, &operations), wanted);
    }

    #[test]
    fn what_the_type_adds_by_itself_is_no_change_and_can_be_changed_nevertheless() {
        let sent = json!({"spec": {}});
        let before = json!({"spec": {"size": 1, "inner": {"on": false}}, "status": null});
        assert_eq!(patch(&sent, &before, &before), Vec::<Value>::new());
        let after = json!({"spec": {"size": 1, "inner": {"on": true}}, "status": null});
        let operations = patch(&sent, &before, &after);
        assert_eq!(operations, [json!({"op": "add", "path": "/spec/inner", "value": {"on": true}})]);
    }

    /// Objects of depth three with few names, so that two of them share some.
    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(1)), Just(json!(2)), Just(json!("x")), Just(json!(true))];
        let inner = leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c~/]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-c]", inner, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    /// An object with fields that no type knows, everywhere.
    fn with_unknown(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: serde_json::Map<String, Value> =
                    fields.iter().map(|(name, value)| (name.clone(), with_unknown(value))).collect();
                fields.insert("unknown".into(), json!({"kept": [1, 2]}));
                Value::Object(fields)
            }
            Value::Array(items) => items.iter().map(with_unknown).collect(),
            other => other.clone(),
        }
    }

    fn without_unknown(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let known = fields.iter().filter(|(name, _)| *name != "unknown");
                Value::Object(known.map(|(name, value)| (name.clone(), without_unknown(value))).collect())
            }
            Value::Array(items) => items.iter().map(without_unknown).collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn a_patch_makes_the_known_fields_what_they_became(before in object(), after in object()) {
            let sent = with_unknown(&before);
            let made = applied(&sent, &patch(&sent, &before, &after));
            prop_assert_eq!(without_unknown(&made), after);
            prop_assert_eq!(&made["unknown"], &sent["unknown"]);
        }
    }
}
