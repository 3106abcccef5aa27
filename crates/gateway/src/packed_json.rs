//! JSON that is kept for later.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_informer::Object;

/// How many levels of arrays and objects a value may have: serde_json reads no more than 127, some of which are for what the state file
/// has around an object.
pub(crate) const LEVELS: usize = 100;

/// A JSON value that is kept for later, as bytes: a tree of it takes many times as much memory.
#[derive(Clone)]
pub struct PackedJson(Kept);

/// Who keeps the bytes.
#[derive(Clone)]
enum Kept {
    Here(Arc<[u8]>),
    /// The store of an informer, which has them anyway.
    Store(Object<Value>),
    /// Those of an object that was made of what an informer has, such as a row.
    Made(Arc<(Box<[u8]>, Object<Value>)>),
}

impl PackedJson {
    /// Packs a value, which has no more levels than are read (see `fits`).
    pub fn of(value: &Value) -> Self {
        // Writing to a vector cannot fail: there is no I/O, and all keys are strings.
        Self(Kept::Here(serde_json::to_vec(value).unwrap_or_default().into()))
    }

    /// The value of an object that an informer has, of which there is no second copy then.
    pub(crate) fn stored(object: &Object<Value>) -> Self {
        Self(Kept::Store(object.clone()))
    }

    /// A value that was made of an object that an informer has.
    pub(crate) fn made(value: &Value, of: &Object<Value>) -> Self {
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        Self(Kept::Made(Arc::new((bytes.into(), of.clone()))))
    }

    /// The object of an informer that this is, or was made of.
    pub(crate) fn object(&self) -> Option<&Object<Value>> {
        match &self.0 {
            Kept::Here(_) => None,
            Kept::Store(object) => Some(object),
            Kept::Made(made) => Some(&made.1),
        }
    }

    /// The value, read anew.
    pub fn read(&self) -> Value {
        // What was written here can be read.
        serde_json::from_slice(&self.bytes()).unwrap_or_default()
    }

    fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Kept::Here(bytes) => Cow::Borrowed(bytes),
            Kept::Store(object) => object.json().unwrap_or_default(),
            Kept::Made(made) => Cow::Borrowed(&made.0),
        }
    }
}

/// Whether the bytes are the same: the fields of equal values may be in another order.
impl PartialEq for PackedJson {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

/// Says how much it is, never what is in it.
impl fmt::Debug for PackedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedJson({} bytes)", self.bytes().len())
    }
}

/// Whether a value has no more than so many levels of arrays and objects.
pub(crate) fn fits(value: &Value, levels: usize) -> bool {
    let mut within: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => return true,
    };
    levels.checked_sub(1).is_some_and(|levels| within.all(|value| fits(value, levels)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_packed_is_read_as_it_was() {
        for value in [json!(null), json!({"a": [1, -2.5, "\u{1f980}\n", {"b": null}]}), json!(u64::MAX)] {
            assert_eq!(PackedJson::of(&value).read(), value);
        }
    }

    #[test]
    fn values_that_fit_can_be_read() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": [], "b": inner}));
        assert!(fits(&json!(1), 0) && fits(&json!([]), 1) && !fits(&json!([]), 0));
        assert!(fits(&deep(LEVELS - 1), LEVELS) && !fits(&deep(LEVELS), LEVELS));
        let state = json!({"objects": [{"object": deep(LEVELS - 1)}]});
        assert_eq!(PackedJson::of(&state).read(), state);
    }
}
