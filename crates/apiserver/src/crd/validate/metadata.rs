//! The metadata of a definition.

use super::labels::dns_subdomain_problems;
use crate::crd::field::{get, text, texts};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use watchkeeper_go::quote as quoted;
use watchkeeper_schema::metadata::validate;
use watchkeeper_schema::{FieldError, Path};

/// What is wrong with the metadata of a definition that must have this name.
pub(super) fn create(definition: &Value, required_name: &str) -> Vec<FieldError> {
    let at = Path::root().child("metadata");
    let metadata = get(definition, "metadata").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let mut check_name = |field: &str, name: &str, checked: &str| {
        let mut problems = dns_subdomain_problems(checked);
        if name != required_name {
            problems.push("must be spec.names.plural+\".\"+spec.group".into());
        }
        errors
            .extend(problems.into_iter().map(|problem| FieldError::invalid(&at.child(field), name, problem)));
    };
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        check_name("generateName", prefix, &completed(prefix));
    }
    match text(metadata, "name") {
        "" => errors.push(FieldError::required(&at.child("name"), "name or generateName is required")),
        name => check_name("name", name, name),
    }
    if !text(metadata, "namespace").is_empty() {
        errors.push(FieldError::forbidden(&at.child("namespace"), "not allowed on this type"));
    }
    errors.extend(validate(&without(metadata, &["namespace"]), &at));
    errors
}

/// A prefix may end with a dash: the generated rest follows.
fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut chars = rest.chars();
            chars.next_back();
            format!("{}a", chars.as_str())
        }
        _ => prefix.into(),
    }
}

/// What is wrong with the metadata of a definition that replaces another.
pub(super) fn update(new: &Value, old: &Value) -> Vec<FieldError> {
    let at = Path::root().child("metadata");
    let new = get(new, "metadata").unwrap_or(&Value::Null);
    let old = get(old, "metadata").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    if get(old, "deletionTimestamp").is_some() {
        let before = texts(old, "finalizers");
        let added: BTreeSet<String> =
            texts(new, "finalizers").into_iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|name| quoted(name)).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden(&at.child("finalizers"), detail));
        }
    }
    if text(new, "resourceVersion").is_empty() {
        errors.push(FieldError::invalid(&at.child("resourceVersion"), "", "must be specified for an update"));
    }
    let generation = |metadata| get(metadata, "generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        let detail = "must not be decremented";
        errors.push(FieldError::invalid(&at.child("generation"), generation(new), detail));
    }
    for (field, empty) in [
        ("name", json!("")),
        ("namespace", json!("")),
        ("uid", json!("")),
        ("creationTimestamp", Value::Null),
        ("deletionTimestamp", Value::Null),
        ("deletionGracePeriodSeconds", Value::Null),
    ] {
        let (new, old) = (get(new, field).unwrap_or(&empty), get(old, field).unwrap_or(&empty));
        if new != old {
            errors.push(FieldError::invalid(&at.child(field), new.clone(), "field is immutable"));
        }
    }
    errors.extend(validate(&without(new, &["namespace", "generation", "finalizers"]), &at));
    errors
}

fn without(metadata: &Value, fields: &[&str]) -> Value {
    let mut metadata = metadata.clone();
    if let Some(all) = metadata.as_object_mut() {
        all.retain(|name, _| !fields.contains(&name.as_str()));
    }
    metadata
}
