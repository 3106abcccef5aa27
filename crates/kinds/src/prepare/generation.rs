use crate::kind::strategy::Fields;
use serde_json::Value;

/// Whether the specs of two versions of an object differ: what most kinds count.
pub(crate) fn spec_differs(new: &Fields, old: &Fields) -> bool {
    differs("spec", new, old)
}

/// Whether a field differs in two versions of an object.
pub(crate) fn differs(field: &str, new: &Fields, old: &Fields) -> bool {
    !same(new.get(field), old.get(field))
}

/// Whether a field of the metadata differs in two versions of an object.
pub(crate) fn metadata_differs(field: &str, new: &Fields, old: &Fields) -> bool {
    let of = |object: &Fields| object.get("metadata").and_then(|metadata| metadata.get(field)).cloned();
    !same(of(new).as_ref(), of(old).as_ref())
}

/// Whether two values mean the same: what is empty is as good as not there.
pub(crate) fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            left.iter().all(|(name, value)| same(Some(value), right.get(name)))
                && right.iter().all(|(name, value)| left.contains_key(name) || same(None, Some(value)))
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(Some(left), Some(right)))
        }
        (Some(left), Some(right)) => left == right || is_empty(left) && is_empty(right),
        (Some(one), None) | (None, Some(one)) => is_empty(one),
        (None, None) => true,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        // An object that is there is not the same as none, unless it is a map without entries.
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
