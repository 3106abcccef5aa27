//! Kinds whose objects are stored as objects of another kind.

use crate::Kind;
use serde_json::Value;

impl Kind {
    /// An object of this kind in the form in which it is stored: itself, unless the kind is
    /// [another view](Self#structfield.stored_as). Nothing is lost: [`from_stored`](Self::from_stored) makes the same object again.
    pub fn to_stored(&self, object: Value) -> Value {
        let stored = self.stored_as.and_then(|(group, version)| crate::find_kind(group, version, self.kind));
        match (stored, self.strategy.conversion) {
            (Some(stored), Some(conversion)) => finish((conversion.to_stored)(object), stored),
            _ => object,
        }
    }

    /// A stored object as this kind shows it.
    pub fn from_stored(&self, object: Value) -> Value {
        match self.strategy.conversion {
            Some(conversion) => finish((conversion.from_stored)(object), self),
            None => object,
        }
    }
}

fn finish(mut object: Value, kind: &Kind) -> Value {
    if let Some(shown) = object.get_mut("apiVersion") {
        *shown = kind.api_version().into();
    }
    // The views differ in which empty fields they show. What was read once can be read again.
    let _ = kind.coerce(&mut object);
    object
}
