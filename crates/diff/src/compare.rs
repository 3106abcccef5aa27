use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::path::{Path, Segment};

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The path of the field.
    pub path: Path,
    /// The value before; `None` if the field was not there.
    pub from: Option<Value>,
    /// The value after; `None` if the field is gone.
    pub to: Option<Value>,
}

/// Compares two states, and returns their differences in the order of the field names.
///
/// Maps are compared member by member. If a map comes or goes, each of its members is a difference, down to values
/// that are not maps; items of a list that come or go are differences as a whole.
///
/// Items of lists are paired by a key where there is one: if all items of both lists are maps and have a `name` (or a `type`,
/// a `key`, ...; see the source) that is different for each. Items so paired that only changed places are told once, as a
/// difference of the list whose values are the keys in their order. In other lists, equal items at the beginning and at the
/// end are skipped, and the rest is paired by place.
pub fn compare(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    values(&Path::default(), Some(old), Some(new), &mut found);
    found
}

/// All fields of one state, as if they had just come.
pub fn fields(state: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    values(&Path::default(), None, Some(state), &mut found);
    found
}

fn values(path: &Path, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Difference>) {
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => maps(path, old, new, found),
        (Some(Value::Array(old)), Some(Value::Array(new))) => lists(path, old, new, found),
        (Some(Value::Object(old)), None) if !old.is_empty() => maps(path, old, &Map::new(), found),
        (None, Some(Value::Object(new))) if !new.is_empty() => maps(path, &Map::new(), new, found),
        (Some(Value::Array(old)), None) if !old.is_empty() => lists(path, old, &[], found),
        (None, Some(Value::Array(new))) if !new.is_empty() => lists(path, &[], new, found),
        (from, to) => found.push(Difference { path: path.clone(), from: from.cloned(), to: to.cloned() }),
    }
}

fn maps(path: &Path, old: &Map<String, Value>, new: &Map<String, Value>, found: &mut Vec<Difference>) {
    let mut names: Vec<&String> =
        old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))).collect();
    names.sort_unstable();
    for name in names {
        let (old, new) = (old.get(name), new.get(name));
        if old != new {
            values(&path.then(Segment::field(name)), old, new, found);
        }
    }
}

fn lists(path: &Path, old: &[Value], new: &[Value], found: &mut Vec<Difference>) {
    match KEYS.iter().find_map(|key| Some((key, keyed(old, key)?, keyed(new, key)?))) {
        Some((key, old_keys, new_keys)) => by_key(path, key, (old, &old_keys), (new, &new_keys), found),
        None => by_place(path, old, new, found),
    }
}

/// The fields that tell the items of a list apart in Kubernetes, those first that people would name an item by.
const KEYS: [&str; 12] = [
    "name",
    "type",
    "key",
    "uid",
    "containerPort",
    "port",
    "mountPath",
    "devicePath",
    "ip",
    "topologyKey",
    "id",
    "resourceName",
];

/// The values of a key in all items, if all have it and no two the same.
fn keyed<'a>(items: &'a [Value], key: &str) -> Option<HashMap<&'a Value, usize>> {
    let mut places = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let value = item.as_object()?.get(key)?;
        let unique =
            matches!(value, Value::String(_) | Value::Number(_)) && places.insert(value, at).is_none();
        if !unique {
            return None;
        }
    }
    Some(places)
}

type Keyed<'a> = (&'a [Value], &'a HashMap<&'a Value, usize>);

fn by_key(path: &Path, key: &str, old: Keyed<'_>, new: Keyed<'_>, found: &mut Vec<Difference>) {
    let ((old, old_keys), (new, new_keys)) = (old, new);
    let whole = |path: Path, from: Option<&Value>, to: Option<&Value>| Difference {
        path,
        from: from.cloned(),
        to: to.cloned(),
    };
    for item in old {
        let value = &item[key];
        let path = path.then(Segment::item(key, value));
        match new_keys.get(value) {
            Some(&at) => values(&path, Some(item), Some(&new[at]), found),
            None => found.push(whole(path, Some(&without(item, key)), None)),
        }
    }
    for item in new.iter().filter(|item| !old_keys.contains_key(&item[key])) {
        found.push(whole(path.then(Segment::item(key, &item[key])), None, Some(&without(item, key))));
    }
    let stayed = |items: &[Value], others: &HashMap<&Value, usize>| -> Vec<Value> {
        items.iter().map(|item| &item[key]).filter(|value| others.contains_key(value)).cloned().collect()
    };
    let (before, after) = (stayed(old, new_keys), stayed(new, old_keys));
    if before != after {
        found.push(whole(path.clone(), Some(&Value::Array(before)), Some(&Value::Array(after))));
    }
}

/// An item without the key that the path names already.
fn without(item: &Value, key: &str) -> Value {
    let mut item = item.clone();
    if let Value::Object(members) = &mut item {
        members.remove(key);
    }
    item
}

fn by_place(path: &Path, old: &[Value], new: &[Value], found: &mut Vec<Difference>) {
    let begin = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[begin..], &new[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    for at in 0..old.len().max(new.len()) {
        let path = path.then(Segment::Index(begin + at));
        match (old.get(at), new.get(at)) {
            (Some(old), Some(new)) => values(&path, Some(old), Some(new), found),
            (from, to) => found.push(Difference { path, from: from.cloned(), to: to.cloned() }),
        }
    }
}

#[cfg(test)]
mod tests;
