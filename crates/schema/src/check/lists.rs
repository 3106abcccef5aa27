//! Lists and maps with a topology: `x-kubernetes-list-type`, `-list-map-keys`, `-map-type`.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::schema::{Node, Type};
use serde_json::Value;
use std::collections::HashSet;

pub(super) fn check(node: &Node, at: &Path, errors: &mut Bounded<FieldError>) {
    if node.preserve_unknown == Some(false) {
        let at = at.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&at, false, "must be true or undefined"));
    }
    if let Some(kind) = node.map_type.as_deref() {
        errors.extend(wrong_type(node, Type::Object, "x-kubernetes-map-type", at));
        if !matches!(kind, "atomic" | "granular") {
            let at = at.child("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(&at, kind, ["atomic", "granular"]));
        }
    }
    if let Some(kind) = node.list_type.as_deref() {
        match wrong_type(node, Type::Array, "x-kubernetes-list-type", at) {
            Some(error) => errors.push(error),
            None if kind == "set" => set_items(node, at, errors),
            None => {}
        }
        if !matches!(kind, "atomic" | "set" | "map") {
            let at = at.child("x-kubernetes-list-type");
            errors.push(FieldError::not_supported(&at, kind, ["atomic", "set", "map"]));
        }
    }
    if !node.list_map_keys.is_empty() {
        const RULE: &str = "must be map if x-kubernetes-list-map-keys is non-empty";
        let at = at.child("x-kubernetes-list-type");
        match node.list_type.as_deref() {
            None => errors.push(FieldError::required(&at, RULE)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(&at, other, RULE)),
        }
    }
    if node.is_list_map() {
        map_keys(node, at, errors);
    }
    elements(node, at, errors);
}

fn wrong_type(node: &Node, wanted: Type, keyword: &str, at: &Path) -> Option<FieldError> {
    let rule = format!("must be {} if {keyword} is specified", wanted.name());
    match &node.kind {
        Some(kind) if *kind == wanted => None,
        Some(kind) => Some(FieldError::invalid(&at.child("type"), kind.name(), rule)),
        None => Some(FieldError::required(&at.child("type"), rule)),
    }
}

/// Elements of a set are compared as wholes.
fn set_items(node: &Node, at: &Path, errors: &mut Bounded<FieldError>) {
    let Some(items) = &node.items else { return };
    let list_type = items.list_type.as_deref();
    let (keyword, is_atomic) = match items.kind {
        Some(Type::Array) => ("x-kubernetes-list-type", matches!(list_type, None | Some("atomic"))),
        Some(Type::Object) => ("x-kubernetes-map-type", items.map_type.as_deref() == Some("atomic")),
        _ => return,
    };
    if !is_atomic {
        let shown = list_type.map_or(Value::Null, Value::from);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(FieldError::invalid(&at.child("items").child(keyword), shown, detail));
    }
}

fn map_keys(node: &Node, at: &Path, errors: &mut Bounded<FieldError>) {
    let at_keys = at.child("x-kubernetes-list-map-keys");
    if node.list_map_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&at_keys, detail));
    }
    let Some(items) = &node.items else {
        if !node.keywords.items_array {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&at.child("items"), detail));
        }
        return;
    };
    if items.kind != Some(Type::Object) {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let at = at.child("items").child("type");
        errors.push(FieldError::invalid(&at, items.type_name(), detail));
        return;
    }
    let keys = || Value::from(node.list_map_keys.clone());
    let mut seen = HashSet::new();
    for key in &node.list_map_keys {
        match items.property(key).map(|property| &property.kind) {
            None => errors.push(FieldError::invalid(
                &at_keys,
                keys(),
                "entries must all be names of item properties",
            )),
            Some(Some(Type::Array | Type::Object)) => {
                let at = at.child("items").child("properties").key(key).child("type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                // The original shows the type of the items, not of the key.
                errors.push(FieldError::invalid(&at, items.type_name(), detail));
            }
            Some(_) => {}
        }
        if !seen.insert(key) {
            errors.push(FieldError::invalid(&at_keys, keys(), "must not contain duplicate entries"));
        }
    }
}

/// Elements that are told apart cannot be null, and neither can their keys.
fn elements(node: &Node, at: &Path, errors: &mut Bounded<FieldError>) {
    let (Some(kind @ ("set" | "map")), Some(items)) = (node.list_type.as_deref(), &node.items) else {
        return;
    };
    let at = at.child("items");
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(&at.child("nullable"), detail));
    }
    if kind == "set" {
        return;
    }
    for key in &node.list_map_keys {
        let Some(property) = items.property(key) else { continue };
        let at = at.child("properties").key(key);
        if property.default.is_none() && !items.checks.required.contains(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&at.child("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
    }
}
