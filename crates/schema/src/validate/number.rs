//! Numbers against their limits, with Go's types: an integer is compared as an integer, and limits are floats.

use super::walk::place;
use crate::FieldError;
use crate::Path;
use crate::format::Format;
use crate::schema::{Node, Type};
use serde_json::{Number, Value};
use watchkeeper_go as go;

/// A number that fails, before anybody asked where it stands.
pub(super) struct Failure {
    /// `None` for errors that name no field.
    value: Option<Number>,
    detail: Detail,
}

enum Detail {
    /// `NAME in body ...`
    Body(String),
    /// `... NAME ...`, the name in the middle.
    Around(String, String),
}

impl Failure {
    fn body(value: impl Into<Number>, rule: String) -> Self {
        Self { value: Some(value.into()), detail: Detail::Body(rule) }
    }

    pub(super) fn into_error(self, name: &str, base: &Path) -> FieldError {
        let detail = match self.detail {
            Detail::Body(rule) => format!("{name} in body {rule}"),
            Detail::Around(before, after) => format!("{before}{name}{after}"),
        };
        match self.value {
            Some(value) => FieldError::invalid(&place(name, base), Value::Number(value), detail),
            None => FieldError::invalid(base, "", detail),
        }
    }
}

/// What is wrong with a number; a list that is almost always empty.
pub(super) fn check(node: &Node, number: &Number) -> Vec<Failure> {
    let checks = &node.checks;
    let mut failures = Vec::new();
    let range = Range::of(node);
    range.check(number, "Checked", &mut failures);
    if let Some(factor) = checks.multiple_of {
        range.check_limit(factor, "MultipleOf", &mut failures);
        failures.extend(check_multiple(number, factor, range.holds_limit(factor)));
    }
    if let Some(limit) = checks.minimum {
        range.check_limit(limit, "Minimum boundary", &mut failures);
        let words = if checks.exclusive_minimum { "greater than" } else { "greater than or equal to" };
        failures.extend(check_limit(number, limit, range.holds_limit(limit), words, |order| {
            order.is_gt() || (order.is_eq() && !checks.exclusive_minimum)
        }));
    }
    if let Some(limit) = checks.maximum {
        range.check_limit(limit, "Maximum boundary", &mut failures);
        let words = if checks.exclusive_maximum { "less than" } else { "less than or equal to" };
        failures.extend(check_limit(number, limit, range.holds_limit(limit), words, |order| {
            order.is_lt() || (order.is_eq() && !checks.exclusive_maximum)
        }));
    }
    failures
}

/// An integer is compared with the whole part of the limit, unless the limit itself does not fit the type.
fn check_limit(
    number: &Number,
    limit: f64,
    native: bool,
    words: &str,
    passes: impl Fn(std::cmp::Ordering) -> bool,
) -> Option<Failure> {
    let (order, value, shown) = match number.as_i64() {
        Some(integer) if native => {
            (integer.cmp(&(limit as i64)), Some(number.clone()), (limit as i64).to_string())
        }
        _ => {
            let float = number.as_f64()?;
            (float.partial_cmp(&limit)?, Number::from_f64(float), go::fmt::float(limit))
        }
    };
    (!passes(order))
        .then(|| Failure::body(value.unwrap_or_else(|| number.clone()), format!("should be {words} {shown}")))
}

fn check_multiple(number: &Number, factor: f64, native: bool) -> Option<Failure> {
    let (positive, multiple, value, shown) = match number.as_i64() {
        Some(integer) if native => {
            let factor = factor as i64;
            (factor > 0, factor > 0 && integer % factor == 0, Some(number.clone()), factor.to_string())
        }
        _ => {
            let float = number.as_f64()?;
            let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (factor > 0.0, is_integral(Some(quotient)), Number::from_f64(float), go::fmt::float(factor))
        }
    };
    if !positive {
        let factor = match number.as_i64() {
            Some(_) if native => Number::from(factor as i64),
            _ => Number::from_f64(factor)?,
        };
        return Some(Failure {
            value: Some(factor),
            detail: Detail::Around(
                "factor MultipleOf declared for ".into(),
                format!(" must be positive: {shown}"),
            ),
        });
    }
    (!multiple).then(|| {
        Failure::body(value.unwrap_or_else(|| number.clone()), format!("should be a multiple of {shown}"))
    })
}

/// What numbers a type and format can hold.
struct Range<'a> {
    kind: &'a str,
    format: &'a str,
    holds: Holds,
}

#[derive(Clone, Copy)]
enum Holds {
    Everything,
    Floats32,
    Integers(i64, i64),
}

impl<'a> Range<'a> {
    fn of(node: &'a Node) -> Self {
        let format = match node.checks.format {
            Some(Format::Text(_)) | None => "",
            Some(_) => &node.checks.format_name,
        };
        let holds = match (&node.kind, node.checks.format) {
            _ if node.int_or_string => Holds::Everything,
            (Some(Type::Integer), Some(Format::Int32)) => Holds::Integers(i32::MIN.into(), i32::MAX.into()),
            (Some(Type::Integer), _) => Holds::Integers(i64::MIN, i64::MAX),
            (Some(Type::Number), Some(Format::Float)) => Holds::Floats32,
            _ => Holds::Everything,
        };
        Self { kind: node.type_name(), format, holds }
    }

    fn check(&self, number: &Number, what: &str, failures: &mut Vec<Failure>) {
        let holds = match (self.holds, number.as_i64()) {
            (Holds::Integers(low, high), Some(integer)) => (low..=high).contains(&integer),
            _ => number.as_f64().is_some_and(|float| self.holds_limit(float)),
        };
        if !holds {
            let with = match self.format {
                "" => " (default format)".to_owned(),
                format => format!(" with format {format}"),
            };
            failures.push(Failure {
                value: None,
                detail: Detail::Around(
                    format!("{what} value must be of type {}{with} in ", self.kind),
                    String::new(),
                ),
            });
        }
    }

    fn check_limit(&self, limit: f64, what: &str, failures: &mut Vec<Failure>) {
        if let Some(limit) = Number::from_f64(limit) {
            self.check(&limit, what, failures);
        }
    }

    fn holds_limit(&self, limit: f64) -> bool {
        match self.holds {
            Holds::Everything => true,
            Holds::Floats32 => (limit as f32).is_finite(),
            // The upper bound of i64 is no float: the next one is beyond it.
            Holds::Integers(low, high) => {
                limit.fract() == 0.0
                    && limit >= low as f64
                    && (limit < i64::MAX as f64)
                    && limit as i64 <= high
            }
        }
    }
}

/// Whether a float counts as an integer: whole to nine digits, and within the integers a float can hold.
pub(super) fn is_integral(float: Option<f64>) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let Some(float) = float.filter(|float| float.abs() <= LARGEST) else {
        return false;
    };
    let whole = if float < 0.0 { 0.0 } else { float.trunc() };
    if float.fract() == 0.0 {
        return true;
    }
    if whole == 0.0 {
        return false;
    }
    (float - whole).abs() / (float.abs() + whole) < 1e-9
}

/// Whether a value is one of an enumeration's in the eyes of Go, which converts it to the other's type first: a float
/// is cut to an integer, an integer becomes a float or even the character it numbers. `null` is never one.
pub(super) fn equals_in_go(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match (value.as_i64(), allowed.as_i64()) {
            (Some(value), Some(allowed)) => value == allowed,
            (Some(value), None) => allowed.as_f64() == Some(value as f64),
            (None, Some(allowed)) => value.as_f64().is_some_and(|float| float as i64 == allowed),
            (None, None) => value.as_f64() == allowed.as_f64(),
        },
        (Value::Number(value), Value::String(allowed)) => {
            let char = value.as_i64().map(|code| {
                u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
            });
            char.is_some_and(|char| allowed.chars().eq([char]))
        }
        (value, allowed) => value == allowed,
    }
}
