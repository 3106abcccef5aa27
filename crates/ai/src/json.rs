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

/// The arguments of a call as an object. No arguments are an empty one.
///
/// # Errors
///
/// If they are something else.
pub(crate) fn arguments(id: &str, name: &str, given: &str) -> Result<Value, String> {
    if given.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Value>(given) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(format!("the arguments of the call {id:?} of tool {name:?} are not a JSON object")),
    }
}

/// Refuses fields without which a request would mean something else. Each comes with what to do.
pub(crate) fn refuse(body: &Value, fields: &[(&str, &str)]) -> Result<(), String> {
    for (name, advice) in fields {
        let is_empty = match body.get(name) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            Some(_) => false,
        };
        if !is_empty {
            return Err(format!("{name}: cannot be translated for the provider of this model; {advice}"));
        }
    }
    Ok(())
}

/// Arguments as text, whatever form they came in.
pub(crate) fn arguments_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ Value::Object(_)) => value.to_string(),
        _ => "{}".to_owned(),
    }
}
