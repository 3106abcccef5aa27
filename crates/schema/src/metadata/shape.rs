//! The fields of `metadata` and their types.

use super::Coerced;
use crate::trail::Trail;
use serde_json::{Map, Value};
use watchkeeper_go as go;

/// The type of a field.
#[derive(Clone, Copy)]
enum Shape {
    /// With the name of its Go type.
    Text(&'static str),
    /// Left out when empty or not.
    Integer {
        keeps_zero: bool,
    },
    Time,
    Flag,
    TextMap,
    Texts,
    Records(&'static Record),
    Anything,
}

/// A Go struct.
struct Record {
    name: &'static str,
    fields: &'static [Field],
}

struct Field {
    name: &'static str,
    shape: Shape,
    /// There even when empty.
    always: bool,
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, always: false }
}

const fn always(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, always: true }
}

const STRING: Shape = Shape::Text("string");

static OBJECT_META: Record = Record {
    name: "ObjectMeta",
    fields: &[
        field("name", STRING),
        field("generateName", STRING),
        field("namespace", STRING),
        field("selfLink", STRING),
        field("uid", Shape::Text("types.UID")),
        field("resourceVersion", STRING),
        field("generation", Shape::Integer { keeps_zero: false }),
        field("creationTimestamp", Shape::Time),
        field("deletionTimestamp", Shape::Time),
        field("deletionGracePeriodSeconds", Shape::Integer { keeps_zero: true }),
        field("labels", Shape::TextMap),
        field("annotations", Shape::TextMap),
        field("ownerReferences", Shape::Records(&OWNER_REFERENCE)),
        field("finalizers", Shape::Texts),
        field("managedFields", Shape::Records(&MANAGED_FIELDS)),
    ],
};

static OWNER_REFERENCE: Record = Record {
    name: "OwnerReference",
    fields: &[
        always("apiVersion", STRING),
        always("kind", STRING),
        always("name", STRING),
        always("uid", Shape::Text("types.UID")),
        field("controller", Shape::Flag),
        field("blockOwnerDeletion", Shape::Flag),
    ],
};

static MANAGED_FIELDS: Record = Record {
    name: "ManagedFieldsEntry",
    fields: &[
        field("manager", STRING),
        field("operation", Shape::Text("v1.ManagedFieldsOperationType")),
        field("apiVersion", STRING),
        field("time", Shape::Time),
        field("fieldsType", STRING),
        field("fieldsV1", Shape::Anything),
        field("subresource", STRING),
    ],
};

/// Reads metadata; the error is Go's.
pub(crate) fn coerce(metadata: &Value) -> Result<Coerced, String> {
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => &Map::new(),
        other => {
            let kind = go::json::kind(other);
            return Err(format!("json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta"));
        }
    };
    let mut unknown = Vec::new();
    let value = record(&OBJECT_META, fields, &Trail::Start, "", &mut unknown)?;
    Ok(Coerced { value, unknown })
}

fn record(
    record: &Record,
    fields: &Map<String, Value>,
    at: &Trail<'_>,
    stack: &str,
    unknown: &mut Vec<String>,
) -> Result<Value, String> {
    let mut out = Map::new();
    for (name, value) in fields {
        let Some(field) = record.fields.iter().find(|field| field.name == name) else {
            unknown.push(at.dotted(name));
            continue;
        };
        let place = Place { record, at: &Trail::Property(at, field.name), stack: &format!("{stack}{name}") };
        if let Some(value) = place.read(field.shape, value, unknown)? {
            out.insert(name.clone(), value);
        }
    }
    for field in record.fields.iter().filter(|field| field.always) {
        out.entry(field.name).or_insert_with(|| "".into());
    }
    Ok(Value::Object(out))
}

/// A field being read.
struct Place<'a> {
    record: &'a Record,
    at: &'a Trail<'a>,
    /// The field's name behind those of the fields it stands in.
    stack: &'a str,
}

impl Place<'_> {
    /// `None` for a value that is as good as not there.
    fn read(&self, shape: Shape, value: &Value, unknown: &mut Vec<String>) -> Result<Option<Value>, String> {
        if value.is_null() {
            return Ok(None);
        }
        let kept = match (shape, value) {
            (Shape::Anything, _) | (Shape::Flag, Value::Bool(_)) => true,
            (Shape::Text(_), Value::String(text)) => !text.is_empty(),
            (Shape::Integer { keeps_zero }, Value::Number(number)) if number.is_i64() => {
                keeps_zero || number.as_i64() != Some(0)
            }
            (Shape::Integer { .. }, Value::Number(number)) => {
                let given = format!("number {}", go::fmt::number(number));
                return Err(self.mismatch(&given, "int64"));
            }
            (Shape::Time, Value::String(text)) => {
                return go::Time::parse(text).map(|time| Some(time.rfc3339().into()));
            }
            (Shape::Time, other) => {
                let kind = go::json::kind(other);
                return Err(format!("json: cannot unmarshal {kind} into Go value of type string"));
            }
            (Shape::TextMap, Value::Object(entries)) => return self.text_map(entries),
            (Shape::Texts, Value::Array(items)) => return self.texts(items),
            (Shape::Records(record), Value::Array(items)) => return self.records(record, items, unknown),
            (shape, other) => return Err(self.mismatch(go::json::kind(other), &go_type(shape))),
        };
        Ok(kept.then(|| value.clone()))
    }

    fn text_map(&self, entries: &Map<String, Value>) -> Result<Option<Value>, String> {
        let read: Result<Map<String, Value>, String> =
            entries.iter().map(|(key, value)| Ok((key.clone(), self.text(value)?))).collect();
        Ok(Some(read?).filter(|entries| !entries.is_empty()).map(Value::Object))
    }

    fn texts(&self, items: &[Value]) -> Result<Option<Value>, String> {
        let read: Result<Vec<Value>, String> = items.iter().map(|item| self.text(item)).collect();
        Ok(Some(read?).filter(|items| !items.is_empty()).map(Value::Array))
    }

    fn text(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::Null => Ok("".into()),
            Value::String(_) => Ok(value.clone()),
            other => Err(self.mismatch(go::json::kind(other), "string")),
        }
    }

    fn records(
        &self,
        shape: &'static Record,
        items: &[Value],
        unknown: &mut Vec<String>,
    ) -> Result<Option<Value>, String> {
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let fields = match item {
                Value::Object(fields) => fields,
                Value::Null => &Map::new(),
                other => return Err(self.mismatch(go::json::kind(other), &format!("v1.{}", shape.name))),
            };
            let at = Trail::Item(self.at, index);
            out.push(record(shape, fields, &at, &format!("{}.", self.stack), unknown)?);
        }
        Ok(Some(out).filter(|items| !items.is_empty()).map(Value::Array))
    }

    fn mismatch(&self, given: &str, wanted: &str) -> String {
        let (record, field) = (self.record.name, self.stack);
        format!("json: cannot unmarshal {given} into Go struct field {record}.{field} of type {wanted}")
    }
}

fn go_type(shape: Shape) -> String {
    match shape {
        Shape::Text(name) => name.into(),
        Shape::Integer { .. } => "int64".into(),
        Shape::Flag => "bool".into(),
        Shape::TextMap => "map[string]string".into(),
        Shape::Texts => "[]string".into(),
        Shape::Records(record) => format!("[]v1.{}", record.name),
        Shape::Time | Shape::Anything => "string".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> (Value, Vec<String>) {
        let coerced = coerce(&value).unwrap();
        (coerced.value, coerced.unknown)
    }

    #[test]
    fn unknown_and_empty_fields_are_dropped() {
        let (value, unknown) = read(json!({
            "name": "a", "namespace": "", "zip": 1, "labels": {"a": null, "b": "c"}, "annotations": {},
            "generation": 0, "deletionGracePeriodSeconds": 0, "creationTimestamp": null,
            "ownerReferences": [{"name": "o", "x": 1, "controller": false}], "finalizers": [],
            "managedFields": [{"manager": "m", "fieldsV1": {"f:x": {}}, "y": 1}],
        }));
        assert_eq!(
            value,
            json!({
                "name": "a", "labels": {"a": "", "b": "c"}, "deletionGracePeriodSeconds": 0,
                "ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": "", "controller": false}],
                "managedFields": [{"manager": "m", "fieldsV1": {"f:x": {}}}],
            })
        );
        assert_eq!(unknown, ["managedFields[0].y", "ownerReferences[0].x", "zip"]);
    }

    #[test]
    fn wrong_types_are_refused_in_the_words_of_go() {
        for (metadata, text) in [
            (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
            (
                json!({"labels": {"a": 1}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"labels": []}),
                "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
            ),
            (
                json!({"generation": 1.5}),
                "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
            ),
            (
                json!({"ownerReferences": [{"name": 1}]}),
                "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string",
            ),
            (
                json!({"finalizers": "x"}),
                "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
            ),
        ] {
            assert_eq!(coerce(&metadata).unwrap_err(), text);
        }
    }

    #[test]
    fn times_are_utc() {
        let (value, _) = read(json!({"creationTimestamp": "2020-01-01T00:30:00.5+01:00"}));
        assert_eq!(value, json!({"creationTimestamp": "2019-12-31T23:30:00Z"}));
        assert!(coerce(&json!({"deletionTimestamp": "yesterday"})).is_err());
    }
}
