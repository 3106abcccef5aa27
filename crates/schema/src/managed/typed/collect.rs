use super::Typed;
use crate::managed::element::PathElement;
use crate::managed::set::{Entry, FieldSet};
use crate::shape::{Form, Identity, List, Map, TypeId};
use serde_json::{Map as Fields, Value};
use std::collections::BTreeMap;

impl Typed<'_> {
    /// Every field that an object mentions: leaves, elements of lists, keys of maps, empty objects.
    pub(in crate::managed) fn fields(self, object: &Value) -> FieldSet {
        self.collect(self.shape.root(), object).0
    }

    /// What is mentioned inside of a value, and whether the value itself is a leaf.
    fn collect(self, kind: TypeId, value: &Value) -> (FieldSet, bool) {
        match (self.shape.get(kind).form(value), value) {
            (Form::Scalar(_), _) => (FieldSet::new(), true),
            (Form::Map(Map { atomic: true, .. }) | Form::List(List { identity: Identity::Whole, .. }), _) => {
                (FieldSet::new(), true)
            }
            (Form::Map(map), Value::Object(fields)) => (self.collect_fields(map, fields), false),
            (Form::List(list), Value::Array(items)) => (self.collect_items(list, items), false),
            _ => (FieldSet::new(), false),
        }
    }

    fn collect_fields(self, map: &Map, fields: &Fields<String, Value>) -> FieldSet {
        let entries = fields.iter().filter_map(|(name, value)| {
            let (below, is_leaf) = self.collect(map.kind(name)?, value);
            let is_empty = value.is_null() || value.as_object().is_some_and(Fields::is_empty);
            let member = is_leaf || is_empty || map.field(name).is_none();
            Some(Entry { element: PathElement::Field(name.as_str().into()), member, below })
        });
        FieldSet::from_entries(entries.collect())
    }

    /// Elements that are there twice are owned as one thing, and nothing inside of them is.
    fn collect_items(self, list: &List, items: &[Value]) -> FieldSet {
        let mut found: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
        for item in items {
            if let Ok(element) = self.element(list, item) {
                found.entry(element).and_modify(|single| *single = None).or_insert(Some(item));
            }
        }
        let entries = found.into_iter().map(|(element, single)| {
            let below = single.map(|item| self.collect(list.items, item).0).unwrap_or_default();
            Entry { element, member: true, below }
        });
        FieldSet::from_entries(entries.collect())
    }
}
