use super::type_name::type_name;
use crate::schema::Node;
use serde_json::{Map, Value};
use std::collections::HashMap;
use watchkeeper_go as go;

/// A value next to the one it replaces, and the place in the schema where both stand.
#[derive(Clone, Copy)]
pub(super) struct Old<'a> {
    node: &'a Node,
    old: &'a Value,
    new: &'a Value,
}

impl<'a> Old<'a> {
    pub(super) fn new(node: &'a Node, old: &'a Value, new: &'a Value) -> Self {
        Self { node, old, new }
    }

    /// The field of both, if both have it and the schema knows it.
    pub(super) fn key(&self, name: &str) -> Option<Self> {
        Some(Self {
            node: self.node.field(name)?,
            old: self.old.as_object()?.get(name)?,
            new: self.new.as_object()?.get(name)?,
        })
    }

    /// The elements of both by their keys, if this is a list of that kind.
    pub(super) fn elements(&self) -> Option<Elements<'a>> {
        let (Value::Array(old), Value::Array(new)) = (self.old, self.new) else {
            return None;
        };
        let items = self.node.items.as_deref()?;
        if !self.node.is_list_map() {
            return None;
        }
        let keys = &self.node.list_map_keys;
        let mut by_key = HashMap::new();
        for element in old {
            if let Some(key) = key_of(element, keys) {
                by_key.entry(key).or_insert(element);
            }
        }
        Some(Elements { items, keys, by_key, new })
    }

    /// Whether nothing has changed. A field the schema does not know counts as a change; the order of a list that is a
    /// map by keys does not.
    pub(super) fn is_unchanged(&self) -> bool {
        match (self.old, self.new) {
            (Value::Array(old), Value::Array(new)) if old.len() != new.len() => false,
            (Value::Array(old), Value::Array(new)) => match self.elements() {
                Some(elements) => {
                    (0..new.len()).all(|at| elements.at(at).is_some_and(|element| element.is_unchanged()))
                }
                None if self.node.is_list_map() => new.is_empty(),
                None => old == new,
            },
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len()
                    && new.keys().all(|name| self.key(name).is_some_and(|field| field.is_unchanged()))
            }
            (old, new) => old == new,
        }
    }
}

/// The elements of a list that is a map by keys.
pub(super) struct Elements<'a> {
    items: &'a Node,
    keys: &'a [String],
    by_key: HashMap<String, &'a Value>,
    new: &'a [Value],
}

impl<'a> Elements<'a> {
    /// An element of the new list, with the old one that has the same keys.
    pub(super) fn at(&self, index: usize) -> Option<Old<'a>> {
        let new = self.new.get(index)?;
        let old = self.by_key.get(&key_of(new, self.keys)?)?;
        Some(Old::new(self.items, old, new))
    }
}

/// The values of an element's keys in one text; `None` unless all are there and none is an object or an array.
fn key_of(element: &Value, keys: &[String]) -> Option<String> {
    let fields: &Map<String, Value> = element.as_object()?;
    if keys.is_empty() {
        return None;
    }
    let mut text = String::new();
    for key in keys {
        let value = fields.get(key)?;
        if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
            return None;
        }
        text.push_str(type_name(value));
        text.push_str(&go::json::encode(value));
        text.push('\0');
    }
    Some(text)
}
