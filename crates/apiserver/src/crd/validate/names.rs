//! `spec.names` and `status.acceptedNames`.

use super::joined;
use super::labels::dns_1035_problems;
use crate::crd::field::{text, texts};
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

/// The names a spec must have, and what is wrong with those it has.
pub(super) fn check_requested(names: &Value, at: &Path, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(names, field).is_empty() {
            errors.push(FieldError::required(&at.child(field), ""));
        }
    }
    check(names, at, errors);
}

/// What is wrong with names that are there.
pub(super) fn check(names: &Value, at: &Path, errors: &mut Vec<FieldError>) {
    let given = |field| Some(text(names, field)).filter(|name| !name.is_empty());
    for field in ["plural", "singular"] {
        errors.extend(given(field).and_then(|name| joined(&at.child(field), name, &dns_1035_problems(name))));
    }
    for field in ["kind", "listKind"] {
        let Some(name) = given(field) else {
            continue;
        };
        let problems = dns_1035_problems(&name.to_lowercase());
        if !problems.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            errors.push(FieldError::invalid(&at.child(field), name, detail));
        }
    }
    check_each(names, "shortNames", at, errors);
    if let Some(kind) = given("kind")
        && kind == text(names, "listKind")
    {
        errors.push(FieldError::invalid(
            &at.child("listKind"),
            kind,
            "kind and listKind may not be the same",
        ));
    }
    check_each(names, "categories", at, errors);
}

fn check_each(names: &Value, field: &str, at: &Path, errors: &mut Vec<FieldError>) {
    for (index, name) in texts(names, field).iter().enumerate() {
        errors.extend(joined(&at.child(field).index(index), name, &dns_1035_problems(name)));
    }
}
