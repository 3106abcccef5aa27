//! Converts values of MySQL to JSON. Without I/O.

use watchkeeper_core::json::Cursor;

use crate::database::text;

/// How the values of a column are written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` and `false`, and other numbers as they are.
    Bool,
    /// A number with all its digits.
    Number,
    /// A text.
    Text,
    /// As it is.
    Json,
    /// Base64.
    Bytes,
    /// RFC 3339: with a `T`.
    Time,
    /// The same with a `Z`: every connection speaks of times in UTC.
    Instant,
}

/// What the values of a column are, by its type (`bigint`) and by how that was declared (`bigint(20) unsigned`).
pub(super) fn form(data_type: &str, declared: &str) -> Form {
    match data_type {
        "tinyint" if declared.starts_with("tinyint(1)") => Form::Bool,
        "bit" if declared == "bit(1)" => Form::Bool,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double" | "bit"
        | "year" => Form::Number,
        "json" => Form::Json,
        "datetime" => Form::Time,
        "timestamp" => Form::Instant,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => Form::Bytes,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => Form::Bytes,
        _ => Form::Text,
    }
}

/// Whether values of a type can be larger than 64 KiB.
pub(super) fn is_large(data_type: &str) -> bool {
    data_type == "json"
        || data_type == "vector"
        || data_type.ends_with("text")
        || form(data_type, "") == Form::Bytes && !data_type.ends_with("binary")
}

/// Writes a value as JSON. `Err` says what is wrong with it, without quoting it.
pub(super) fn write(form: Form, value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    if form == Form::Bytes {
        text(&watchkeeper_go::base64::encode(value), out);
        return Ok(());
    }
    let value = std::str::from_utf8(value).map_err(|_| "is not UTF-8")?;
    match form {
        Form::Bool if value == "1" => out.extend_from_slice(b"true"),
        Form::Bool if value == "0" => out.extend_from_slice(b"false"),
        Form::Bool | Form::Number => number(value, out),
        Form::Json => {
            let mut cursor = Cursor::new(value.as_bytes());
            cursor.skip().and_then(|_| cursor.end()).map_err(|_| "is nested too deeply to be read")?;
            out.extend_from_slice(value.as_bytes());
        }
        Form::Time => text(&time(value, ""), out),
        Form::Instant => text(&time(value, "Z"), out),
        Form::Text | Form::Bytes => text(value, out),
    }
    Ok(())
}

/// Without the zeros that a column has in front if it was declared so. What is no number is a text.
fn number(value: &str, out: &mut Vec<u8>) {
    let (sign, digits) = value.strip_prefix('-').map_or(("", value), |digits| ("-", digits));
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-'));
    if !is_number {
        return text(value, out);
    }
    let trimmed = digits.trim_start_matches('0');
    let zero = if trimmed.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "0" };
    for part in [sign, zero, trimmed] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// `2026-01-02 03:04:05.6` as `2026-01-02T03:04:05.6`. A day that is none, as MySQL has it for "unknown", stays as it is.
fn time(value: &str, zone: &str) -> String {
    match value.split_once(' ') {
        Some((date, _)) if date.contains("-00") => value.to_owned(),
        Some((date, time)) => format!("{date}T{time}{zone}"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(form: Form, value: &[u8]) -> Result<String, &'static str> {
        let mut out = Vec::new();
        write(form, value, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_are_written_as_json_has_them() {
        for (data_type, declared, value, expected) in [
            ("tinyint", "tinyint(1)", "1", "true"),
            ("tinyint", "tinyint(1)", "2", "2"),
            ("tinyint", "tinyint(4)", "1", "1"),
            ("bit", "bit(1)", "0", "false"),
            ("bit", "bit(9)", "257", "257"),
            ("bigint", "bigint(20) unsigned", "18446744073709551615", "18446744073709551615"),
            ("int", "int(8) unsigned zerofill", "00000042", "42"),
            ("int", "int(8) unsigned zerofill", "00000000", "0"),
            ("decimal", "decimal(30,3)", "-12345678901234567890.100", "-12345678901234567890.100"),
            ("decimal", "decimal(8,3) zerofill", "00000.250", "0.250"),
            ("double", "double", "1e20", "1e20"),
            ("year", "year(4)", "0000", "0"),
            ("json", "json", r#"{"a": [1, null]}"#, r#"{"a": [1, null]}"#),
            ("datetime", "datetime(1)", "2026-02-03 04:05:06.7", "\"2026-02-03T04:05:06.7\""),
            ("timestamp", "timestamp", "2026-02-03 04:05:06", "\"2026-02-03T04:05:06Z\""),
            ("datetime", "datetime", "0000-00-00 00:00:00", "\"0000-00-00 00:00:00\""),
            ("date", "date", "2026-02-03", "\"2026-02-03\""),
            ("varbinary", "varbinary(2)", "ab", "\"YWI=\""),
            ("enum", "enum('a')", "a \"b\"", r#""a \"b\"""#),
        ] {
            assert_eq!(
                written(form(data_type, declared), value.as_bytes()).as_deref(),
                Ok(expected),
                "{declared}"
            );
        }
        assert_eq!(written(Form::Bytes, b"\x00\xff").as_deref(), Ok("\"AP8=\""));
        assert_eq!(written(Form::Text, b"\xff"), Err("is not UTF-8"));
        let deep = "[".repeat(100_000);
        assert!(written(Form::Json, deep.as_bytes()).is_err());
        assert!(
            is_large("longtext")
                && is_large("blob")
                && is_large("point")
                && !is_large("varbinary")
                && !is_large("int")
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_json(value in "[0-9.]{0,9}|[a-z:\" -]{0,9}", form in proptest::sample::select(vec![Form::Bool, Form::Text, Form::Time, Form::Instant, Form::Json])) {
            // The server writes numbers with one point at most.
            prop_assume!(form != Form::Bool || value.parse::<f64>().is_ok() && !value.ends_with('.') || value.is_empty());
            if let Ok(written) = written(form, value.as_bytes()) {
                let mut cursor = Cursor::new(written.as_bytes());
                prop_assert!(cursor.skip().and_then(|_| cursor.end()).is_ok(), "{}", written);
            }
        }
    }
}
