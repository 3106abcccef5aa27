//! Removing what a schema does not know.

use crate::Error;
use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::metadata;
use crate::schema::{Node, Schema};
use crate::trail::Trail;
use serde_json::{Map, Value};

impl Schema {
    /// Makes of a decoded object what kube-apiserver makes of it before anything else looks at it: reads `metadata` as
    /// [`metadata::coerce`] does, at the root and in embedded objects, removes unknown fields, and removes nulls that are
    /// neither allowed nor going to be replaced by a default.
    ///
    /// Returns the unknown fields in kube-apiserver's order: those of the root's metadata, then all others sorted, then
    /// those of embedded metadata sorted. [`unknown_field`] words one of them.
    ///
    /// Fails, leaving the object half changed, if some metadata cannot be read.
    pub fn coerce(&self, object: &mut Value) -> Result<Vec<String>, Error> {
        self.coerce_with(object, Self::prune)
    }

    /// Coerces as [`coerce`](Self::coerce) does, but keeps unknown fields: kube-apiserver does that with the objects of admission webhooks, and prunes them only
    /// when they are stored.
    pub fn coerce_unpruned(&self, object: &mut Value) -> Result<(), Error> {
        self.coerce_with(object, |_, _| Vec::new()).map(drop)
    }

    fn coerce_with(
        &self,
        object: &mut Value,
        prune: impl Fn(&Self, &mut Value) -> Vec<String>,
    ) -> Result<Vec<String>, Error> {
        let mut unknown = Vec::new();
        let root = Path::root();
        let metadata = match object.get("metadata") {
            Some(found) => Some(metadata::coerce(found, &root.child("metadata"))?),
            None => None,
        };
        if let Some(metadata) = &metadata {
            unknown.extend(metadata.unknown.iter().map(|field| format!("metadata.{field}")));
        }
        unknown.extend(prune(self, object));
        drop_nulls(&self.root, object);
        let mut embedded = Bounded::new();
        coerce_embedded(&self.root, object, &root, &mut embedded)?;
        let mut embedded = embedded.into_vec();
        embedded.sort();
        unknown.extend(embedded);
        if let Some(metadata) = metadata {
            object["metadata"] = metadata.value;
        }
        Ok(unknown)
    }

    /// The unknown fields [`coerce`](Self::coerce) would find, the object left as it is.
    pub fn unknown_fields(&self, object: &Value) -> Result<Vec<String>, Error> {
        self.coerce(&mut object.clone())
    }

    /// Removes unknown fields; returns their paths, sorted.
    ///
    /// `apiVersion`, `kind` and `metadata` are known at the root and in embedded objects and are not looked into. Where
    /// `x-kubernetes-preserve-unknown-fields` is set, unknown fields stay, but known fields are still pruned inside.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut removed = Bounded::new();
        if self.root.preserves_unknown() {
            look_for_known(&self.root, object, &Trail::Start, true, &mut removed);
        } else if let Value::Object(fields) = object {
            prune_object(&self.root, fields, &Trail::Start, true, &mut removed);
        } else {
            prune(Some(&self.root), object, &Trail::Start, &mut removed);
        }
        let mut removed = removed.into_vec();
        removed.sort();
        removed
    }
}

/// The default of a place in a schema without its unknown fields; `None` if it has none.
pub(crate) fn pruned_default(node: &Node) -> Option<Value> {
    let mut value = node.default.clone().filter(|default| default.is_object() || default.is_array())?;
    let mut removed = Bounded::new();
    prune(Some(node), &mut value, &Trail::Start, &mut removed);
    (removed.len() > 0).then_some(value)
}

/// The text for an unknown field: `unknown field "spec.zip"`.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field \"{path}\"")
}

/// The message of strict field validation, from the strict errors of the decoder and the unknown fields: `strict decoding error:
/// duplicate field "spec.size", unknown field "spec.zip"`. `None` if there are none.
pub fn strict_message(strict_errors: &[String], unknown_fields: &[String]) -> Option<String> {
    let texts: Vec<String> =
        strict_errors.iter().cloned().chain(unknown_fields.iter().map(|path| unknown_field(path))).collect();
    (!texts.is_empty()).then(|| format!("strict decoding error: {}", texts.join(", ")))
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn prune(node: Option<&Node>, value: &mut Value, at: &Trail<'_>, removed: &mut Bounded<String>) {
    if let Some(node) = node.filter(|node| node.preserves_unknown()) {
        look_for_known(node, value, at, node.embedded, removed);
        return;
    }
    match (value, node) {
        (Value::Object(fields), Some(node)) => prune_object(node, fields, at, node.embedded, removed),
        (Value::Object(fields), None) => {
            fields.keys().for_each(|name| removed.add(|| at.dotted(name)));
            fields.clear();
        }
        (Value::Array(items), node) => {
            let node = node.and_then(|node| node.items.as_deref());
            for (index, item) in items.iter_mut().enumerate() {
                prune(node, item, &Trail::Item(at, index), removed);
            }
        }
        _ => {}
    }
}

fn prune_object(
    node: &Node,
    fields: &mut Map<String, Value>,
    at: &Trail<'_>,
    is_object_root: bool,
    removed: &mut Bounded<String>,
) {
    fields.retain(|name, value| {
        if is_object_root && is_meta(name) {
            return true;
        }
        let known = match node.property(name) {
            Some(property) => Some(property),
            None if node.additional.is_some() => node.additional_schema(),
            None => {
                removed.add(|| at.dotted(name));
                return false;
            }
        };
        prune(known, value, &Trail::Property(at, name), removed);
        true
    });
}

/// Unknown fields stay; what is known inside is pruned.
fn look_for_known(
    node: &Node,
    value: &mut Value,
    at: &Trail<'_>,
    is_object_root: bool,
    removed: &mut Bounded<String>,
) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if is_object_root && is_meta(name) {
                    continue;
                }
                if let Some(property) = node.property(name) {
                    prune(Some(property), value, &Trail::Property(at, name), removed);
                } else if node.additional.is_some() {
                    prune(node.additional_schema(), value, &Trail::Property(at, name), removed);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    look_for_known(node, item, &Trail::Item(at, index), node.embedded, removed);
                }
            }
        }
        _ => {}
    }
}

/// Removes fields that are null, may not be, and have no default.
fn drop_nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| match node.field(name) {
            Some(field) if value.is_null() => !field.refuses_null() || field.default.is_some(),
            Some(field) => {
                drop_nulls(field, value);
                true
            }
            None => true,
        }),
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| drop_nulls(node, item));
            }
        }
        _ => {}
    }
}

fn coerce_embedded(
    node: &Node,
    value: &mut Value,
    at: &Path,
    unknown: &mut Bounded<String>,
) -> Result<(), Error> {
    if !node.has_embedded {
        return Ok(());
    }
    match value {
        Value::Object(fields) => {
            if node.embedded {
                coerce_type_and_metadata(fields, at, unknown)?;
            }
            for (name, value) in fields.iter_mut() {
                if let Some(property) = node.property(name) {
                    coerce_embedded(property, value, &at.child(name), unknown)?;
                } else if let Some(entry) = node.additional_schema() {
                    coerce_embedded(entry, value, &at.key(name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce_embedded(node, item, &at.index(index), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads type and metadata of one object.
pub(crate) fn coerce_type_and_metadata(
    fields: &mut Map<String, Value>,
    at: &Path,
    unknown: &mut Bounded<String>,
) -> Result<(), Error> {
    let wrong = |name: &str, value: &Value, detail: String| {
        let place = at.child(name);
        Error::Metadata {
            message: FieldError::invalid(&place, value.clone(), detail).to_string(),
            at: place.to_string(),
        }
    };
    for name in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(name).filter(|value| !value.is_string()) {
            return Err(wrong(name, value, "must be a string".into()));
        }
    }
    if let Some(found) = fields.get_mut("metadata") {
        let place = at.child("metadata");
        let coerced = metadata::read(found).map_err(|problem| wrong("metadata", found, problem))?;
        for field in &coerced.unknown {
            unknown.add(|| format!("{place}.{field}"));
        }
        *found = coerced.value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(value: Value) -> Schema {
        Schema::read(&value).unwrap()
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = schema(
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {"type": "string"}}}},
            }}}}),
        );
        let mut object = json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "bogus": 1}, "zip": 1,
            "spec": {"size": 1, "x": {"y": 1}, "list": [{"a": "", "z": 1}, 5], "map": {"k": {"b": "", "c": 1}}},
        });
        let unknown = schema.coerce(&mut object).unwrap();
        assert_eq!(unknown, ["metadata.bogus", "spec.list[0].z", "spec.map.k.c", "spec.x", "zip"]);
        assert_eq!(
            object,
            json!({
                "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
                "spec": {"size": 1, "list": [{"a": ""}, 5], "map": {"k": {"b": ""}}},
            })
        );
    }

    #[test]
    fn preserved_fields_stay_but_known_ones_are_pruned_inside() {
        let schema = schema(json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }}}));
        let mut object = json!({"spec": {"any": {"thing": [1]}, "known": {"a": "", "b": 1}}});
        assert_eq!(schema.prune(&mut object), ["spec.known.b"]);
        assert_eq!(object, json!({"spec": {"any": {"thing": [1]}, "known": {"a": ""}}}));
    }

    #[test]
    fn embedded_objects_keep_their_type_and_metadata() {
        let schema = schema(json!({"type": "object", "properties": {"t": {
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}},
        }, "m": {"type": "object", "additionalProperties": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}}}));
        let mut object = json!({
            "t": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "x": 1}, "spec": {"a": 1}, "zip": 1},
            "m": {"k": {"metadata": {"y": 1}, "free": 1}},
        });
        let unknown = schema.coerce(&mut object).unwrap();
        assert_eq!(unknown, ["t.spec.a", "t.zip", "m[k].metadata.y", "t.metadata.x"]);
        assert_eq!(
            object,
            json!({
                "t": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}},
                "m": {"k": {"metadata": {}, "free": 1}},
            })
        );
        let error = schema.coerce(&mut json!({"t": {"kind": 1}})).unwrap_err();
        assert_eq!(error.to_string(), "t.kind: Invalid value: 1: must be a string");
        let error = schema.coerce(&mut json!({"t": {"metadata": {"name": 1}}})).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"t.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#
        );
    }

    #[test]
    fn nulls_go_unless_they_may_stay_or_a_default_replaces_them() {
        let schema = schema(json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string", "nullable": true}, "c": {"type": "string", "default": "x"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "l": {"type": "array", "items": {"type": "string"}},
        }}));
        let mut object = json!({"a": null, "b": null, "c": null, "m": {"k": null}, "l": [null]});
        schema.coerce(&mut object).unwrap();
        assert_eq!(object, json!({"b": null, "c": null, "m": {}, "l": [null]}));
    }

    #[test]
    fn strictness_is_worded_duplicates_first() {
        let duplicates = [r#"duplicate field "spec.size""#.to_owned()];
        let unknown = ["metadata.bogus".to_owned(), "spec.zip".to_owned()];
        assert_eq!(
            strict_message(&duplicates, &unknown).unwrap(),
            r#"strict decoding error: duplicate field "spec.size", unknown field "metadata.bogus", unknown field "spec.zip""#
        );
        assert_eq!(strict_message(&[], &[]), None);
    }
}
