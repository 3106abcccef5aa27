//! Whether an object satisfies its schema.

mod branches;
mod embedded;
mod lists;
mod number;
mod old;
mod type_name;
mod walk;

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::schema::{Node, Schema};
use crate::trail::Trail;
use old::Old;
use serde_json::{Map, Value};
use walk::Walk;

impl Schema {
    /// Errors in a new object; it is valid if there are none.
    ///
    /// Errors come in the order of kube-apiserver: first those of values against the schema, then those of embedded
    /// objects, then duplicates in lists that are sets or maps. Where kube-apiserver's order is random (the fields of
    /// an object), it is here by name: at each object the entries of `additionalProperties`, then the properties, then what
    /// is missing. An error is said once. Of very many errors (some thousands, or megabytes of text) only the first
    /// are kept.
    ///
    /// `metadata` at the root and the CEL rules are not looked at.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Bounded::new();
        errors.extend(values(&self.root, object, None, &Path::root()));
        embedded::check(&self.root, object, &mut errors);
        lists::check(&self.root, object, &mut errors);
        errors.into_vec()
    }

    /// Errors in an object that replaces `old`.
    ///
    /// What was wrong already and has not been touched is tolerated: errors of a value that equals its old value are
    /// dropped. Elements of a list have an old value only if the list is a map by keys. Duplicates in lists are tolerated
    /// as long as the old object has any.
    pub fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let before = || Some(Old::new(&self.root, old, new));
        let mut errors = Bounded::new();
        errors.extend(values_update(&self.root, new, before, &Path::root()));
        embedded::check(&self.root, new, &mut errors);
        errors.extend(self.check_lists_update(old, new));
        errors.into_vec()
    }

    /// What is wrong with the `status` of an object that replaces `old` through the status subresource; the rest of
    /// the object is not looked at.
    pub fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let (Some(node), Some(status)) = (self.root.property("status"), new.get("status")) else {
            return Vec::new();
        };
        let before = || Old::new(&self.root, old, new).key("status");
        let mut errors = values_update(node, status, before, &Path::root().child("status"));
        errors.extend(self.check_lists_update(old, new));
        errors
    }

    fn check_lists_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Bounded::new();
        lists::check(&self.root, new, &mut errors);
        let mut old_errors = Bounded::new();
        if errors.len() > 0 {
            lists::check(&self.root, old, &mut old_errors);
        }
        if old_errors.len() > 0 { Vec::new() } else { errors.into_vec() }
    }
}

/// What is wrong with the default of a place in a schema, its errors placed below `base`.
pub(crate) fn validate_default(node: &Node, base: &Path) -> Vec<FieldError> {
    match &node.default {
        Some(default) => values(node, default, None, base),
        None => Vec::new(),
    }
}

/// What is wrong with the objects embedded in a default.
pub(crate) fn validate_default_embedded(node: &Node, default: &Value, base: &Path) -> Vec<FieldError> {
    let mut errors = Bounded::new();
    embedded::check_below(node, default, base, &mut errors);
    errors.into_vec()
}

/// What is wrong with type and metadata of an object that is embedded, or the root.
pub(crate) fn validate_type_and_metadata(fields: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Bounded::new();
    embedded::embedded(fields, &Path::root(), &mut errors);
    errors.into_vec()
}

/// An old value can only excuse errors, so it is not looked at if there are none.
fn values_update<'a>(
    node: &Node,
    value: &Value,
    old: impl FnOnce() -> Option<Old<'a>>,
    base: &Path,
) -> Vec<FieldError> {
    match values(node, value, None, base) {
        errors if errors.is_empty() => errors,
        errors => match old() {
            Some(old) => values(node, value, Some(old), base),
            None => errors,
        },
    }
}

fn values(node: &Node, value: &Value, old: Option<Old<'_>>, base: &Path) -> Vec<FieldError> {
    let mut walk = Walk::new(base);
    walk.node(node, value, &Trail::Start, old);
    walk.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: Vec<FieldError>) -> Vec<String> {
        errors.iter().map(FieldError::to_string).collect()
    }

    #[test]
    fn a_status_is_judged_alone_and_its_fields_are_named_from_the_root() {
        let status = json!({"type": "object", "required": ["ready"], "properties": {"n": {"type": "integer", "maximum": 3}}});
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["x"]}, "status": status,
        }}))
        .unwrap();
        let old = json!({"spec": {}, "status": {"n": 9}});
        assert_eq!(
            texts(schema.validate_status_update(&old, &json!({"spec": {}, "status": {"n": 8}}))),
            [
                "status.n: Invalid value: 8: n in body should be less than or equal to 3",
                "status.ready: Required value"
            ]
        );
        assert!(schema.validate_status_update(&old, &old).is_empty());
        assert!(schema.validate_status_update(&old, &json!({"spec": {}})).is_empty());
    }

    #[test]
    fn errors_come_in_the_order_that_is_promised() {
        let list = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
        let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true});
        let schema = Schema::read(&json!({"type": "object", "required": ["z", "a"], "properties": {
            "l": list, "e": embedded, "b": {"type": "string"}, "m": {"type": "object", "additionalProperties": {"type": "string"}},
        }}))
        .unwrap();
        let found =
            texts(schema.validate(&json!({"l": ["x", "x", 1], "e": {}, "b": 1, "m": {"y": 1, "x": 1}})));
        let fields: Vec<&str> = found.iter().filter_map(|text| text.split(": ").next()).collect();
        assert_eq!(fields, ["b", "l[2]", "m.x", "m.y", "z", "a", "e.apiVersion", "e.kind", "l[1]"]);
    }
}
