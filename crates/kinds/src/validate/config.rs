//! What config maps and secrets have in common.

use super::field::{Errors, Field};
use crate::prepare::same;
use watchkeeper_schema::FieldError;

/// The bytes of values that a config map or a secret may hold together.
pub(crate) const MAX_SIZE: usize = 1024 * 1024;

/// A key of the data.
pub(crate) fn key(key: &str, value: &Field<'_>, errors: &mut Errors) {
    let complain =
        |detail: &str, errors: &mut Errors| errors.push(FieldError::invalid(&value.at, key, detail));
    if key.len() > 253 {
        complain("must be no more than 253 characters", errors);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(is_plain) {
        complain(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            errors,
        );
    }
    match key {
        "." => complain("must not be '.'", errors),
        ".." => complain("must not be '..'", errors),
        _ if key.starts_with("..") => complain("must not start with '..'", errors),
        _ => {}
    }
}

const SEALED: &str = "field is immutable when `immutable` is set";

/// What is immutable stays so, and its data stay as they are.
pub(crate) fn sealed(new: &Field<'_>, old: &Field<'_>, fields: &[&str], errors: &mut Errors) {
    if old.get("immutable").value != true {
        return;
    }
    if new.get("immutable").value != true {
        errors.push(FieldError::forbidden(&new.get("immutable").at, SEALED));
    }
    for field in fields {
        if !same(Some(new.get(field).value), Some(old.get(field).value)) {
            errors.push(FieldError::forbidden(&new.get(field).at, SEALED));
        }
    }
}
