//! JSON to values, strictly, as kube-apiserver decodes objects it has no Go type for.
//!
//! - Numbers without a point that fit an `i64` are integers; all others are floats; a float beyond all floats is an
//!   error.
//! - A field given twice keeps its last value and is reported with its full path.
//! - Nesting is limited. kube-apiserver stops at 10,000 levels; the limit here is that of every other reader in this
//!   workspace.
//! - Text that is not UTF-8 and lone surrogates are errors; kube-apiserver replaces both by U+FFFD.
//!
//! The size of the bytes is the caller's to limit, and so is what becomes of them: see [`Weight`](crate::Weight).

use crate::Error;
use crate::trail::Trail;
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use watchkeeper_core::json::{Cursor, SyntaxError};
use watchkeeper_go as go;

/// How deep values may be nested.
pub const MAX_DEPTH: usize = watchkeeper_core::json::MAX_DEPTH as usize;

/// How many strict decoding errors are kept of one document.
const MAX_STRICT_ERRORS: usize = 100;

/// How many bytes of strict decoding errors are written.
const MAX_WRITTEN: usize = 8 << 20;

/// A decoded document.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The value.
    pub value: Value,
    /// What strict field validation objects to, worded for a `Warning` header or for
    /// [`strict_message`](crate::strict_message): `duplicate field "spec.size"`. In the order of the document, each
    /// once, at most 100.
    pub strict_errors: Vec<String>,
}

/// Decodes one JSON document that fills all the bytes.
///
/// ```
/// use watchkeeper_schema::json;
/// let decoded = json::decode(br#"{"spec": {"size": 1, "size": 2}}"#)?;
/// assert_eq!(decoded.value["spec"]["size"], 2);
/// assert_eq!(decoded.strict_errors, [r#"duplicate field "spec.size""#]);
/// # Ok::<(), watchkeeper_schema::Error>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    read(bytes).map_err(|error| match error {
        Error::Syntax(_) => go::json::syntax_error(bytes).map_or(error, Error::Syntax),
        error => error,
    })
}

fn read(bytes: &[u8]) -> Result<Decoded, Error> {
    let mut decoder = Decoder { cursor: Cursor::new(bytes), strict_errors: StrictErrors::default() };
    let value = decoder.value(&Trail::Start, MAX_DEPTH)?;
    decoder.cursor.end().map_err(syntax)?;
    Ok(Decoded { value, strict_errors: decoder.strict_errors.texts })
}

struct Decoder<'a> {
    cursor: Cursor<'a>,
    strict_errors: StrictErrors,
}

impl Decoder<'_> {
    fn value(&mut self, at: &Trail<'_>, depth: usize) -> Result<Value, Error> {
        match self.cursor.peek().map_err(syntax)? {
            b'{' => self.object(at, depth.checked_sub(1).ok_or(Error::TooDeep)?),
            b'[' => self.array(at, depth.checked_sub(1).ok_or(Error::TooDeep)?),
            b'"' => self.string().map(Value::String),
            _ => scalar(self.cursor.raw().map_err(syntax)?),
        }
    }

    fn object(&mut self, at: &Trail<'_>, depth: usize) -> Result<Value, Error> {
        self.cursor.expect(b'{', "an object").map_err(syntax)?;
        let mut fields = Map::new();
        if self.cursor.closes_at_once(b'}').map_err(syntax)? {
            return Ok(Value::Object(fields));
        }
        loop {
            let name = self.string()?;
            self.cursor.expect(b':', "a colon").map_err(syntax)?;
            let earlier = self.strict_errors.texts.len();
            let value = self.value(&Trail::Property(at, &name), depth)?;
            match fields.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    self.strict_errors.duplicate(earlier, || at.dotted(entry.key()));
                    entry.insert(value);
                }
            }
            if !self.cursor.more(b'}').map_err(syntax)? {
                return Ok(Value::Object(fields));
            }
        }
    }

    fn array(&mut self, at: &Trail<'_>, depth: usize) -> Result<Value, Error> {
        self.cursor.expect(b'[', "an array").map_err(syntax)?;
        let mut items = Vec::new();
        if self.cursor.closes_at_once(b']').map_err(syntax)? {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(&Trail::Item(at, items.len()), depth)?);
            if !self.cursor.more(b']').map_err(syntax)? {
                return Ok(Value::Array(items));
            }
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        let text = self.cursor.string().map_err(syntax)?;
        let end = self.cursor.position();
        let decoded = text.decode();
        decoded
            .map(|text| text.into_owned())
            .ok_or_else(|| Error::Syntax(format!("the string that ends at byte {end} is not valid Unicode")))
    }
}

/// A literal or a number that passed the grammar.
fn scalar(raw: &[u8]) -> Result<Value, Error> {
    match raw {
        b"null" => return Ok(Value::Null),
        b"true" => return Ok(Value::Bool(true)),
        b"false" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let text = String::from_utf8_lossy(raw);
    number(&text).map(Value::Number).ok_or_else(|| {
        Error::Syntax(format!("json: cannot unmarshal number {text} into Go value of type float64"))
    })
}

/// An integer if it looks like one and fits, else a float; `None` beyond all floats.
pub(crate) fn number(text: &str) -> Option<Number> {
    if !text.contains('.')
        && let Ok(integer) = text.parse::<i64>()
    {
        return Some(integer.into());
    }
    Number::from_f64(text.parse().ok()?)
}

/// Whether a value is nested no deeper than `room`, looking at no more than `measurable` values.
pub(crate) fn nests_within(value: &Value, room: usize, measurable: &mut usize) -> bool {
    let Some(left) = measurable.checked_sub(1) else {
        return false;
    };
    *measurable = left;
    match (value, room.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => false,
        (Value::Array(items), Some(room)) => items.iter().all(|item| nests_within(item, room, measurable)),
        (Value::Object(fields), Some(room)) => {
            fields.values().all(|field| nests_within(field, room, measurable))
        }
        _ => true,
    }
}

fn syntax(error: SyntaxError) -> Error {
    match error {
        SyntaxError::Truncated => Error::Syntax("unexpected end of JSON input".into()),
        SyntaxError::TooDeep { .. } => Error::TooDeep,
        error => Error::Syntax(format!("invalid JSON: {error}")),
    }
}

/// Strict decoding errors: each once, in order, not too many.
#[derive(Default)]
struct StrictErrors {
    texts: Vec<String>,
    seen: HashSet<String>,
    written: usize,
}

impl StrictErrors {
    /// Notes a duplicate in front of what was found inside of its value. How much is written to find out that a duplicate is
    /// known already is limited too.
    fn duplicate(&mut self, at: usize, path: impl FnOnce() -> String) {
        if at >= MAX_STRICT_ERRORS || self.written > MAX_WRITTEN {
            return;
        }
        let text = format!("duplicate field {}", go::quote(&path()));
        self.written += text.len();
        if self.seen.insert(text.clone()) {
            self.texts.insert(at, text);
            self.texts.truncate(MAX_STRICT_ERRORS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        decode(text.as_bytes()).unwrap().value
    }

    #[test]
    fn integers_stay_integers_and_all_else_becomes_a_float() {
        assert_eq!(
            value("[0, -0, 9223372036854775807, -9223372036854775808]"),
            json!([0, 0, i64::MAX, i64::MIN])
        );
        for (text, float) in [
            ("1.0", 1.0),
            ("1e2", 100.0),
            ("9223372036854775808", 9223372036854775808.0),
            ("18446744073709551615", 18446744073709551615.0),
            ("-0.0", -0.0),
        ] {
            let Value::Number(number) = value(text) else { panic!() };
            assert!(number.is_f64(), "{text}");
            assert_eq!(number.as_f64(), Some(float));
        }
        assert!(decode(b"1e999").is_err());
        assert_eq!(value(&format!("1{}", "0".repeat(300))), json!(1e300));
    }

    #[test]
    fn duplicate_fields_are_named_by_their_path_and_the_last_one_wins() {
        let decoded = decode(
            br#"{"a":{"b":1,"b":{"x":1,"x":2}},"l":[{"c":1,"c":2,"c":3}],"a":{"z":1},"q\"":1,"q\"":2}"#,
        )
        .unwrap();
        assert_eq!(decoded.value, json!({"a": {"z": 1}, "l": [{"c": 3}], "q\"": 2}));
        assert_eq!(
            decoded.strict_errors,
            [
                r#"duplicate field "a.b""#,
                r#"duplicate field "a.b.x""#,
                r#"duplicate field "l[0].c""#,
                r#"duplicate field "a""#,
                r#"duplicate field "q\"""#
            ]
        );
    }

    #[test]
    fn strict_errors_are_limited() {
        let fields: Vec<String> = (0..500).map(|n| format!("\"{n}\":1,\"{n}\":2")).collect();
        let decoded = decode(format!("{{{}}}", fields.join(",")).as_bytes()).unwrap();
        assert_eq!(decoded.strict_errors.len(), MAX_STRICT_ERRORS);
    }

    #[test]
    fn bad_bytes_are_refused_with_a_reason() {
        for bad in [
            &b""[..],
            b"{",
            b"{} x",
            b"NaN",
            b"[Infinity]",
            b"\"\xff\"",
            b"\"\\ud800\"",
            b"{'a':1}",
            b"[1,]",
            b"\xef\xbb\xbf{}",
        ] {
            let error = decode(bad).unwrap_err();
            assert!(matches!(&error, Error::Syntax(text) if !text.is_empty()), "{bad:?}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(decode(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(decode(nested(MAX_DEPTH + 1).as_bytes()), Err(Error::TooDeep));
        assert_eq!(decode("{\"a\":".repeat(1_000_000).as_bytes()), Err(Error::TooDeep));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(2_000)))]

        /// serde_json is the judge of what is JSON.
        #[test]
        fn agrees_with_serde_json_on_what_is_json(
            text in r#"(\{"[a-c]{0,2}":|\[|1|-0|0\.5|e9|E\+400|"[ -~]{0,6}"|"\\ud8[0-9a]0"|,|\]|\}|true|null| |:){0,14}"#,
        ) {
            let theirs = serde_json::from_str::<Value>(&text);
            let ours = decode(text.as_bytes());
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}: {:?} {:?}", text, ours, theirs);
        }

        #[test]
        fn agrees_with_serde_json_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode(&bytes).is_ok(), serde_json::from_slice::<Value>(&bytes).is_ok());
        }

        #[test]
        fn what_is_written_is_read_back(value in crate::arbitrary::value()) {
            let bytes = serde_json::to_vec(&value).unwrap();
            prop_assert_eq!(decode(&bytes).unwrap().value, value);
        }
    }
}
