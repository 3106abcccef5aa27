//! How Go prints values, because error texts are made by Go's `fmt`, `strconv` and `encoding/json` on the other side.

use serde_json::{Map, Number, Value};
use std::fmt::Write;

/// A quoted string as `%q` prints it.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(char),
            '\0'..='\u{7f}' => push_escape(&mut out, 'x', 2, char),
            _ if is_printable(char) => out.push(char),
            '\0'..='\u{ffff}' => push_escape(&mut out, 'u', 4, char),
            _ => push_escape(&mut out, 'U', 8, char),
        }
    }
    out.push('"');
    out
}

/// Whether `unicode.IsPrint` holds for a character.
pub(crate) fn is_print(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\u{7f}' => false,
        _ => is_printable(char),
    }
}

/// Whether a character beyond ASCII is shown as it is. The standard library knows; it tells through the escapes of
/// every character but the first of a string.
fn is_printable(char: char) -> bool {
    let mut probe = String::from("a");
    probe.push(char);
    !probe.escape_debug().skip(1).any(|shown| shown == '\\')
}

fn push_escape(out: &mut String, letter: char, width: usize, char: char) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\{letter}{:0width$x}", u32::from(char));
}

/// A float as `%v` prints it: `1.5`, `1e+06`.
pub(crate) fn float(value: f64) -> String {
    let (exponent, scientific) = scientific(value, 2);
    if (-4..6).contains(&exponent) { format!("{value}") } else { scientific }
}

/// A float as the shortest text that a 32-bit float needs: how the keys of YAML maps come out.
pub(crate) fn float32(value: f64) -> String {
    let narrow = value as f32;
    let shortest: f64 = format!("{narrow}").parse().unwrap_or(value);
    float(shortest)
}

/// A float as `encoding/json` prints it: digits up to 1e21.
fn json_float(value: f64) -> String {
    let (exponent, scientific) = scientific(value, 1);
    if value == 0.0 || (-6..21).contains(&exponent) { format!("{value}") } else { scientific }
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

/// A number as `%v` prints an int64 or a float64.
pub(crate) fn number(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => float(number.as_f64().unwrap_or_default()),
    }
}

/// A value as `%v` prints it: `map[a:1 b:[x y]]`.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(found) => number(found),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items),
        Value::Object(fields) => object(fields),
    }
}

/// An object as `%v` prints it.
pub(crate) fn object(fields: &Map<String, Value>) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, field)| format!("{name}:{}", value(field))).collect();
    format!("map[{}]", fields.join(" "))
}

/// A list as `%v` prints it.
pub(crate) fn list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(value).collect();
    format!("[{}]", items.join(" "))
}

/// A value as `%#v` prints it: in the syntax of Go.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{}:{}", quote(name), syntax(field))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Null => "interface {}(nil)".into(),
        other => self::value(other),
    }
}

/// The Go type a decoded value has.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as `encoding/json` marshals it: keys sorted, `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => out.push_str(&integer.to_string()),
            None => out.push_str(&json_float(number.as_f64().unwrap_or_default())),
        },
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

/// Adds a text as JSON as Go writes it.
pub(crate) fn write_json_string(out: &mut String, text: &str) {
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

/// The name of a value's JSON type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_i64().is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (text, quoted) in [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("tab\tnl\nbell\u{7}nul\0del\u{7f}", r#""tab\tnl\nbell\anul\x00del\x7f""#),
            ("é日本😀", "\"é日本😀\""),
            ("nbsp\u{a0}zwsp\u{200b}bom\u{feff}", r#""nbsp\u00a0zwsp\u200bbom\ufeff""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{e000}\u{10ffff}", r#""\ue000\U0010ffff""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (value, plain, in_json) in [
            (1.5, "1.5", "1.5"),
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (100000.0, "100000", "100000"),
            (1000000.0, "1e+06", "1000000"),
            (1e20, "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (1.25e-5, "1.25e-05", "0.0000125"),
            (1e-7, "1e-07", "1e-7"),
            (1e300, "1e+300", "1e+300"),
        ] {
            assert_eq!(float(value), plain);
            assert_eq!(json(&json!(value)), in_json);
        }
    }

    #[test]
    fn json_is_escaped_for_html_and_its_keys_are_sorted() {
        assert_eq!(
            json(&json!({"b": "<a&b>\u{2028}", "a": [null, true, 1, "\u{1}"]})),
            r#"{"a":[null,true,1,"\u0001"],"b":"\u003ca\u0026b\u003e\u2028"}"#
        );
    }
}
