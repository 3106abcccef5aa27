//! Walks over values side by side with their [`Shape`].

mod collect;
mod compare;
mod merge;
mod reconcile;
mod remove;
mod validate;

pub(super) use compare::Changes;

use super::element::PathElement;
use super::set::FieldSet;
use crate::shape::{Identity, List, Shape, TypeId};
use serde_json::Value;
use watchkeeper_go as go;

/// The operations on values of one shape. Values must have been [validated](Typed::validate) against it.
#[derive(Clone, Copy)]
pub(super) struct Typed<'s> {
    shape: &'s Shape,
}

impl<'s> Typed<'s> {
    pub(super) fn new(shape: &'s Shape) -> Self {
        Self { shape }
    }

    /// What identifies an element of a list.
    fn element(self, list: &List, child: &Value) -> Result<PathElement, String> {
        match &list.identity {
            Identity::Whole => Err("invalid indexing of non-associative list".into()),
            Identity::Value => match child {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(PathElement::Value(scalar.clone())),
            },
            Identity::Keys(keys) => {
                let Value::Object(fields) = child else {
                    let what = if child.is_null() { "a null element" } else { "non-map elements" };
                    return Err(format!("associative list with keys may not have {what}"));
                };
                let found = keys.iter().filter_map(|key| {
                    let value = fields.get(&*key.name).or(key.default.as_ref())?;
                    Some((key.name.clone(), value.clone()))
                });
                let mut found: Vec<_> = found.collect();
                if found.is_empty() {
                    let names: Vec<String> = keys.iter().map(|key| go::quote(&key.name)).collect();
                    return Err(format!(
                        "associative list with keys has an element that omits all key fields [{}] (and doesn't have \
                         default values for any key fields)",
                        names.join(" ")
                    ));
                }
                found.sort_by(|(left, _), (right, _)| left.cmp(right));
                Ok(PathElement::Key(found))
            }
        }
    }

    /// The set with every named field that has a member below: owning something inside of a named field is owning the
    /// field, as far as removing it goes.
    pub(super) fn with_named_fields(self, set: &FieldSet) -> FieldSet {
        let mut set = set.clone();
        self.name_fields(&mut set, Some(self.shape.root()));
        set
    }

    fn name_fields(self, set: &mut FieldSet, kind: Option<TypeId>) {
        let kind = kind.map(|kind| self.shape.get(kind));
        let (map, list) = (kind.and_then(|kind| kind.map.as_ref()), kind.and_then(|kind| kind.list.as_ref()));
        for entry in set.entries_mut() {
            let below = match &entry.element {
                PathElement::Field(name) => {
                    let is_named = map.is_some_and(|map| map.field(name).is_some());
                    entry.member |= is_named && !entry.below.is_empty();
                    map.and_then(|map| map.kind(name))
                }
                PathElement::Key(_) => list.map(|list| list.items),
                _ => None,
            };
            self.name_fields(&mut entry.below, below);
        }
    }
}
