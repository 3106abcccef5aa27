use super::Typed;
use crate::managed::element::PathElement;
use crate::managed::set::FieldSet;
use crate::shape::{Form, Identity, List, Map, TypeId};
use serde_json::{Map as Fields, Value};

impl Typed<'_> {
    /// Removes fields and elements. An object or a list that has nothing left is null.
    pub(in crate::managed) fn remove(self, object: Value, fields: &FieldSet) -> Value {
        if fields.is_empty() {
            return object;
        }
        self.remove_below(self.shape.root(), object, fields)
    }

    fn remove_below(self, kind: TypeId, value: Value, unwanted: &FieldSet) -> Value {
        match (self.shape.get(kind).form(&value), value) {
            (Form::Scalar(_), value) => value,
            (Form::Map(map), Value::Object(fields)) if !map.atomic => {
                self.remove_fields(map, fields, unwanted)
            }
            (Form::List(list), Value::Array(items)) if list.identity != Identity::Whole => {
                self.remove_items(list, items, unwanted)
            }
            _ => Value::Null,
        }
    }

    fn remove_fields(self, map: &Map, fields: Fields<String, Value>, unwanted: &FieldSet) -> Value {
        let kept = fields.into_iter().filter_map(|(name, value)| {
            let Some(entry) = unwanted.get(&PathElement::Field(name.as_str().into())) else {
                return Some((name, value));
            };
            if entry.member {
                return None;
            }
            let kind = map.kind(&name)?;
            Some((name, self.remove_below(kind, value, &entry.below)))
        });
        let kept: Fields<String, Value> = kept.collect();
        if kept.is_empty() { Value::Null } else { Value::Object(kept) }
    }

    fn remove_items(self, list: &List, items: Vec<Value>, unwanted: &FieldSet) -> Value {
        let kept = items.into_iter().filter_map(|item| {
            let entry = self.element(list, &item).ok().and_then(|element| unwanted.get(&element));
            match entry {
                None => Some(item),
                Some(entry) if entry.member => None,
                Some(entry) => Some(self.remove_below(list.items, item, &entry.below)),
            }
        });
        let kept: Vec<Value> = kept.collect();
        if kept.is_empty() { Value::Null } else { Value::Array(kept) }
    }
}
