use super::{Object, PATCH, SET_ORDER};
use crate::Error;
use serde_json::Value;
use watchkeeper_go as go;

/// The value of `$patch`.
pub(super) enum Directive {
    Replace,
    Delete,
    Merge,
    Unknown,
}

impl Directive {
    pub(super) fn of(value: &Value) -> Self {
        match value.as_str() {
            Some("replace") => Self::Replace,
            Some("delete") => Self::Delete,
            Some("merge") => Self::Merge,
            _ => Self::Unknown,
        }
    }
}

pub(super) fn unknown(directive: &Value, patch: &Object) -> Error {
    let patch = go::fmt::object(patch);
    Error::Unmergeable(format!("unknown patch type: {} in map: {patch}", go::fmt::value(directive)))
}

/// Whether an element is there to be deleted.
pub(super) fn deletes(element: &Value) -> bool {
    element.get(PATCH).is_some_and(|directive| matches!(Directive::of(directive), Directive::Delete))
}

/// The field a directive is about: what follows its prefix and a slash.
pub(super) fn named_list(name: &str, prefix: &str) -> Result<Option<String>, Error> {
    match name.split_once('/') {
        Some((found, list)) if found == prefix => Ok(Some(list.to_owned())),
        _ if prefix == SET_ORDER => Err(bad_order()),
        _ => Err(Error::NotAPatch("invalid patch format of primitive list".into())),
    }
}

pub(super) fn bad_order() -> Error {
    Error::NotAPatch("invalid patch format of setElementOrder list".into())
}

/// Drops fields that are null, also in objects inside of lists.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Drops every object that has a directive.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            let kept =
                fields.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}
