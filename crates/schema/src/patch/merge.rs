use crate::Error;
use serde_json::{Map, Value};

/// Applies a JSON merge patch (RFC 7386): fields of the patch replace those of the object, null removes, objects are
/// merged field by field, everything else is replaced as a whole.
///
/// As in kube-apiserver, what is new to the object loses the nulls inside it, also those in objects inside of arrays; the
/// RFC keeps the latter. The patch must be an object.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_schema::patch;
/// let object = json!({"spec": {"a": 1, "b": [1, 2]}});
/// let next = patch::merge(object, &json!({"spec": {"a": null, "b": [3]}}))?;
/// assert_eq!(next, json!({"spec": {"b": [3]}}));
/// # Ok::<(), watchkeeper_schema::Error>(())
/// ```
pub fn merge(object: Value, patch: &Value) -> Result<Value, Error> {
    let Value::Object(changes) = patch else {
        return Err(Error::NotAPatch("Invalid JSON Patch".into()));
    };
    Ok(match object {
        Value::Object(mut fields) => {
            merge_fields(&mut fields, changes);
            Value::Object(fields)
        }
        _ => without_nulls(patch),
    })
}

fn merge_fields(fields: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
            continue;
        }
        match (fields.get_mut(name), change) {
            (Some(Value::Object(fields)), Value::Object(changes)) => merge_fields(fields, changes),
            (Some(found @ Value::Object(_)), change) => *found = change.clone(),
            (_, change) => {
                fields.insert(name.clone(), without_nulls(change));
            }
        }
    }
}

/// Drops fields that are null; elements of arrays stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The merge patch that makes `new` of `old`.
///
/// A merge patch cannot set a field to null, nor anything inside an array: fields of `new` that are null come out as
/// missing.
pub fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return new.clone();
    };
    let mut changes = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(same) if same == value => {}
            Some(other) => {
                changes.insert(name.clone(), difference(other, value));
            }
            None => {
                changes.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_rfc_7386_hold() {
        for (object, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merge(object, &patch).unwrap(), result);
        }
    }

    #[test]
    fn a_patch_that_is_no_object_is_refused() {
        for patch in [json!(null), json!([1]), json!("x"), json!(1)] {
            assert!(matches!(merge(json!({}), &patch), Err(Error::NotAPatch(_))));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(1_000)))]

        #[test]
        fn the_difference_of_two_objects_makes_one_of_the_other(
            old in crate::arbitrary::object(),
            new in crate::arbitrary::object(),
        ) {
            let new = without_nulls(&new);
            let patch = difference(&old, &new);
            prop_assert_eq!(merge(old, &patch).unwrap(), new);
        }

        /// Not so if it has nulls inside of arrays: they go only where no object stood before.
        #[test]
        fn a_patch_applied_twice_changes_nothing_more(
            object in crate::arbitrary::object(),
            patch in crate::arbitrary::object(),
        ) {
            let patch = difference(&object, &without_nulls(&patch));
            let once = merge(object, &patch).unwrap();
            prop_assert_eq!(merge(once.clone(), &patch).unwrap(), once);
        }
    }
}
