//! Values as Go's `fmt` prints them.

use serde_json::{Map, Number, Value};

use crate::quote;

/// A value as `%v` prints it: `map[a:1 b:[x y]]`.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_go::fmt;
/// assert_eq!(fmt::value(&json!({"b": ["x", null], "a": 1e6})), "map[a:1e+06 b:[x <nil>]]");
/// ```
pub fn value(value: &Value) -> String {
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
pub fn object(fields: &Map<String, Value>) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, field)| format!("{name}:{}", value(field))).collect();
    format!("map[{}]", fields.join(" "))
}

/// A list as `%v` prints it.
pub fn list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(value).collect();
    format!("[{}]", items.join(" "))
}

/// A number as `%v` prints an int64 or a float64.
pub fn number(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => float(number.as_f64().unwrap_or_default()),
    }
}

/// A float as `%v` prints it: `1.5`, `1e+06`, `+Inf`.
pub fn float(value: f64) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { '-' } else { '+' };
        return if value.is_nan() { "NaN".into() } else { format!("{sign}Inf") };
    }
    let (exponent, scientific) = scientific(value, 2);
    if (-4..6).contains(&exponent) { format!("{value}") } else { scientific }
}

/// A float as `strconv.FormatFloat(value, 'g', -1, 32)` prints it: with as many digits as a 32-bit float needs.
pub fn float32(value: f64) -> String {
    let narrow = value as f32;
    // The digits of the narrow float, not those of the float next to it.
    float(format!("{narrow}").parse().unwrap_or(value))
}

/// The decimal exponent of a float and its shortest scientific form, the exponent with a sign and at least `width`
/// digits.
pub(crate) fn scientific(value: f64, width: usize) -> (i32, String) {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return (0, text);
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    let size = exponent.unsigned_abs();
    (exponent, format!("{digits}e{sign}{size:0width$}"))
}

/// A value as `%#v` prints it: in the syntax of Go.
pub fn syntax(value: &Value) -> String {
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

/// The Go type of a decoded value, as `%T` prints it.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The Go type of a decoded value, as `%s` prints what `reflect.TypeOf` finds.
pub fn reflected_type(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { type_name(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use serde_json::json;

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for case in recorded(include_str!("cases/floats.jsonl")) {
            let value = f64::from_bits(case["bits"].as_str().unwrap().parse().unwrap());
            assert_eq!(case["plain"], float(value), "{case}");
            assert_eq!(case["json"], crate::json::encode(&json!(value)), "{case}");
            assert_eq!(case["narrow"], float32(value), "{case}");
        }
    }

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let shown = json!({"b": [1, 1.5, null, "x"], "a": {"<": true}});
        assert_eq!(value(&shown), "map[a:map[<:true] b:[1 1.5 <nil> x]]");
        assert_eq!(
            syntax(&shown),
            r#"map[string]interface {}{"a":map[string]interface {}{"<":true}, "b":[]interface {}{1, 1.5, interface {}(nil), "x"}}"#
        );
    }

    #[test]
    fn types_are_those_of_a_decoder() {
        let of = |value: Value| (type_name(&value), reflected_type(&value));
        assert_eq!(of(json!(null)), ("<nil>", "%!s(<nil>)"));
        assert_eq!(of(json!(1)), ("int64", "int64"));
        assert_eq!(of(json!(u64::MAX)), ("float64", "float64"));
        assert_eq!(of(json!([])).0, "[]interface {}");
    }
}
