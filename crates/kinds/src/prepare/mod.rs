//! What a writer may not set is reset before anything is checked.

mod generation;
mod update;

pub(crate) use generation::{differs, metadata_differs, same, spec_differs};
pub(crate) use update::{keep, metadata};

use crate::Kind;
use crate::coerce::complete;
use crate::definition::{self, Shape};
use crate::kind::strategy::Fields;
use serde_json::{Map, Value};

/// The subresource that is written, or the object itself. Each may change its own part of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subresource {
    /// The object itself: everything but the status.
    Main,
    /// The `status` subresource: the status only.
    Status,
    /// The `finalize` subresource of a namespace: `spec.finalizers` only.
    Finalize,
    /// The `ephemeralcontainers` subresource of a pod: `spec.ephemeralContainers` only.
    EphemeralContainers,
    /// The `binding` subresource of a pod: where it runs, and that it was decided.
    Binding,
    /// The `approval` subresource of a request for a certificate: its conditions only.
    Approval,
    /// The `resize` subresource of a pod: the resources of its containers only.
    Resize,
}

impl Subresource {
    /// The subresource of this name; `""` is the object itself. `None` for those that speak of other
    /// types, such as `scale`.
    pub fn of(subresource: &str) -> Option<Self> {
        Some(match subresource {
            "" => Self::Main,
            "status" => Self::Status,
            "finalize" => Self::Finalize,
            "ephemeralcontainers" => Self::EphemeralContainers,
            "approval" => Self::Approval,
            "resize" => Self::Resize,
            _ => return None,
        })
    }
}

impl Kind {
    /// Makes a new object of what was asked for: the status is the one of a new object, the generation is 1 where the kind
    /// keeps one, namespaces get their finalizer, pods their class, jobs their selector.
    ///
    /// The object must have been coerced and defaulted, and have its `uid` and `creationTimestamp`.
    pub fn prepare_for_create(&self, object: &mut Value) {
        if let Value::Object(fields) = object {
            if self.generation {
                self::object(fields, "metadata").insert("generation".into(), 1.into());
            }
            if self.has_status()
                && !self.strategy.keeps_status_on_create
                && let Some(status) = self.empty_status()
            {
                fields.insert("status".into(), status);
            }
            if let Some(prepare) = self.strategy.prepare_create {
                prepare(fields);
            }
        }
    }

    /// Takes back what this way of writing may not change, and counts the generation up if it changed what counts.
    ///
    /// Both objects must have been coerced and defaulted.
    pub fn prepare_for_update(&self, write: Subresource, new: &mut Value, old: &Value) {
        if let (Value::Object(new), Value::Object(old)) = (new, old) {
            update::prepare(self, write, new, old);
        }
    }

    /// The status of an object that has none yet.
    fn empty_status(&self) -> Option<Value> {
        let record = definition::record(definition::find(&self.definition_name())?);
        let Shape::Record(index) = &record.field("status")?.shape else { return None };
        let mut status = Map::new();
        complete(definition::record(*index), &mut status);
        Some(Value::Object(status))
    }
}

/// A field that is an object, made if it is not there.
pub(crate) fn object<'a>(fields: &'a mut Fields, name: &str) -> &'a mut Fields {
    let value = fields.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    // The value has just been made an object; a borrow of it cannot fail.
    match value {
        Value::Object(object) => object,
        _ => unreachable!("the value is an object"),
    }
}
