//! Reading and writing `metadata` of objects that are JSON values.

use serde_json::{Map, Value};

/// A text in `metadata`, empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// The number that a resource version stands for; 0 if it is empty. The error is what Go says of a text that is no number.
pub(crate) fn version_number(version: &str) -> Result<u64, String> {
    if version.is_empty() {
        return Ok(0);
    }
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit());
    version.parse().ok().filter(|_| is_number).ok_or_else(|| {
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing {version:?}: {why}")
    })
}

/// A field of `metadata`.
pub(crate) fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field)
}

/// `metadata`, made if it is missing; what is no object is replaced by one.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let fields = fields(object);
    fields_of(fields.entry("metadata").or_insert_with(|| Value::Object(Map::new())))
}

/// The fields of the object; what is no object is replaced by one.
pub(crate) fn fields(object: &mut Value) -> &mut Map<String, Value> {
    fields_of(object)
}

fn fields_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("it was made an object above"),
    }
}

pub(crate) fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    metadata(object).insert(field.into(), value.into());
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove(field);
    }
}

/// Gives `to` the field as `from` has it, or takes it away.
pub(crate) fn copy(to: &mut Value, from: &Value, field: &str) {
    match get(from, field) {
        Some(value) => set(to, field, value.clone()),
        None => remove(to, field),
    }
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers =
        get(object, "finalizers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    finalizers.iter().filter_map(Value::as_str).collect()
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        remove(object, "finalizers");
    } else {
        set(object, "finalizers", finalizers);
    }
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    get(object, "deletionTimestamp").is_some_and(|time| !time.is_null())
}

pub(crate) fn generation(object: &Value) -> i64 {
    get(object, "generation").and_then(Value::as_i64).unwrap_or_default()
}
