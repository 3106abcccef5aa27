//! How Go prints values: a cell of type string is made by Go's `fmt` and `encoding/json` on the other side.

use serde_json::{Number, Value};
use std::fmt::Write;

/// A value as it stands in a cell of type string: text as it is, numbers as `%v` prints them, the rest as JSON.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        // What Go says of a value that is not there; a null has no type that could be printed.
        Value::Null => "<no value>".into(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => plain(number),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => json(value),
    }
}

fn plain(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => {
            let value = number.as_f64().unwrap_or_default();
            let (exponent, scientific) = scientific(value, 2);
            if value == 0.0 || (-4..6).contains(&exponent) { format!("{value}") } else { scientific }
        }
    }
}

/// The decimal exponent of a float and its shortest scientific form, the exponent with a sign and at least `width`
/// digits.
fn scientific(value: f64, width: usize) -> (i32, String) {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return (0, text);
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    let size = exponent.unsigned_abs();
    (exponent, format!("{digits}e{sign}{size:0width$}"))
}

/// A value as `encoding/json` marshals it: keys sorted, `<`, `>` and `&` escaped.
fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&json_number(number)),
        Value::String(text) => write_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(out, name);
                out.push(':');
                write_json(out, field);
            }
            out.push('}');
        }
    }
}

fn json_number(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => {
            let value = number.as_f64().unwrap_or_default();
            let (exponent, scientific) = scientific(value, 1);
            if value == 0.0 || (-6..21).contains(&exponent) { format!("{value}") } else { scientific }
        }
    }
}

fn write_json_string(out: &mut String, text: &str) {
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
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}
