use super::Typed;
use crate::managed::element::PathElement;
use crate::managed::set::{Entry, FieldSet};
use crate::shape::{Form, Identity, TypeId};

impl Typed<'_> {
    /// Brings a set that was written under another shape in line with this one: who owned something inside of what is now
    /// taken as a whole owns the whole.
    pub(in crate::managed) fn reconcile(self, set: &mut FieldSet) {
        self.reconcile_below(self.shape.root(), set);
    }

    fn reconcile_below(self, kind: TypeId, set: &mut FieldSet) {
        let kind = self.shape.get(kind);
        for entry in set.entries_mut() {
            let kind = match (kind.first_form(), &entry.element) {
                (Form::Map(map), _) if map.open => return,
                (Form::Map(map), PathElement::Field(name)) => map.kind(name),
                (Form::Map(map), _) => map.others,
                (Form::List(list), _) => Some(list.items),
                _ => return,
            };
            if let Some(kind) = kind {
                self.reconcile_entry(kind, entry);
            }
        }
    }

    fn reconcile_entry(self, kind: TypeId, entry: &mut Entry) {
        if entry.below.is_empty() {
            return;
        }
        let is_whole = match self.shape.get(kind).first_form() {
            Form::Map(map) => map.atomic && !map.open,
            Form::List(list) => list.identity == Identity::Whole,
            _ => return,
        };
        if is_whole {
            entry.member = true;
            entry.below = FieldSet::new();
        } else {
            self.reconcile_below(kind, &mut entry.below);
        }
    }
}
