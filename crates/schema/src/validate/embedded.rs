//! Objects inside of objects: `x-kubernetes-embedded-resource`.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::metadata;
use crate::schema::Node;
use serde_json::{Map, Value};

/// Checks type and metadata of every embedded object. The root is not one.
pub(super) fn check(root: &Node, object: &Value, errors: &mut Bounded<FieldError>) {
    check_below(root, object, &Path::root(), errors);
}

/// The same, for a place in a schema.
pub(super) fn check_below(node: &Node, value: &Value, at: &Path, errors: &mut Bounded<FieldError>) {
    if !node.has_embedded || errors.is_full() {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.embedded {
                embedded(fields, at, errors);
            }
            for (name, field) in fields {
                if let Some(property) = node.property(name) {
                    check_below(property, field, &at.child(name), errors);
                } else if let Some(entry) = node.additional_schema() {
                    check_below(entry, field, &at.key(name), errors);
                }
            }
        }
        Value::Array(values) => {
            if let Some(items) = &node.items {
                for (index, value) in values.iter().enumerate() {
                    check_below(items, value, &at.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

/// Type and metadata of one object.
pub(super) fn embedded(fields: &Map<String, Value>, at: &Path, errors: &mut Bounded<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(&at.child(name), ""));
        }
    }
    for name in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(name)
            && let Some(problem) = type_problem(name, value)
        {
            errors.push(FieldError::invalid(&at.child(name), value.clone(), problem));
        }
    }
    if let Some(value) = fields.get("metadata") {
        let at = at.child("metadata");
        match metadata::read(value) {
            Err(problem) => errors.push(FieldError::invalid(&at, value.clone(), problem)),
            Ok(coerced) => {
                names(&coerced.value, &at, errors);
                metadata::check(&coerced.value, &at, errors);
            }
        }
    }
}

fn type_problem(name: &str, value: &Value) -> Option<String> {
    let Value::String(text) = value else {
        return Some("must be a string".into());
    };
    if text.is_empty() {
        return Some("must not be empty".into());
    }
    if name == "apiVersion" {
        let slashes = text.matches('/').count();
        return (slashes > 1).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let problems = metadata::dns_1035_label_problems(&text.to_lowercase());
    (!problems.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
}

/// A name can be anything that can be a segment of a path.
fn names(metadata: &Value, at: &Path, errors: &mut Bounded<FieldError>) {
    for field in ["generateName", "name"] {
        let Some(name) = metadata.get(field).and_then(Value::as_str) else {
            continue;
        };
        let place = at.child(field);
        if field == "name" && matches!(name, "." | "..") {
            errors.push(FieldError::invalid(&place, name, format!("may not be '{name}'")));
            continue;
        }
        for char in ['/', '%'].into_iter().filter(|char| name.contains(*char)) {
            errors.push(FieldError::invalid(&place, name, format!("may not contain '{char}'")));
        }
    }
}
