//! Strategic merge patch: a merge patch that knows which lists are keyed.

mod directive;
mod elements;
mod list;
mod order;

use crate::Error;
use crate::shape::{Field, Shape, TypeId};
use directive::{Directive, discard_nulls, named_list, without_directives};
use serde_json::{Map, Value};
use watchkeeper_go as go;

type Object = Map<String, Value>;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Applies a strategic merge patch: objects are merged field by field, lists as the strategy of their field says.
///
/// A field without a strategy is replaced if it is a list. With the strategy `merge`, elements that are objects are
/// matched by the merge key of the field, scalars are added to the set. Null removes a field. The directives `$patch`
/// (`replace`, `delete`), `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder` work as in kube-apiserver, and
/// so does the order of elements: those of the patch in the order of the patch, others where they stood between them.
///
/// Lists of any length take linear time, up to sorting.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_schema::{Shape, patch};
/// let shape = Shape::read(&json!({"type": "object", "properties": {"ports": {
///     "type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}},
///     "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "port",
/// }}}))?;
/// let object = json!({"ports": [{"port": 80, "name": "a"}, {"port": 81}]});
/// let patch = json!({"ports": [{"port": 80, "name": "b"}, {"port": 81, "$patch": "delete"}]});
/// assert_eq!(patch::strategic(object, &patch, &shape)?, json!({"ports": [{"port": 80, "name": "b"}]}));
/// # Ok::<(), watchkeeper_schema::Error>(())
/// ```
pub fn strategic(object: Value, patch: &Value, shape: &Shape) -> Result<Value, Error> {
    let Value::Object(patch) = patch else {
        return Err(Error::NotAPatch("invalid JSON document".into()));
    };
    let object = match object {
        Value::Object(object) => object,
        _ => Object::new(),
    };
    Merge { shape }.objects(object, patch.clone(), shape.root()).map(Value::Object)
}

#[derive(Clone, Copy)]
struct Merge<'s> {
    shape: &'s Shape,
}

impl<'s> Merge<'s> {
    fn objects(self, mut object: Object, mut patch: Object, kind: TypeId) -> Result<Object, Error> {
        if let Some(directive) = patch.remove(PATCH) {
            return match Directive::of(&directive) {
                Directive::Replace => Ok(patch),
                Directive::Delete => Ok(Object::new()),
                _ => {
                    patch.insert(PATCH.into(), directive.clone());
                    Err(directive::unknown(&directive, &patch))
                }
            };
        }
        retain_keys(&mut object, &mut patch)?;
        self.ordered_lists(&mut object, &mut patch, kind)?;
        for (name, change) in patch {
            self.field(&mut object, name, change, kind)?;
        }
        Ok(object)
    }

    fn field(self, object: &mut Object, name: String, change: Value, kind: TypeId) -> Result<(), Error> {
        let deletes = name.starts_with(DELETE_FROM_LIST);
        let name = match deletes {
            true => named_list(&name, DELETE_FROM_LIST)?.filter(|list| !list.is_empty()).unwrap_or(name),
            false => name,
        };
        if change.is_null() {
            object.remove(&name);
            return Ok(());
        }
        match (object.get_mut(&name), change) {
            (Some(Value::Object(found)), Value::Object(change)) => {
                let field = self.lookup(kind, &name)?;
                if &*field.patch.strategy == "replace" {
                    *found = change;
                } else {
                    *found = self.objects(std::mem::take(found), change, field.kind)?;
                }
            }
            (Some(Value::Array(found)), Value::Array(change)) => {
                let (field, items) = self.lookup_list(kind, &name)?;
                *found = self.lists(std::mem::take(found), change, field, items, deletes)?;
            }
            (_, change) if !deletes => put(object, name, change),
            _ => {}
        }
        Ok(())
    }

    /// The named field of an object.
    fn lookup(self, kind: TypeId, name: &str) -> Result<&'s Field, Error> {
        let kind = self.shape.get(kind);
        match &kind.map {
            Some(map) if map.has_fields() => map
                .field(name)
                .ok_or_else(|| Error::Unmergeable(format!("unable to find api field {}", go::quote(name)))),
            other => {
                let form = match (other, &kind.list) {
                    (Some(_), _) => "map",
                    (None, Some(_)) => "slice",
                    _ => "scalar",
                };
                Err(Error::Unmergeable(format!(
                    "merging an object in json but data type is not struct, instead is: {form}"
                )))
            }
        }
    }

    /// The named field of an object and the type of its elements.
    fn lookup_list(self, kind: TypeId, name: &str) -> Result<(&'s Field, TypeId), Error> {
        let field = self.lookup(kind, name)?;
        let list = self.shape.get(field.kind).list.as_ref();
        let list =
            list.ok_or_else(|| Error::Unmergeable("expected slice or array type, but got: struct".into()))?;
        Ok((field, list.items))
    }
}

/// Puts a value where none of its kind stands: without the nulls and the directives in it.
fn put(object: &mut Object, name: String, mut change: Value) {
    discard_nulls(&mut change);
    match without_directives(change) {
        Some(change) => object.insert(name, change),
        None => object.remove(&name),
    };
}

/// `$retainKeys`: all other fields go. What the patch sets must be among them.
fn retain_keys(object: &mut Object, patch: &mut Object) -> Result<(), Error> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || Error::NotAPatch("invalid patch format of retainKeys".into());
    let Value::Array(keys) = keys else {
        return Err(bad());
    };
    let kept: std::collections::HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_directive = |name: &str| name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ORDER);
    if patch
        .iter()
        .any(|(name, value)| !value.is_null() && !is_directive(name) && !kept.contains(name.as_str()))
    {
        return Err(bad());
    }
    object.retain(|name, _| kept.contains(name.as_str()));
    Ok(())
}
