//! Reading fields of a definition, whatever is in their place.
//!
//! A definition is stored as JSON that was validated once, maybe by another release. So nothing here fails: a field of
//! another type than expected is as good as not there.

use serde_json::{Map, Value};

/// The field, unless it is missing or null.
pub(super) fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null())
}

/// The field of the field of ...
pub(super) fn deep<'a>(object: &'a Value, fields: &[&str]) -> Option<&'a Value> {
    fields.iter().try_fold(object, |object, field| get(object, field))
}

/// A text; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A text that can be missing.
pub(super) fn optional_text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

/// A flag; off if there is none.
pub(super) fn flag(object: &Value, field: &str) -> bool {
    object.get(field).and_then(Value::as_bool).unwrap_or_default()
}

/// A list; empty if there is none.
pub(super) fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(super) fn texts(object: &Value, field: &str) -> Vec<String> {
    list(object, field).iter().filter_map(Value::as_str).map(Into::into).collect()
}

/// The fields of `object`, which becomes an object if it is none.
pub(super) fn fields_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match object {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

/// The field as an object, made if it is none.
pub(super) fn object_mut<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    let value = fields_mut(object).entry(field).or_insert(Value::Null);
    fields_mut(value);
    value
}

/// The field as a list, made if it is none.
pub(super) fn list_mut<'a>(object: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    let value = fields_mut(object).entry(field).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => items,
        _ => unreachable!("made a list above"),
    }
}
