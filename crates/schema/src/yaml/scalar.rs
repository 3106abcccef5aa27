use super::syntax;
use crate::Error;
use crate::json;
use serde_json::Value;
use watchkeeper_go as go;

/// A scalar, resolved as Go's YAML 1.1 reader does.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `i64`.
    Large(u64),
    Float(f64),
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// What a plain text means.
    pub(super) fn resolve(text: &'a str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                return Self::Bool(true);
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                return Self::Bool(false);
            }
            ".nan" | ".NaN" | ".NAN" => return Self::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Self::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Self::Float(f64::NEG_INFINITY),
            _ => {}
        }
        let number = match text.as_bytes()[0] {
            b'.' if is_float(text) => text.parse().ok().map(Self::Float),
            b'0'..=b'9' | b'+' | b'-' => number(&text.replace('_', "")),
            _ => None,
        };
        number.unwrap_or(Self::Text(text))
    }

    pub(super) fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Large(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
        }
    }

    pub(super) fn is(&self, tag: &str) -> bool {
        self.tag() == tag
    }

    /// The value, after a way through JSON.
    pub(super) fn into_value(self) -> Result<Value, Error> {
        let number = match self {
            Self::Null => return Ok(Value::Null),
            Self::Bool(bool) => return Ok(bool.into()),
            Self::Text(text) => return Ok(text.into()),
            Self::Int(integer) => return Ok(integer.into()),
            Self::Large(integer) => json::number(&integer.to_string()),
            Self::Float(float) if !float.is_finite() => None,
            Self::Float(float) => json::number(&go::json::encode(&float.into())),
        };
        number.map(Value::Number).ok_or_else(|| syntax("unsupported number"))
    }

    /// The name of a field, and how Go shows the key it came from.
    pub(super) fn into_key(self) -> Result<(String, String), Error> {
        let plain = |text: String| (text.clone(), text);
        Ok(match self {
            Self::Text(text) => (text.into(), go::quote(text)),
            Self::Bool(bool) => plain(bool.to_string()),
            Self::Int(integer) => plain(integer.to_string()),
            Self::Float(float) if float.is_finite() => (float_key(float), go::fmt::float(float)),
            Self::Null | Self::Large(_) | Self::Float(_) => {
                return Err(Error::Syntax("error converting YAML to JSON: unsupported map key".into()));
            }
        })
    }
}

/// The name of a field whose key is a float. As in Go it is a narrow one, which may be too large to be finite.
fn float_key(float: f64) -> String {
    match go::fmt::float32(float).as_str() {
        "+Inf" => ".inf".into(),
        "-Inf" => "-.inf".into(),
        text => text.into(),
    }
}

fn number(text: &str) -> Option<Scalar<'static>> {
    if let Some(integer) = integer(text) {
        return match i64::try_from(integer) {
            Ok(integer) => Some(Scalar::Int(integer)),
            Err(_) if text.starts_with('+') => Some(Scalar::Float(integer as f64)),
            Err(_) => u64::try_from(integer).ok().map(Scalar::Large).or_else(|| float(text)),
        };
    }
    float(text)
}

fn float(text: &str) -> Option<Scalar<'static>> {
    let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
    float.filter(|_| is_float(text)).map(Scalar::Float)
}

/// An integer in the base its prefix says; a leading zero says octal.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { -1 } else { 1 }, digits),
        None => (1, text),
    };
    let prefixed = |prefixes: [&str; 2]| prefixes.into_iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (base, digits) = if let Some(digits) = prefixed(["0x", "0X"]) {
        (16, digits)
    } else if let Some(digits) = prefixed(["0o", "0O"]) {
        (8, digits)
    } else if let Some(digits) = prefixed(["0b", "0B"]) {
        (2, digits)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let integer = i128::from(u64::from_str_radix(digits, base).ok()?);
    Some(sign * integer)
}

/// Digits with at most one point, and an exponent.
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_good = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    (!whole.is_empty() || !fraction.is_empty()) && digits(whole) && digits(fraction) && exponent_is_good
}
