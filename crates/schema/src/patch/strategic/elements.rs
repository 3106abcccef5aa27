use super::Object;
use crate::Error;
use serde_json::Value;
use std::collections::HashMap;
use watchkeeper_go as go;

/// What elements of a list are told apart by.
#[derive(Clone, Copy)]
pub(super) enum Identity<'k> {
    /// The elements are scalars.
    Value,
    /// The elements are objects, each with this field.
    Key(&'k str),
}

/// Whether the elements of a list are objects. All of them must be of one type, and lists of lists are refused.
pub(super) fn are_objects(lists: [&[Value]; 2]) -> Result<bool, Error> {
    let mut elements = lists.into_iter().flatten();
    let Some(first) = elements.next() else {
        return Err(Error::Unmergeable("no elements in any of the given slices".into()));
    };
    if first.is_array() {
        return Err(Error::PatchDoesNotApply("lists of lists are not supported".into()));
    }
    let name = go::fmt::reflected_type(first);
    if first.is_null() || elements.any(|element| go::fmt::reflected_type(element) != name) {
        let lists: Vec<String> = lists.iter().map(|list| go::fmt::list(list)).collect();
        let lists = lists.join(" ");
        return Err(Error::Unmergeable(format!("list element types are not identical: [{lists}]")));
    }
    Ok(first.is_object())
}

impl Identity<'_> {
    /// What an element is looked up by; of an object without the key, nothing.
    pub(super) fn of(self, element: &Value) -> Option<String> {
        match self {
            Self::Value => Some(element.to_string()),
            Self::Key(key) => element.get(key).map(Value::to_string),
        }
    }

    /// What an element is looked up by, which it must have.
    pub(super) fn required(self, element: &Value) -> Result<String, Error> {
        if let Self::Key(key) = self {
            let object = object(element)?;
            if !object.contains_key(key) {
                return Err(no_merge_key(object, key));
            }
        }
        Ok(self.of(element).unwrap_or_default())
    }

    /// The first place of each element.
    pub(super) fn places(self, elements: &[Value]) -> HashMap<String, usize> {
        let mut places = HashMap::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            if let Some(identity) = self.of(element) {
                places.entry(identity).or_insert(index);
            }
        }
        places
    }
}

pub(super) fn no_merge_key(object: &Object, key: &str) -> Error {
    let object = go::fmt::object(object);
    Error::Unmergeable(format!("map: {object} does not contain declared merge key: {key}"))
}

pub(super) fn object(element: &Value) -> Result<&Object, Error> {
    element.as_object().ok_or_else(|| wrong_type("map[string]interface {}", element))
}

pub(super) fn wrong_type(expected: &str, found: &Value) -> Error {
    Error::Unmergeable(format!("expected a {expected}, but received a {}", go::fmt::reflected_type(found)))
}
