use super::Typed;
use crate::managed::element::{PathElement, same};
use crate::managed::set::{Entry, FieldSet};
use crate::shape::{Form, Identity, List, Map, TypeId};
use serde_json::{Map as Fields, Value};
use std::collections::BTreeMap;

/// What is different between two objects.
#[derive(Clone, Debug, Default)]
pub(in crate::managed) struct Changes {
    pub(in crate::managed) added: FieldSet,
    pub(in crate::managed) removed: FieldSet,
    pub(in crate::managed) modified: FieldSet,
}

impl Changes {
    /// Forgets about some fields and what is inside of them.
    pub(in crate::managed) fn without(self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.without(fields),
            removed: self.removed.without(fields),
            modified: self.modified.without(fields),
        }
    }
}

/// What became of one place. More than one thing can: a list element that was there once and is there twice is removed as
/// a single one and added as a double one.
#[derive(Clone, Copy, Default)]
struct Marks {
    added: bool,
    removed: bool,
    modified: bool,
}

/// The changes inside of a place, while they are being found.
#[derive(Default)]
struct Below {
    added: Vec<Entry>,
    removed: Vec<Entry>,
    modified: Vec<Entry>,
}

impl Below {
    fn push(&mut self, element: impl Fn() -> PathElement, marks: Marks, below: Self) {
        for (into, member, below) in [
            (&mut self.added, marks.added, below.added),
            (&mut self.removed, marks.removed, below.removed),
            (&mut self.modified, marks.modified, below.modified),
        ] {
            if member || !below.is_empty() {
                into.push(Entry { element: element(), member, below: FieldSet::from_entries(below) });
            }
        }
    }
}

impl Typed<'_> {
    /// What was added, removed and modified from one object to the other. Fields inside of what was added or removed are
    /// in the sets too, each for itself.
    pub(in crate::managed) fn compare(self, old: &Value, new: &Value) -> Changes {
        let mut below = Below::default();
        self.place(self.shape.root(), Some(old), Some(new), &mut below);
        Changes {
            added: FieldSet::from_entries(below.added),
            removed: FieldSet::from_entries(below.removed),
            modified: FieldSet::from_entries(below.modified),
        }
    }

    fn place(self, kind: TypeId, old: Option<&Value>, new: Option<&Value>, below: &mut Below) -> Marks {
        let mut marks = Marks::default();
        // Most of what is compared did not change, and looking at that twice costs less than taking it apart.
        if old == new {
            return marks;
        }
        let kind = self.shape.get(kind);
        let is_leaf = match (old, new) {
            (None, None) => true,
            (Some(value), None) | (None, Some(value)) => {
                self.form(kind.form(value), old, new, below, &mut marks)
            }
            (Some(before), Some(after)) => {
                let (first, second) = (kind.form(before), kind.form(after));
                if !first.is(second) {
                    self.form(first, old, new, below, &mut marks);
                }
                self.form(second, old, new, below, &mut marks)
            }
        };
        if !is_leaf {
            marks.added |= old.is_none();
            marks.removed |= new.is_none();
        }
        marks
    }

    /// Compares two values as what the form says. Returns whether they were compared as a whole.
    fn form(
        self,
        form: Form<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        below: &mut Below,
        marks: &mut Marks,
    ) -> bool {
        match form {
            Form::Map(map) if !map.atomic => {
                let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let is_empty = |fields: Option<&Fields<String, Value>>| fields.is_none_or(Fields::is_empty);
                if !(is_empty(old) && is_empty(new)) {
                    self.compare_fields(map, old, new, below);
                    return false;
                }
            }
            Form::List(list) if list.identity != Identity::Whole => {
                let (old, new) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                let is_empty = |items: Option<&Vec<Value>>| items.is_none_or(Vec::is_empty);
                if !(is_empty(old) && is_empty(new)) {
                    self.compare_items(list, old, new, below);
                    return false;
                }
            }
            _ => {}
        }
        match (old, new) {
            (None, _) => marks.added = true,
            (_, None) => marks.removed = true,
            (Some(old), Some(new)) => marks.modified |= !same(old, new),
        }
        true
    }

    fn compare_fields(
        self,
        map: &Map,
        old: Option<&Fields<String, Value>>,
        new: Option<&Fields<String, Value>>,
        below: &mut Below,
    ) {
        let mut field = |name: &str, old: Option<&Value>, new: Option<&Value>| {
            let Some(kind) = map.kind(name) else {
                return;
            };
            let mut inside = Below::default();
            let marks = self.place(kind, old, new, &mut inside);
            below.push(|| PathElement::Field(name.into()), marks, inside);
        };
        for (name, value) in new.into_iter().flatten() {
            field(name, old.and_then(|old| old.get(name)), Some(value));
        }
        for (name, value) in old.into_iter().flatten() {
            if new.is_none_or(|new| !new.contains_key(name)) {
                field(name, Some(value), None);
            }
        }
    }

    fn compare_items(
        self,
        list: &List,
        old: Option<&Vec<Value>>,
        new: Option<&Vec<Value>>,
        below: &mut Below,
    ) {
        if old == new {
            return;
        }
        let mut found: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for item in items.into_iter().flatten() {
                if let Ok(element) = self.element(list, item) {
                    found.entry(element).or_default()[side].push(item);
                }
            }
        }
        for (element, [old, new]) in &found {
            let mut inside = Below::default();
            let mut marks = Marks::default();
            match (old.as_slice(), new.as_slice()) {
                ([_, _, ..], [_, _, ..]) => {
                    marks.modified =
                        old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !same(old, new));
                }
                ([_, _, ..], new) => {
                    if let Some(new) = new.first() {
                        marks = self.place(list.items, None, Some(new), &mut inside);
                    }
                    marks.removed = true;
                }
                (old, [_, _, ..]) => {
                    if let Some(old) = old.first() {
                        marks = self.place(list.items, Some(old), None, &mut inside);
                    }
                    marks.added = true;
                }
                (old, new) => {
                    marks = self.place(list.items, old.first().copied(), new.first().copied(), &mut inside);
                }
            }
            below.push(|| element.clone(), marks, inside);
        }
    }
}
