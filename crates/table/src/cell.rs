//! The cells of printer columns of type string.

use serde_json::Value;
use watchkeeper_go::{fmt, json};

/// A value as it stands in a cell of type string: text as it is, numbers as `%v` prints them, the rest as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        // What Go says of a value that is not there; a null has no type that could be printed.
        Value::Null => "<no value>".into(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => fmt::number(number),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => json::encode(value),
    }
}
