use super::Typed;
use crate::managed::element::PathElement;
use crate::shape::{Form, Identity, List, TypeId};
use serde_json::{Map as Fields, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl Typed<'_> {
    /// Puts what `applied` says into an object. Nothing is removed; where both say something, `applied` is right.
    pub(in crate::managed) fn merge(self, object: &mut Value, applied: &Value) {
        self.merge_place(self.shape.root(), object, applied);
    }

    fn merge_place(self, kind: TypeId, value: &mut Value, applied: &Value) {
        match self.shape.get(kind).form(applied) {
            Form::Map(map) if !map.atomic => {
                let news = applied.as_object().filter(|fields| !fields.is_empty());
                let is_filled = value.as_object().is_some_and(|fields| !fields.is_empty());
                match news {
                    // Saying nothing about an object leaves it as it is.
                    None if is_filled => return,
                    None => {}
                    Some(news) => {
                        if !value.is_object() {
                            *value = Value::Object(Fields::new());
                        }
                        let Value::Object(fields) = value else { return };
                        for (name, applied) in news {
                            match (fields.get_mut(name), map.kind(name)) {
                                (Some(field), Some(kind)) => self.merge_place(kind, field, applied),
                                _ => {
                                    fields.insert(name.clone(), applied.clone());
                                }
                            }
                        }
                        return;
                    }
                }
            }
            Form::List(list) if list.identity != Identity::Whole => {
                let news = applied.as_array().filter(|items| !items.is_empty());
                match (value.as_array_mut().filter(|items| !items.is_empty()), news) {
                    (Some(_), None) => return,
                    (Some(items), Some(news)) => {
                        *items = self.merge_items(list, std::mem::take(items), news);
                        return;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        *value = applied.clone();
    }

    /// Merges two lists into one that has the order of the applied one for what is in it; what is not keeps its place
    /// between its neighbours.
    fn merge_items(self, list: &List, old: Vec<Value>, applied: &[Value]) -> Vec<Value> {
        let mut known: BTreeMap<PathElement, Slot> = BTreeMap::new();
        let mut left: VecDeque<(PathElement, Option<Value>)> = VecDeque::with_capacity(old.len());
        for item in old {
            let Ok(element) = self.element(list, &item) else { continue };
            // An element that is there twice is not merged with an applied one, but replaced by it.
            known
                .entry(element.clone())
                .and_modify(|slot| slot.double = true)
                .or_insert(Slot { double: false, single: None });
            left.push_back((element, Some(item)));
        }
        let mut news: BTreeMap<PathElement, &Value> = BTreeMap::new();
        let mut right: VecDeque<PathElement> = VecDeque::with_capacity(applied.len());
        for item in applied {
            let Ok(element) = self.element(list, item) else { continue };
            if news.insert(element.clone(), item).is_none() {
                right.push_back(element);
            }
        }
        // What is in both, and may have to be merged before its turn among the old ones comes, is kept by element.
        for (element, item) in &mut left {
            if news.contains_key(element)
                && let Some(slot) = known.get_mut(element)
            {
                slot.single = item.take();
            }
        }
        let mut shared: VecDeque<PathElement> =
            right.iter().filter(|element| known.contains_key(*element)).cloned().collect();
        let mut next_shared = shared.pop_front();
        let mut merged: BTreeSet<PathElement> = BTreeSet::new();
        let mut out = Vec::with_capacity(left.len().max(right.len()));
        let mut take = |element: &PathElement, merged: &mut BTreeSet<PathElement>, out: &mut Vec<Value>| {
            let Some(new) = news.get(element) else { return };
            let old = known.get_mut(element).filter(|slot| !slot.double).and_then(|slot| slot.single.take());
            out.push(match old {
                Some(mut old) => {
                    self.merge_place(list.items, &mut old, new);
                    old
                }
                None => (*new).clone(),
            });
            merged.insert(element.clone());
        };
        while !left.is_empty() || !right.is_empty() {
            if let (Some((old, _)), Some(new)) = (left.front(), right.front()) {
                if old == new {
                    take(new, &mut merged, &mut out);
                    left.pop_front();
                    right.pop_front();
                    next_shared = shared.pop_front();
                    continue;
                }
                if news.contains_key(old) && next_shared.as_ref().is_some_and(|next| next != old) {
                    left.pop_front();
                    continue;
                }
            }
            if let Some((old, item)) = left.front_mut() {
                if !news.contains_key(old) {
                    out.extend(item.take());
                    left.pop_front();
                    continue;
                }
                if merged.contains(old) {
                    left.pop_front();
                }
            }
            if let Some(new) = right.pop_front() {
                take(&new, &mut merged, &mut out);
                if next_shared.as_ref() == Some(&new) {
                    next_shared = shared.pop_front();
                }
            }
        }
        out
    }
}

/// An old element that is also applied.
struct Slot {
    double: bool,
    single: Option<Value>,
}
