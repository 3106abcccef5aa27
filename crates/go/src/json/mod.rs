//! JSON, as Go's `encoding/json` writes and checks it.

mod syntax;

pub use syntax::syntax_error;

use serde_json::Value;

use crate::fmt::scientific;
use crate::quote::push_escape;

/// A value as `json.Marshal` writes it: keys sorted, `<`, `>` and `&` escaped, numbers in Go's forms.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_go::json;
/// assert_eq!(json::encode(&json!({"b": "<", "a": 1e21})), r#"{"a":1e+21,"b":"\u003c"}"#);
/// ```
pub fn encode(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

/// The kind of a value, as the errors of `json.Unmarshal` call it.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => out.push_str(&integer.to_string()),
            None => out.push_str(&float(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, name);
                out.push(':');
                write(out, field);
            }
            out.push('}');
        }
    }
}

/// Adds a text as `encoding/json` writes it, with its quotes.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                push_escape(out, 'u', 4, char);
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// A float as `encoding/json` prints it: digits up to 1e21.
fn float(value: f64) -> String {
    let (exponent, scientific) = scientific(value, 1);
    if value == 0.0 || (-6..21).contains(&exponent) { format!("{value}") } else { scientific }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use serde_json::json;

    #[test]
    fn texts_are_written_as_go_writes_them() {
        for case in recorded(include_str!("../cases/quotes.jsonl")) {
            assert_eq!(case["json"], encode(&case["in"]), "{case}");
        }
    }

    #[test]
    fn json_is_escaped_for_html_and_its_keys_are_sorted() {
        assert_eq!(
            encode(&json!({"b": "<a&b>\u{2028}", "a": [null, true, 1, "\u{1}"]})),
            r#"{"a":[null,true,1,"\u0001"],"b":"\u003ca\u0026b\u003e\u2028"}"#
        );
    }
}
