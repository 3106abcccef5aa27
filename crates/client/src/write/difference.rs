//! What a merge patch has to say to turn one value into another.

use serde_json::{Map, Value};

/// The merge patch (RFC 7396) from `old` to `new`; `None` if they are equal.
pub(crate) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                patch.insert(name.clone(), Value::Null);
            }
            for (name, value) in new {
                let change = match old.get(name) {
                    Some(before) => merge_patch(before, value),
                    // Inside a new object a null would be read as a removal; there is nothing to remove.
                    None => Some(value.clone()),
                };
                if let Some(change) = change {
                    patch.insert(name.clone(), change);
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_said() {
        let old = json!({"a": 1, "b": {"c": 2, "d": [1, 2]}, "e": "x"});
        assert_eq!(merge_patch(&old, &old), None);
        let new = json!({"a": 1, "b": {"c": 3, "d": [2]}, "f": {"g": 1}});
        assert_eq!(merge_patch(&old, &new), Some(json!({"b": {"c": 3, "d": [2]}, "e": null, "f": {"g": 1}})));
    }
}
