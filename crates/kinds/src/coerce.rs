//! What decoding into a Go type and encoding again makes of an object.

use crate::definition::{self, Field, Record, Shape, WhenAbsent};
use crate::{Error, Kind, decimal, pod_spec};
use serde_json::{Map, Value};
use std::fmt::Write;
use watchkeeper_go::json as go_json;
use watchkeeper_go::{Time, base64};

/// Of very many unknown fields only the first are told.
const MAX_UNKNOWN: usize = 1000;

impl Kind {
    /// Makes of a decoded object what kube-apiserver's decoder makes of it: unknown fields, nulls and empty optional
    /// fields go, objects that Go holds by value and fields it always writes are there, quantities and times have their
    /// canonical form.
    ///
    /// Returns the unknown fields as strict field validation names them, `spec.containers[0].zip`; by name, where
    /// kube-apiserver goes by the order of the request. A field of the wrong type is an error in the words of Go's decoder;
    /// the object is then half changed.
    ///
    /// ```
    /// use serde_json::json;
    /// let kind = watchkeeper_kinds::find("apps", "v1", "deployments").unwrap();
    /// let mut object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 0, "paused": false, "zip": 1}});
    /// assert_eq!(kind.coerce(&mut object)?, ["spec.zip"]);
    /// assert_eq!(object["spec"]["replicas"], 0);
    /// assert!(object["spec"].get("paused").is_none());
    /// let error = kind.coerce(&mut json!({"spec": {"replicas": "3"}})).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    /// );
    /// # Ok::<(), watchkeeper_kinds::Error>(())
    /// ```
    pub fn coerce(&self, object: &mut Value) -> Result<Vec<String>, Error> {
        let Some(index) = definition::find(&self.definition_name()) else { return Ok(Vec::new()) };
        let record = definition::record(index);
        let mut reader = Reader { unknown: Vec::new(), fields: Vec::new(), at: String::new() };
        let Value::Object(map) = object else {
            let go_type = Shape::Record(index).go_type();
            return Err(Error::Decode(format!(
                "json: cannot unmarshal {} into Go value of type {go_type}",
                go_json::kind(object)
            )));
        };
        reader.record(record, map)?;
        if let Some(unify) = self.strategy.unify {
            unify(map);
        }
        Ok(reader.unknown)
    }
}

/// Where the reader is.
struct Reader {
    unknown: Vec<String>,
    /// The names of the fields on the way, as Go's decoder tells them.
    fields: Vec<&'static str>,
    /// The same with indexes and keys, as the strict decoder tells them.
    at: String,
}

impl Reader {
    fn record(&mut self, record: &'static Record, map: &mut Map<String, Value>) -> Result<(), Error> {
        let given = std::mem::take(map);
        for (name, mut value) in given {
            let Some(field) = record.field(&name) else {
                if self.unknown.len() < MAX_UNKNOWN {
                    self.unknown.push(self.place_of(&name));
                }
                continue;
            };
            if value.is_null() {
                continue;
            }
            let length = self.enter(&name);
            self.fields.push(field.name);
            let keeps = self.value(record, field, &field.shape, &mut value)?;
            self.fields.pop();
            self.at.truncate(length);
            let is_written = matches!(field.when_absent, WhenAbsent::Zero | WhenAbsent::Null);
            if keeps || field.is_pointer || is_written {
                map.insert(name, value);
            }
        }
        complete(record, map);
        if record.name == "io.k8s.api.core.v1.PodSpec" {
            pod_spec::unify(map);
        }
        Ok(())
    }

    /// Reads one value; whether it is more than the zero of its type.
    fn value(
        &mut self,
        record: &'static Record,
        field: &'static Field,
        shape: &'static Shape,
        value: &mut Value,
    ) -> Result<bool, Error> {
        let wrong = |given: &str| Err(self.mismatch(record, field, shape, given));
        match (shape, &mut *value) {
            (Shape::Anything, _) => Ok(true),
            (Shape::Text, Value::String(text)) => Ok(!text.is_empty()),
            (Shape::Flag, Value::Bool(flag)) => Ok(*flag),
            (Shape::Float, Value::Number(number)) => Ok(number.as_f64() != Some(0.0)),
            (Shape::Int32, Value::Number(number)) => match number.as_i64().map(i32::try_from) {
                Some(Ok(small)) => Ok(small != 0),
                _ => wrong(&format!("number {number}")),
            },
            (Shape::Int64, Value::Number(number)) => match number.as_i64() {
                Some(integer) => Ok(integer != 0),
                None => wrong(&format!("number {number}")),
            },
            (Shape::Bytes, Value::String(text)) => {
                let bytes = base64::decode(&*text).map_err(Error::Decode)?;
                *text = base64::encode(&bytes);
                Ok(!bytes.is_empty())
            }
            (Shape::Quantity, Value::String(_) | Value::Number(_)) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                *value = decimal::canonical(&text).map_err(Error::Decode)?.into();
                Ok(true)
            }
            (Shape::Quantity, _) => Err(Error::Decode(decimal::WRONG_FORMAT.into())),
            (Shape::IntOrString, Value::String(_)) => Ok(true),
            (Shape::IntOrString, other) => {
                let fits = other.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
                if fits { Ok(true) } else { Err(self.misfit(record, &given_number(other), "int32")) }
            }
            (Shape::Time, Value::String(text)) => {
                *text = Time::parse(text).map_err(Error::Decode)?.rfc3339();
                Ok(true)
            }
            (Shape::MicroTime, Value::String(text)) => {
                *text = Time::parse_micro(text).map_err(Error::Decode)?.rfc3339_micro();
                Ok(true)
            }
            (Shape::Time | Shape::MicroTime, other) => {
                Err(self.misfit(record, go_json::kind(other), "string"))
            }
            (Shape::List(inner), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let length = self.at.len();
                    // Writing to a string cannot fail.
                    let _ = write!(self.at, "[{index}]");
                    self.element(record, field, inner, item)?;
                    self.at.truncate(length);
                }
                Ok(!items.is_empty())
            }
            (Shape::Map(inner), Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    let length = self.enter(key);
                    self.element(record, field, inner, entry)?;
                    self.at.truncate(length);
                }
                Ok(!entries.is_empty())
            }
            (Shape::Record(index), Value::Object(map)) => {
                self.record(definition::record(*index), map)?;
                Ok(true)
            }
            (_, other) => wrong(go_json::kind(other)),
        }
    }

    /// An element of a list or a map: it stays, null becomes the zero of its type.
    fn element(
        &mut self,
        record: &'static Record,
        field: &'static Field,
        shape: &'static Shape,
        value: &mut Value,
    ) -> Result<(), Error> {
        if value.is_null() {
            *value = zero(shape);
        }
        if !value.is_null() {
            self.value(record, field, shape, value)?;
        }
        Ok(())
    }

    fn enter(&mut self, name: &str) -> usize {
        let length = self.at.len();
        if length > 0 {
            self.at.push('.');
        }
        self.at.push_str(name);
        length
    }

    fn place_of(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    fn mismatch(&self, record: &Record, field: &Field, shape: &Shape, given: &str) -> Error {
        let wanted =
            if std::ptr::eq(&field.shape, shape) { field.go_type() } else { field.go_element_type(shape) };
        self.misfit(record, given, &wanted)
    }

    fn misfit(&self, record: &Record, given: &str, wanted: &str) -> Error {
        let (name, fields) = (record.go_name(), self.fields.join("."));
        Error::Decode(format!(
            "json: cannot unmarshal {given} into Go struct field {name}.{fields} of type {wanted}"
        ))
    }
}

/// Adds what Go writes for fields that have no value.
pub(crate) fn complete(record: &'static Record, map: &mut Map<String, Value>) {
    for field in record.fields.iter().filter(|field| field.when_absent != WhenAbsent::Nothing) {
        if map.contains_key(field.name) {
            continue;
        }
        let written = match (&field.shape, field.when_absent) {
            (_, WhenAbsent::Null) => Value::Null,
            // A time by value has no empty form.
            (Shape::Time | Shape::MicroTime, _) => Value::Null,
            (shape, _) => zero(shape),
        };
        map.insert(field.name.into(), written);
    }
}

/// The zero of a type as Go writes it.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Text => "".into(),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => 0.into(),
        Shape::Quantity => "0".into(),
        Shape::Flag => false.into(),
        Shape::Record(index) => {
            let mut map = Map::new();
            complete(definition::record(*index), &mut map);
            Value::Object(map)
        }
        _ => Value::Null,
    }
}

/// What does not fit into an integer.
fn given_number(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("number {number}"),
        other => go_json::kind(other).to_owned(),
    }
}
