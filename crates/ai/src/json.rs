//! Fields of JSON, read leniently: what has another type is not there.

use serde_json::{Map, Value};

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

pub(crate) fn number(value: &Value, key: &str) -> Option<u64> {
    let found = value.get(key)?;
    // Some servers write counts as 12.0.
    found.as_u64().or_else(|| found.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

pub(crate) fn float(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A list that has to be one if it is there.
pub(crate) fn strict_list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{key}: has to be a list")),
    }
}

/// A text, or a list of texts.
pub(crate) fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Sets a field if there is a value.
pub(crate) fn set(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// The arguments of a tool as an object; `{}` if they are none.
pub(crate) fn arguments(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::Object(Map::new()),
    }
}

/// Arguments as text, whatever form they came in.
pub(crate) fn arguments_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ Value::Object(_)) => value.to_string(),
        _ => "{}".to_owned(),
    }
}
