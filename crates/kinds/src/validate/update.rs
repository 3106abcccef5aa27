//! What an update may not change.

use super::field::{Errors, Field};
use crate::kind::strategy::Strategy;
use crate::prepare::same;

pub(crate) const IMMUTABLE: &str = "field is immutable";

pub(super) fn update(strategy: &Strategy, new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    for path in strategy.immutable {
        let (new, old) = (at(new, path), at(old, path));
        if !same(Some(new.value), Some(old.value)) {
            new.invalid(IMMUTABLE, errors);
        }
    }
    if let Some(validate) = strategy.validate_update {
        validate(new, old, errors);
    }
}

fn at<'a>(object: &Field<'a>, path: &str) -> Field<'a> {
    path.split('.').fold(object.clone(), |field, name| field.get(name))
}
