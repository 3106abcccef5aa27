//! Lists that are sets, and lists that are maps by keys, have no duplicates.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::schema::Node;
use crate::trail::Trail;
use serde_json::{Map, Value};
use std::collections::HashMap;
use watchkeeper_go as go;

/// Finds duplicates in the lists of an object.
pub(super) fn check(root: &Node, object: &Value, errors: &mut Bounded<FieldError>) {
    if object.is_object() {
        value(root, object, &Trail::Start, errors);
    }
}

fn value(node: &Node, found: &Value, at: &Trail<'_>, errors: &mut Bounded<FieldError>) {
    if !node.has_unique_lists {
        return;
    }
    match found {
        Value::Array(items) => array(node, items, at, errors),
        Value::Object(fields) => object(node, fields, at, errors),
        _ => {}
    }
}

fn object(node: &Node, fields: &Map<String, Value>, at: &Trail<'_>, errors: &mut Bounded<FieldError>) {
    if let Some(entry) = node.additional_schema() {
        for (key, field) in fields {
            value(entry, field, &Trail::Entry(at, key), errors);
        }
    }
    if node.properties.is_empty() {
        return;
    }
    for (name, field) in fields {
        if let Some(property) = node.property(name) {
            value(property, field, &Trail::Property(at, name), errors);
        }
    }
}

fn array(node: &Node, items: &[Value], at: &Trail<'_>, errors: &mut Bounded<FieldError>) {
    match node.list_type.as_deref() {
        Some("set") if !are_few_and_distinct(items.iter().map(Some)) => {
            for index in duplicates(items.iter().map(identity)) {
                errors.add(|| FieldError::duplicate(&place(at, index), items[index].clone()));
            }
        }
        Some("map") => map_by_keys(node, items, at, errors),
        _ => {}
    }
    if let Some(item) = &node.items {
        for (index, found) in items.iter().enumerate() {
            value(item, found, &Trail::Item(at, index), errors);
        }
    }
}

fn map_by_keys(node: &Node, items: &[Value], at: &Trail<'_>, errors: &mut Bounded<FieldError>) {
    let misfit = items.iter().position(|item| !item.is_null() && !item.is_object());
    if let Some(index) = misfit {
        let detail = "must be an object for an array of list-type map";
        errors.add(|| FieldError::invalid(&place(at, index), items[index].clone(), detail));
        return;
    }
    if let [key] = node.list_map_keys.as_slice()
        && are_few_and_distinct(items.iter().map(|item| item.get(key)))
    {
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| keys_of(item, &node.list_map_keys)).collect();
    for index in duplicates(keys.iter().map(|keys| identity_of_keys(keys, &node.list_map_keys))) {
        errors.add(|| FieldError::duplicate(&place(at, index), keys[index].clone()));
    }
}

fn place(list: &Trail<'_>, index: usize) -> Path {
    Trail::Item(list, index).path(&Path::root())
}

/// The keys of an element that are there.
fn keys_of(item: &Value, keys: &[String]) -> Value {
    let found = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(found.collect())
}

/// A single key is compared as an element of a set is; several are compared as JSON, where 1 and 1.0 are the same.
fn identity_of_keys(found: &Value, keys: &[String]) -> String {
    match (keys, keys.first().and_then(|key| found.get(key))) {
        ([_], Some(value)) => identity(value),
        ([_], None) => String::new(),
        _ => go::json::encode(found),
    }
}

/// What makes an element of a set the same as another. In Go a float is never an integer, and minus zero is zero.
fn identity(item: &Value) -> String {
    match item.as_f64() {
        Some(0.0) if item.as_i64().is_none() => "0.0".into(),
        Some(float) if item.as_i64().is_none() => format!("{float:e}"),
        _ => go::json::encode(item),
    }
}

/// Whether there are but a few texts and no two are the same: the common case, and cheap to tell.
fn are_few_and_distinct<'a>(values: impl ExactSizeIterator<Item = Option<&'a Value>>) -> bool {
    const FEW: usize = 8;
    let mut seen = [""; FEW];
    values.len() <= FEW
        && values.enumerate().all(|(index, value)| {
            let Some(Value::String(text)) = value else {
                return false;
            };
            seen[index] = text;
            !seen[..index].contains(&text.as_str())
        })
}

/// The second of each kind; a third is not said again.
fn duplicates(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut times = HashMap::new();
    let second = |(index, identity)| {
        let times: &mut u32 = times.entry(identity).or_default();
        *times += 1;
        (*times == 2).then_some(index)
    };
    identities.enumerate().filter_map(second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_second_of_a_kind_is_named_and_the_third_is_not() {
        let found = duplicates(["a", "b", "a", "a", "b"].into_iter().map(String::from));
        assert_eq!(found, [2, 4]);
    }

    #[test]
    fn an_integer_is_not_a_float() {
        assert_ne!(identity(&json!(1)), identity(&json!(1.0)));
        assert_eq!(identity(&json!(0.0)), identity(&json!(-0.0)));
    }
}
