//! What metadata may hold.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use serde_json::{Map, Value};
use watchkeeper_wire::names::{dns_label_problems, label_key_problems, label_value_problems};

/// The bytes of keys and values that annotations may hold together.
const MAX_ANNOTATIONS: i64 = 256 * 1024;

/// Errors in the namespace, generation, labels, annotations, owner references and finalizers of an object.
///
/// The name is the caller's to check, because its rule depends on the kind; so is whether there must be a namespace. Fields
/// of the wrong type are passed over: [`coerce`](super::coerce) finds those. `managedFields` are not looked at.
pub fn validate(metadata: &Value, at: &Path) -> Vec<FieldError> {
    let mut errors = Bounded::new();
    check(metadata, at, &mut errors);
    errors.into_vec()
}

/// The same, to the errors found so far.
pub(crate) fn check(metadata: &Value, at: &Path, errors: &mut Bounded<FieldError>) {
    let Some(fields) = metadata.as_object() else {
        return;
    };
    if let Some(namespace) = text(fields, "namespace") {
        for problem in dns_label_problems(namespace) {
            errors.add(|| FieldError::invalid(&at.child("namespace"), namespace, problem));
        }
    }
    if let Some(generation) = fields.get("generation").and_then(Value::as_i64).filter(|number| *number < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&at.child("generation"), generation, detail));
    }
    labels(fields, &at.child("labels"), errors);
    annotations(fields, &at.child("annotations"), errors);
    owner_references(fields, &at.child("ownerReferences"), errors);
    finalizers(fields, &at.child("finalizers"), errors);
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn entries<'a>(fields: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = fields.get(name).and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn items<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn labels(fields: &Map<String, Value>, at: &Path, errors: &mut Bounded<FieldError>) {
    for (key, value) in entries(fields, "labels") {
        for problem in label_key_problems(key) {
            errors.add(|| FieldError::invalid(at, key, problem));
        }
        for problem in label_value_problems(value) {
            errors.add(|| FieldError::invalid(at, value, problem));
        }
    }
}

fn annotations(fields: &Map<String, Value>, at: &Path, errors: &mut Bounded<FieldError>) {
    let mut size = 0;
    for (key, value) in entries(fields, "annotations") {
        size += key.len() + value.len();
        for problem in label_key_problems(&key.to_lowercase()) {
            errors.add(|| FieldError::invalid(at, key, problem));
        }
    }
    if size > MAX_ANNOTATIONS as usize {
        errors.push(FieldError::too_long(at, MAX_ANNOTATIONS));
    }
}

fn owner_references(fields: &Map<String, Value>, at: &Path, errors: &mut Bounded<FieldError>) {
    let mut controller: Option<String> = None;
    let references = items(fields, "ownerReferences");
    for (index, reference) in references.iter().enumerate() {
        if errors.is_full() {
            return;
        }
        let Some(reference) = reference.as_object() else {
            continue;
        };
        let at_reference = at.index(index);
        owner_reference(reference, &at_reference, errors);
        if reference.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let name = |field| text(reference, field).unwrap_or_default();
        let this = format!("{}/{}", name("kind"), name("name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                let error = FieldError::invalid(at, Value::Array(references.to_vec()), detail);
                errors.push(error.structures(references.iter().map(in_order)));
            }
        }
    }
}

/// A reference with its fields as Go has them.
fn in_order(reference: &Value) -> Vec<(&'static str, Value)> {
    let field = |name: &'static str| reference.get(name).map(|value| (name, value.clone()));
    ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]
        .into_iter()
        .filter_map(field)
        .collect()
}

fn owner_reference(reference: &Map<String, Value>, at: &Path, errors: &mut Bounded<FieldError>) {
    match text(reference, "apiVersion") {
        None => errors.push(FieldError::required(&at.child("apiVersion"), "must not be empty")),
        Some(version) if version.matches('/').count() > 1 || version.ends_with('/') => errors.push(
            FieldError::invalid(&at.child("apiVersion"), version, "must be <group>/<version> or <version>"),
        ),
        Some(_) => {}
    }
    for name in ["kind", "name", "uid"] {
        if text(reference, name).is_none() {
            errors.push(FieldError::required(&at.child(name), "must not be empty"));
        }
    }
    if text(reference, "apiVersion") == Some("v1") && text(reference, "kind") == Some("Event") {
        errors.push(FieldError::invalid(
            at,
            Value::Object(reference.clone()),
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
}

fn finalizers(fields: &Map<String, Value>, at: &Path, errors: &mut Bounded<FieldError>) {
    let finalizers = items(fields, "finalizers");
    for finalizer in finalizers.iter().filter_map(Value::as_str) {
        for problem in label_key_problems(finalizer) {
            errors.add(|| FieldError::invalid(at, finalizer, problem));
        }
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        errors.push(FieldError::invalid(
            at,
            Value::Array(finalizers.to_vec()),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(metadata: Value) -> Vec<String> {
        let errors = validate(&metadata, &Path::root().child("metadata"));
        errors.iter().map(FieldError::to_string).collect()
    }

    #[test]
    fn good_metadata_passes() {
        assert!(
            texts(json!({
                "name": "x", "namespace": "default", "labels": {"a/b": "c"}, "annotations": {"K8s.io/X": "any thing"},
                "finalizers": ["example.com/f"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}],
            }))
            .is_empty()
        );
    }

    #[test]
    fn bad_metadata_is_told_by_field() {
        let reference =
            json!({"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u", "controller": true});
        let found = texts(json!({
            "generation": -1, "labels": {"a": "?"}, "annotations": {"/": ""}, "finalizers": ["orphan", "foregroundDeletion"],
            "ownerReferences": [reference, {"controller": true, "kind": "L"}],
        }));
        let starts = [
            "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            "metadata.labels: Invalid value: \"?\": a valid label must be",
            "metadata.annotations: Invalid value: \"/\": prefix part must be non-empty",
            "metadata.annotations: Invalid value: \"/\": name part must be non-empty",
            "metadata.annotations: Invalid value: \"/\": name part must consist",
            "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>",
            "metadata.ownerReferences[1].apiVersion: Required value: must not be empty",
            "metadata.ownerReferences[1].name: Required value: must not be empty",
            "metadata.ownerReferences[1].uid: Required value: must not be empty",
            "metadata.ownerReferences: Invalid value: [{",
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ];
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }
}
