use crate::validate::field::{Errors, Field};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;

/// Conditions have types, each once.
pub(super) fn conditions(conditions: &Field<'_>, errors: &mut Errors) {
    let mut known = HashSet::new();
    for kind in conditions.items().map(|condition| condition.get("type")) {
        if !known.insert(kind.text()) {
            errors.push(FieldError::duplicate(&kind.at, kind.text()));
        }
        kind.required(errors);
    }
}
