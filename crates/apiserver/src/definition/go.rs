//! Texts that Go would write.

use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

/// A text as `%q` shows it.
pub(super) fn quoted(text: &str) -> String {
    shown(text.into())
}

/// A value as `encoding/json` writes it.
pub(super) fn json(value: &Value) -> String {
    // Inside a list, texts and numbers are written as JSON too.
    let list = shown(Value::Array(vec![value.clone()]));
    list.get(1..list.len().saturating_sub(1)).unwrap_or_default().into()
}

/// A field error shows its value as Go does.
fn shown(value: Value) -> String {
    let body = FieldError::invalid(&Path::root(), value, "").body();
    body.strip_prefix("Invalid value: ").unwrap_or_default().into()
}

/// A value as `%v` shows it: `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => shown(other.clone()),
    }
}

/// The type of a decoded JSON value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let value = json!({"b": [1, 1.5, null, "x"], "a": {"<": true}});
        assert_eq!(plain(&value), "map[a:map[<:true] b:[1 1.5 <nil> x]]");
        assert_eq!(json(&value), r#"{"a":{"\u003c":true},"b":[1,1.5,null,"x"]}"#);
        assert_eq!(json(&json!("a\"<")), r#""a\"\u003c""#);
        assert_eq!(quoted("a\"\u{7f}"), r#""a\"\x7f""#);
    }
}
