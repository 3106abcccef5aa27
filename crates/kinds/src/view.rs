//! Kinds whose objects are stored as objects of another kind.

use crate::coerce::coerce_as;
use crate::{Kind, autoscalers, definition, events};
use serde_json::Value;

impl Kind {
    /// An object of this kind in the form in which it is stored: itself, unless the kind is
    /// [another view](Self#structfield.stored_as). Nothing is lost: [`from_stored`](Self::from_stored) makes the same object again.
    pub fn to_stored(&self, object: Value) -> Value {
        let Some((group, version)) = self.stored_as else { return object };
        let object = if self.kind == "Event" { events::to_core(object) } else { autoscalers::to_v2(object) };
        finish(object, group, version, self.kind)
    }

    /// A stored object as this kind shows it.
    pub fn from_stored(&self, object: Value) -> Value {
        if self.stored_as.is_none() {
            return object;
        }
        let object = if self.kind == "Event" { events::to_new(object) } else { autoscalers::to_v1(object) };
        finish(object, self.group, self.version, self.kind)
    }
}

fn finish(mut object: Value, group: &str, version: &str, kind: &str) -> Value {
    if let Some(shown) = object.get_mut("apiVersion") {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        *shown = api_version.into();
    }
    // The views differ in which empty fields they show. What was read once can be read again.
    let _ = coerce_as(&definition::name(group, version, kind), &mut object);
    object
}
