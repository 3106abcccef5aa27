//! Converts values of PostgreSQL to JSON. Without I/O.

use watchkeeper_core::json::Cursor;

use crate::database::text;

/// How the values of a type are written as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` and `false`.
    Bool,
    /// A number with all its digits. What JSON has no numbers for, as `NaN`, is a text.
    Number,
    /// A text.
    Text,
    /// As it is.
    Json,
    /// Base64.
    Bytes,
    /// RFC 3339: with a `T`, and `Z` if the type has a zone.
    Time,
    /// A list, of lists if it has several dimensions; and what stands between its elements.
    List(Box<Self>, u8),
}

/// The types that are written as something else than a text, by the numbers that they have in every database.
pub(super) fn form(oid: u32) -> Form {
    match oid {
        16 => Form::Bool,
        17 => Form::Bytes,
        20 | 21 | 23 | 26 | 700 | 701 | 1700 => Form::Number,
        114 | 3802 => Form::Json,
        1114 | 1184 => Form::Time,
        _ => Form::Text,
    }
}

/// Writes a value as JSON. `Err` says what is wrong with it, without quoting it.
pub(super) fn write(form: &Form, value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let value = std::str::from_utf8(value).map_err(|_| "is not UTF-8")?;
    write_text(form, value, out)
}

fn write_text(form: &Form, value: &str, out: &mut Vec<u8>) -> Result<(), &'static str> {
    match form {
        Form::Bool => match value {
            "t" => out.extend_from_slice(b"true"),
            "f" => out.extend_from_slice(b"false"),
            _ => return Err("is neither true nor false"),
        },
        Form::Number if is_number(value) => out.extend_from_slice(value.as_bytes()),
        Form::Number | Form::Text => text(value, out),
        Form::Json => {
            let mut cursor = Cursor::new(value.as_bytes());
            cursor.skip().and_then(|_| cursor.end()).map_err(|_| "is nested too deeply to be read")?;
            out.extend_from_slice(value.as_bytes());
        }
        Form::Bytes => {
            let bytes = unhex(value.strip_prefix("\\x").ok_or("is not written in hex")?)?;
            text(&watchkeeper_go::base64::encode(bytes), out);
        }
        Form::Time => text(&time(value), out),
        Form::List(element, delimiter) => {
            let mut rest = value;
            // `[2:3]={5,6}`: where it begins is of no interest.
            if rest.starts_with('[') {
                rest = rest.split_once('=').ok_or("is no array")?.1;
            }
            let rest = list(element, *delimiter, rest, out)?;
            if !rest.is_empty() {
                return Err("is no array");
            }
        }
    }
    Ok(())
}

/// `Infinity` and `NaN` are none.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-'))
}

/// `2026-01-02 03:04:05.6+00` as `2026-01-02T03:04:05.6Z`. What has no such form (`infinity`, years before Christ) stays as it is.
fn time(value: &str) -> String {
    match value.split_once(' ') {
        Some((date, time)) if !time.contains(' ') => match time.strip_suffix("+00") {
            Some(time) => format!("{date}T{time}Z"),
            None => format!("{date}T{time}"),
        },
        _ => value.to_owned(),
    }
}

fn unhex(digits: &str) -> Result<Vec<u8>, &'static str> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    bytes.collect::<Option<_>>().ok_or("is not written in hex")
}

/// Writes the list that a text begins with; gives what comes behind it.
fn list<'t>(
    element: &Form,
    delimiter: u8,
    value: &'t str,
    out: &mut Vec<u8>,
) -> Result<&'t str, &'static str> {
    let bad = "is no array";
    let mut rest = value.strip_prefix('{').ok_or(bad)?;
    out.push(b'[');
    if let Some(rest) = rest.strip_prefix('}') {
        out.push(b']');
        return Ok(rest);
    }
    loop {
        rest = match rest.as_bytes().first().ok_or(bad)? {
            // PostgreSQL has six dimensions at most.
            b'{' => list(element, delimiter, rest, out)?,
            b'"' => {
                let (value, after) = quoted(rest).ok_or(bad)?;
                write_text(element, &value, out)?;
                after
            }
            _ => {
                let end = rest.bytes().position(|byte| byte == delimiter || byte == b'}').ok_or(bad)?;
                let (value, after) = rest.split_at(end);
                match value {
                    "NULL" => out.extend_from_slice(b"null"),
                    value => write_text(element, value, out)?,
                }
                after
            }
        };
        match rest.as_bytes().first() {
            Some(b'}') => {
                out.push(b']');
                return Ok(&rest[1..]);
            }
            Some(byte) if *byte == delimiter => {
                out.push(b',');
                rest = &rest[1..];
            }
            _ => return Err(bad),
        }
    }
}

/// The text in quotes that a text begins with, and what comes behind it.
fn quoted(value: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = value.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, value.get(at + 1..)?)),
            '\\' => text.push(characters.next()?.1),
            character => text.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(form: &Form, value: &str) -> Result<String, &'static str> {
        let mut out = Vec::new();
        write(form, value.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn list_of(form: Form) -> Form {
        Form::List(Box::new(form), b',')
    }

    #[test]
    fn values_are_written_as_json_has_them() {
        for (oid, value, expected) in [
            (16, "t", "true"),
            (23, "-5", "-5"),
            (1700, "12345678901234567890.10", "12345678901234567890.10"),
            (1700, "NaN", "\"NaN\""),
            (701, "1e+20", "1e+20"),
            (701, "-Infinity", "\"-Infinity\""),
            (25, "a \"b\"\n", r#""a \"b\"\n""#),
            (3802, r#"{"a": [1, null]}"#, r#"{"a": [1, null]}"#),
            (17, "\\x00ff10", "\"AP8Q\""),
            (1184, "2026-01-02 03:04:05.6+00", "\"2026-01-02T03:04:05.6Z\""),
            (1114, "2026-01-02 03:04:05", "\"2026-01-02T03:04:05\""),
            (1184, "infinity", "\"infinity\""),
            (1184, "0044-03-15 12:00:00+00 BC", "\"0044-03-15 12:00:00+00 BC\""),
            (1082, "2026-01-02", "\"2026-01-02\""),
            (2950, "0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10", "\"0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10\""),
        ] {
            assert_eq!(written(&form(oid), value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn arrays_are_lists() {
        for (element, value, expected) in [
            (Form::Number, "{1,NULL,3}", "[1,null,3]"),
            (Form::Number, "{}", "[]"),
            (Form::Number, "[0:1]={1,2}", "[1,2]"),
            (Form::Number, "{{1,2},{3,4}}", "[[1,2],[3,4]]"),
            (Form::Text, r#"{a,"b \"c\", \\d","NULL",NULL,""}"#, r#"["a","b \"c\", \\d","NULL",null,""]"#),
            (Form::Json, r#"{"{\"a\": 1}",2}"#, r#"[{"a": 1},2]"#),
            (Form::Bytes, r#"{"\\x00ff"}"#, r#"["AP8="]"#),
            (Form::Time, r#"{"2026-01-02 03:04:05+00"}"#, r#"["2026-01-02T03:04:05Z"]"#),
        ] {
            assert_eq!(written(&list_of(element), value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_quoted() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for (form, value) in
            [(Form::Bool, "maybe"), (Form::Bytes, "abc"), (list_of(Form::Text), "{a"), (Form::Json, &*deep)]
        {
            let error = written(&form, value).unwrap_err();
            assert!(!error.contains(value));
        }
        assert!(write(&Form::Text, b"\xff", &mut Vec::new()).is_err());
    }

    /// An array as PostgreSQL writes it.
    fn array(values: &[Option<String>]) -> String {
        let element = |value: &Option<String>| match value {
            None => "NULL".to_owned(),
            Some(value) => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        };
        format!("{{{}}}", values.iter().map(element).collect::<Vec<_>>().join(","))
    }

    proptest! {
        #[test]
        fn arrays_of_any_texts_are_lists_of_them(values in proptest::collection::vec(proptest::option::of(".{0,8}"), 0..5)) {
            let written = written(&list_of(Form::Text), &array(&values)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Vec<Option<String>>>(&written).unwrap(), values);
        }

        #[test]
        fn no_text_makes_it_panic_and_what_it_writes_is_json(value in "[\\[\\]{},\"\\\\xNUL=0-9a:.e+]{0,24}", oid in proptest::sample::select(vec![16u32, 17, 23, 114, 1184, 1700])) {
            for form in [form(oid), list_of(form(oid))] {
                if form == Form::Number || form == list_of(Form::Number) {
                    continue; // The server writes numbers only.
                }
                if let Ok(written) = written(&form, &value) {
                    let mut cursor = Cursor::new(written.as_bytes());
                    prop_assert!(cursor.skip().and_then(|_| cursor.end()).is_ok(), "{}", written);
                }
            }
        }
    }
}
