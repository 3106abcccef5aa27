//! How Go prints values: a cell of type string is made by Go's `fmt` and `encoding/json` on the other side.

use serde_json::{Number, Value};
use watchkeeper_schema::json;

/// A value as it stands in a cell of type string: text as it is, numbers as `%v` prints them, the rest as JSON.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        // What Go says of a value that is not there; a null has no type that could be printed.
        Value::Null => "<no value>".into(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => plain(number),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => json::encode(value),
    }
}

fn plain(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => {
            let value = number.as_f64().unwrap_or_default();
            let (exponent, scientific) = scientific(value);
            if value == 0.0 || (-4..6).contains(&exponent) { format!("{value}") } else { scientific }
        }
    }
}

/// The decimal exponent of a float and its shortest scientific form, the exponent with a sign and at least two digits.
fn scientific(value: f64) -> (i32, String) {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return (0, text);
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    let size = exponent.unsigned_abs();
    (exponent, format!("{digits}e{sign}{size:02}"))
}
