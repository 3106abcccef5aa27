//! Values to YAML, as kube-apiserver writes it: keys sorted, lists not indented below their key.

use super::scalar::Scalar;
use serde_json::{Map, Value};
use std::fmt::Write;
use watchkeeper_go as go;

/// Encodes a value as a document that [`decode`](super::decode) reads as the same value.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_schema::yaml;
/// let text = yaml::encode(&json!({"kind": "Widget", "spec": {"list": ["a", "1"], "none": {}}}));
/// assert_eq!(text, "kind: Widget\nspec:\n  list:\n  - a\n  - \"1\"\n  none: {}\n");
/// ```
pub fn encode(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => mapping(fields, 0, &mut out),
        Value::Array(items) if !items.is_empty() => sequence(items, 0, &mut out),
        scalar => {
            inline(scalar, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

fn mapping(fields: &Map<String, Value>, indent: usize, out: &mut String) {
    for (at, (name, value)) in fields.iter().enumerate() {
        // The first stands where the dash of a list or the beginning of a line left off.
        if at > 0 {
            spaces(indent, out);
        }
        if name.contains('\n') {
            quoted(name, out);
        } else {
            text(name, indent, out);
        }
        out.push(':');
        below(value, indent, out);
    }
}

fn sequence(items: &[Value], indent: usize, out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            spaces(indent, out);
        }
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => mapping(fields, indent + 2, out),
            Value::Array(items) if !items.is_empty() => sequence(items, indent + 2, out),
            scalar => {
                inline(scalar, indent, out);
                out.push('\n');
            }
        }
    }
}

/// What follows the colon of a key.
fn below(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            spaces(indent + 2, out);
            mapping(fields, indent + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            spaces(indent, out);
            sequence(items, indent, out);
        }
        scalar => {
            out.push(' ');
            inline(scalar, indent, out);
            out.push('\n');
        }
    }
}

fn inline(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&go::fmt::number(number)),
        Value::String(string) => text(string, indent, out),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn spaces(count: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', count));
}

/// A text in the plainest style that reads as the same text.
fn text(string: &str, indent: usize, out: &mut String) {
    let is_printable = |char: char| !char.is_control() && char != '\u{feff}' && char != '\u{85}';
    if string.contains('\n')
        && string.chars().all(|char| char == '\n' || is_printable(char))
        && !awkward_lines(string)
    {
        block(string, indent, out);
    } else if !string.chars().all(is_printable) || is_ambiguous(string) {
        quoted(string, out);
    } else if needs_quotes(string) {
        let _ = write!(out, "'{}'", string.replace('\'', "''"));
    } else {
        out.push_str(string);
    }
}

/// Whether a text on its own would be read as something else than a text.
fn is_ambiguous(string: &str) -> bool {
    string.is_empty()
        || !matches!(Scalar::resolve(string), Scalar::Text(_))
        || is_time(string)
        || is_sexagesimal(string)
}

/// `2006-01-02`, and anything that begins so.
fn is_time(string: &str) -> bool {
    let bytes = string.as_bytes();
    bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[5].is_ascii_digit()
}

/// `1:30` was once a number.
fn is_sexagesimal(string: &str) -> bool {
    let rest = string.trim_start_matches(['-', '+']);
    rest.contains(':')
        && rest.starts_with(|char: char| char.is_ascii_digit())
        && rest.chars().all(|char| char.is_ascii_digit() || matches!(char, ':' | '_' | '.'))
}

/// Whether a text has to be quoted though it can only be a text.
fn needs_quotes(string: &str) -> bool {
    string.starts_with(|char: char| "-?:,[]{}#&*!|>'\"%@`= \t".contains(char)) && !is_plain_dash(string)
        || string.ends_with([' ', ':'])
        || string.contains(": ")
        || string.contains(" #")
        || string == "<<"
        || string.starts_with("---")
        || string.starts_with("...")
}

/// `-a` is plain, `- a` is not.
fn is_plain_dash(string: &str) -> bool {
    let mut chars = string.chars();
    matches!(chars.next(), Some('-' | '?' | ':')) && chars.next().is_some_and(|next| !" ,[]{}".contains(next))
}

/// Lines that a block could not keep as they are.
fn awkward_lines(string: &str) -> bool {
    string.starts_with(['\n', ' '])
        || string.lines().any(|line| line.ends_with(' ') && line.trim().is_empty())
}

fn block(string: &str, indent: usize, out: &mut String) {
    let ending = match (string.ends_with('\n'), string.ends_with("\n\n")) {
        (false, _) => "|-",
        (true, false) => "|",
        (true, true) => "|+",
    };
    out.push_str(ending);
    let body = string.strip_suffix('\n').unwrap_or(string);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            spaces(indent + 2, out);
            out.push_str(line);
        }
    }
}

fn quoted(string: &str, out: &mut String) {
    out.push('"');
    for char in string.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{85}' => out.push_str("\\N"),
            char if char.is_control() && (char as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", char as u32);
            }
            char if char.is_control() || char == '\u{feff}' => {
                let _ = write!(out, "\\u{:04x}", char as u32);
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::decode;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn objects_are_written_as_kube_apiserver_writes_them() {
        let object = json!({
            "metadata": {"creationTimestamp": "2026-11-15T06:00:00Z", "labels": {"x": "y"}, "finalizers": ["a/b"], "annotations": {}},
            "data": {"script": "one\ntwo\n", "open": "one\ntwo", "number": "12", "yes": "true", "colon": "a: b", "dash": "-x", "empty": ""},
            "list": [[1, 2], {"a": 1, "b": [null]}, 1.5],
        });
        let expected = "\
data:
  colon: 'a: b'
  dash: -x
  empty: \"\"
  number: \"12\"
  open: |-
    one
    two
  script: |
    one
    two
  \"yes\": \"true\"
list:
- - 1
  - 2
- a: 1
  b:
  - null
- 1.5
metadata:
  annotations: {}
  creationTimestamp: \"2026-11-15T06:00:00Z\"
  finalizers:
  - a/b
  labels:
    x: \"y\"
";
        assert_eq!(encode(&object), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(500)))]

        #[test]
        fn what_is_written_is_read_as_the_same(value in crate::arbitrary::value()) {
            // All JSON is YAML; whole floats are integers there.
            let value = decode(value.to_string().as_bytes()).unwrap().value;
            let text = encode(&value);
            prop_assert_eq!(decode(text.as_bytes()).map(|decoded| decoded.value), Ok(value), "{}", text);
        }

        #[test]
        fn any_text_comes_back(text in "([a-c]|[-:#?!&*|>%@`'\"{}\\[\\], \n\t\u{85}\u{e9}\u{1f600}0-9.~<=_ynx]){0,12}") {
            for value in [json!(text), json!({text.clone(): text}), json!([text, {"k": text}])] {
                let written = encode(&value);
                prop_assert_eq!(decode(written.as_bytes()).map(|decoded| decoded.value), Ok(value), "{}", written);
            }
        }
    }
}
