//! Filling in what a writer left out.

use crate::coerce::complete;
use crate::definition::{self, Field, Record, Shape};
use crate::kind::strategy::{Fields, Fill};
use crate::{Kind, decimal};
use serde_json::Value;

impl Kind {
    /// Sets missing fields to what kube-apiserver sets them to before admission.
    ///
    /// Defaults belong to types, so a pod template in a Deployment gets those of a pod spec. The object must have been
    /// [coerced](Self::coerce). Doing it twice is doing it once. What needs more than the object is left to the server: the
    /// cluster IP of a Service, the selector of a Job (which is its uid).
    ///
    /// ```
    /// use serde_json::json;
    /// let kind = watchkeeper_kinds::find("", "v1", "secrets").unwrap();
    /// let mut object = json!({"metadata": {"name": "a"}});
    /// kind.default(&mut object);
    /// assert_eq!(object["type"], "Opaque");
    /// ```
    pub fn default(&self, object: &mut Value) {
        let (Some(index), Value::Object(fields)) = (definition::find(&self.definition_name()), object) else {
            return;
        };
        fill(definition::record(index), fields);
    }
}

/// The defaults of one object, its own before those of what is in it.
fn fill(record: &'static Record, fields: &mut Fields) {
    if let Some(default) = record.default {
        default(fields);
    }
    for field in &record.fields {
        let Some(default) = field.default.filter(|_| is_absent(field, fields)) else { continue };
        if let Ok(default) = serde_json::from_str(default) {
            fields.insert(field.name.into(), default);
        }
    }
    for (name, value) in fields.iter_mut() {
        if let Some(field) = record.field(name) {
            if field.go_type() == "v1.ResourceList" {
                round_up(value);
            }
            fill_value(&field.shape, value);
        }
    }
}

fn fill_value(shape: &'static Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Record(index), Value::Object(fields)) => {
            let record = definition::record(*index);
            complete(record, fields);
            fill(record, fields);
        }
        (Shape::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| fill_value(inner, item));
        }
        (Shape::Map(inner), Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| fill_value(inner, entry));
        }
        _ => {}
    }
}

/// Resources are counted in thousandths.
fn round_up(resources: &mut Value) {
    for amount in resources.as_object_mut().into_iter().flat_map(|resources| resources.values_mut()) {
        if let Some(rounded) = amount.as_str().and_then(decimal::rounded_up_to_thousandths) {
            *amount = rounded.into();
        }
    }
}

fn is_absent(field: &Field, fields: &Fields) -> bool {
    match fields.get(field.name) {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::String(text)) => text.is_empty() && !field.is_pointer,
        Some(Value::Number(number)) => number.as_i64() == Some(0) && !field.is_pointer,
        Some(_) => false,
    }
}

/// The function that sets the defaults of a type that depend on other fields, by the name of the definition.
pub(crate) fn depending(definition: &str) -> Option<Fill> {
    crate::all().iter().find_map(|kind| {
        let is_it = |name: &str| definition::name(kind.group, kind.version, name) == definition;
        let own = kind.strategy.default.filter(|_| is_it(kind.kind));
        let mut parts = kind.strategy.type_defaults.iter();
        own.or_else(|| parts.find(|(name, _)| is_it(name)).map(|(_, default)| *default))
    })
}

/// A text field, `""` if there is none.
pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A field that is an object, made if it is not there.
pub(crate) fn child<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Fields> {
    let value = fields.entry(name).or_insert_with(|| Value::Object(Fields::new()));
    if value.is_null() {
        *value = Value::Object(Fields::new());
    }
    value.as_object_mut()
}

/// The objects of a list.
pub(crate) fn objects<'a>(fields: &'a mut Fields, name: &str) -> impl Iterator<Item = &'a mut Fields> {
    fields.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a field that has no value.
pub(crate) fn set(fields: &mut Fields, name: &str, default: impl Into<Value>) {
    if fields.get(name).is_none_or(|value| value.is_null() || value == "") {
        fields.insert(name.into(), default.into());
    }
}

/// Adds the entries of one map that another has not.
pub(crate) fn add_missing(fields: &mut Fields, to: &str, from: &Value) {
    let Some(from) = from.as_object().filter(|from| !from.is_empty()) else { return };
    if let Some(to) = child(fields, to) {
        for (key, value) in from {
            to.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}
