use super::directive::{self, Directive, bad_order, named_list, without_directives};
use super::elements::{Identity, are_objects, no_merge_key, object, wrong_type};
use super::order::{Ordering, arrange};
use super::{Merge, Object, PATCH, SET_ORDER};
use crate::Error;
use crate::shape::{Field, TypeId};
use serde_json::Value;
use std::collections::HashSet;
use watchkeeper_go as go;

impl Merge<'_> {
    /// Merges a list as the strategy of its field says.
    pub(super) fn lists(
        self,
        found: Vec<Value>,
        change: Vec<Value>,
        field: &Field,
        items: TypeId,
        deletes: bool,
    ) -> Result<Vec<Value>, Error> {
        if &*field.patch.strategy != "merge" && !deletes {
            return Ok(change);
        }
        if found.is_empty() && change.is_empty() {
            return Ok(found);
        }
        let key = &*field.patch.merge_key;
        if !are_objects([&found, &change])? {
            return if deletes { Ok(without(found, &change)) } else { scalars(found, change, key) };
        }
        if key.is_empty() {
            return Err(Error::Unmergeable("cannot merge lists without merge key for struct".into()));
        }
        self.keyed(found, change, key, items)
    }

    fn keyed(
        self,
        found: Vec<Value>,
        change: Vec<Value>,
        key: &str,
        items: TypeId,
    ) -> Result<Vec<Value>, Error> {
        let identity = Identity::Key(key);
        let (found, change) = obey(found, change, key)?;
        let server = found.iter().map(|element| identity.required(element)).collect::<Vec<_>>();
        let mut places = identity.places(&found);
        let mut merged = found;
        let mut order = Vec::with_capacity(change.len());
        for element in change {
            let name = identity.required(&element)?;
            order.push(name.clone());
            match places.get(&name) {
                Some(place) => {
                    let (Value::Object(old), Value::Object(change)) = (merged[*place].take(), element) else {
                        return Err(Error::Unmergeable("expected objects".into()));
                    };
                    merged[*place] = Value::Object(self.objects(old, change, items)?);
                }
                None => {
                    places.insert(name, merged.len());
                    merged.push(element);
                }
            }
        }
        for element in &merged {
            identity.required(element)?;
        }
        let server = server.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(arrange(merged, identity, &Ordering::new(order), &Ordering::new(server)))
    }

    /// Merges the lists whose order the patch sets with `$setElementOrder`, and takes them out of the patch.
    pub(super) fn ordered_lists(
        self,
        target: &mut Object,
        patch: &mut Object,
        kind: TypeId,
    ) -> Result<(), Error> {
        let directives: Vec<String> =
            patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
        for name in directives {
            let order = patch.remove(&name).unwrap_or_default();
            let Value::Array(order) = order else {
                return Err(wrong_type("[]interface {}", &order));
            };
            let list = named_list(&name, SET_ORDER)?.unwrap_or_default();
            let found = target.get(&list).map(elements).transpose()?;
            let change = patch.get(&list).map(elements).transpose()?;
            let (field, items) = self.lookup_list(kind, &list)?;
            let key = &*field.patch.merge_key;
            check_order(change.map_or(&[], Vec::as_slice), &order, key)?;
            let (before, new) = (found.cloned(), change.cloned());
            let merged = match (before.clone(), new.clone()) {
                (None, None) => continue,
                (Some(found), None) => found,
                (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
                (Some(found), Some(change)) => self.lists(found, change, field, items, false)?,
            };
            let before = before.unwrap_or_default();
            let merged = rearrange(merged, &order, &before, new.as_deref().unwrap_or_default(), key)?;
            target.insert(list.clone(), Value::Array(merged));
            patch.remove(&list);
        }
        Ok(())
    }
}

fn elements(value: &Value) -> Result<&Vec<Value>, Error> {
    value.as_array().ok_or_else(|| wrong_type("[]interface {}", value))
}

/// A list of scalars is a set.
fn scalars(found: Vec<Value>, change: Vec<Value>, key: &str) -> Result<Vec<Value>, Error> {
    if !key.is_empty() {
        return Err(found
            .first()
            .or(change.first())
            .map_or_else(bad_order, |first| wrong_type("map[string]interface {}", first)));
    }
    let names = |list: &[Value]| list.iter().map(Value::to_string).collect::<Vec<_>>();
    let (server, order) = (Ordering::new(names(&found)), Ordering::new(names(&change)));
    let mut seen = HashSet::new();
    let mut merged = found;
    merged.extend(change);
    merged.retain(|element| seen.insert(element.to_string()));
    Ok(arrange(merged, Identity::Value, &order, &server))
}

fn without(found: Vec<Value>, unwanted: &[Value]) -> Vec<Value> {
    let unwanted: HashSet<String> = unwanted.iter().map(Value::to_string).collect();
    found.into_iter().filter(|element| !unwanted.contains(&element.to_string())).collect()
}

/// Does what the directives among the elements of a patch say: `delete` removes elements, `replace` the whole list.
fn obey(mut found: Vec<Value>, change: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut plain = Vec::with_capacity(change.len());
    let mut unwanted = HashSet::new();
    let mut replaces = false;
    for element in change {
        let Some(directive) = element.get(PATCH) else {
            plain.push(element);
            continue;
        };
        let fields = object(&element)?;
        match Directive::of(directive) {
            Directive::Delete => {
                let name = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
                unwanted.insert(name.to_string());
            }
            Directive::Replace => replaces = true,
            Directive::Merge => {
                return Err(Error::Unmergeable("merging lists cannot yet be specified in the patch".into()));
            }
            Directive::Unknown => return Err(directive::unknown(directive, fields)),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    if !unwanted.is_empty() {
        found.retain(|element| !Identity::Key(key).of(element).is_some_and(|name| unwanted.contains(&name)));
    }
    Ok((found, plain))
}

/// The elements of the patch must all be in `$setElementOrder`, in the same order.
fn check_order(change: &[Value], order: &[Value], key: &str) -> Result<(), Error> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut ordered = order.iter();
    let mut kept = Vec::new();
    for element in change {
        if !key.is_empty() {
            object(element)?;
            if directive::deletes(element) {
                continue;
            }
        }
        kept.push(element);
    }
    for element in kept {
        // Elements with another directive are skipped only while there is something left to compare them with.
        if ordered.len() > 0 && element.get(PATCH).is_some() {
            continue;
        }
        let identity = if key.is_empty() { Identity::Value } else { Identity::Key(key) };
        let mut matched = false;
        for other in ordered.by_ref() {
            if identity.required(element)? == identity.required(other)? {
                matched = true;
                break;
            }
        }
        if !matched {
            return Err(Error::Unmergeable(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                go::fmt::list(change),
                go::fmt::list(order)
            )));
        }
    }
    Ok(())
}

/// Puts the elements named in `$setElementOrder` into that order, the others where they stood before.
fn rearrange(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    change: &[Value],
    key: &str,
) -> Result<Vec<Value>, Error> {
    let identity = if key.is_empty() { Identity::Value } else { Identity::Key(key) };
    let mut named = Vec::with_capacity(order.len());
    let mut bad = None;
    for (index, element) in order.iter().enumerate() {
        if !key.is_empty() && !element.is_object() {
            bad = Some(index);
            break;
        }
        named.push(identity.of(element).unwrap_or_default());
    }
    let known: HashSet<&str> = named.iter().map(String::as_str).collect();
    for element in &merged {
        let name = identity.required(element)?;
        if let Some(index) = bad.filter(|_| !known.contains(name.as_str())) {
            return Err(Error::Unmergeable(format!("value for key {index} is not a map")));
        }
    }
    if are_objects([before, change])? {
        for element in order.iter().chain(before) {
            Identity::Key(key).required(element)?;
        }
    }
    let server = Ordering::new(server_order(identity, before, change));
    Ok(arrange(merged, identity, &Ordering::new(named), &server))
}

/// The order of the server. As in kube-apiserver, elements that the patch adds take the places that its deletions left
/// free, at the end.
fn server_order(identity: Identity<'_>, before: &[Value], change: &[Value]) -> Vec<String> {
    let name = |element: &Value| identity.of(element).unwrap_or_default();
    let by_key = matches!(identity, Identity::Key(_));
    let unwanted: HashSet<String> =
        change.iter().filter(|element| by_key && directive::deletes(element)).map(name).collect();
    let mut order: Vec<String> = before.iter().map(name).filter(|name| !unwanted.contains(name)).collect();
    let free = before.len() - order.len();
    let known: HashSet<String> = order.iter().cloned().collect();
    let added = change.iter().filter(|element| element.get(PATCH).is_none()).map(name);
    order.extend(added.filter(|name| !known.contains(name)).take(free));
    order
}
