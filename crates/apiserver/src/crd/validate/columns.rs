//! `additionalPrinterColumns`.

use crate::crd::field::text;
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What is wrong with columns.
pub(super) fn check(columns: Option<&[Value]>, at: &Path, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.unwrap_or_default().iter().enumerate() {
        check_column(column, &at.index(index), errors);
    }
}

fn check_column(column: &Value, at: &Path, errors: &mut Vec<FieldError>) {
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(&at.child("name"), ""));
    }
    let one_of = |allowed: &[&str]| format!("must be one of {}", allowed.join(","));
    match text(column, "type") {
        "" => errors.push(FieldError::required(&at.child("type"), one_of(&TYPES))),
        kind if !TYPES.contains(&kind) => {
            errors.push(FieldError::invalid(&at.child("type"), kind, one_of(&TYPES)));
        }
        _ => {}
    }
    let format = text(column, "format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        errors.push(FieldError::invalid(&at.child("format"), format, one_of(&FORMATS)));
    }
    match text(column, "jsonPath") {
        "" => errors.push(FieldError::required(&at.child("JSONPath"), "")),
        path => errors.extend(check_path(path, &at.child("JSONPath"))),
    }
}

/// A path begins with a dot. More is not asked of it.
pub(super) fn check_path(path: &str, at: &Path) -> Option<FieldError> {
    let is_wrong = !path.starts_with('.');
    is_wrong.then(|| FieldError::invalid(at, path, "must be a simple json path starting with ."))
}
