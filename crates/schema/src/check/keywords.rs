//! Keywords that Kubernetes does not support, or only in some places.

use super::{lists, rules};
use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::schema::{Additional, Node};

/// What is known about the way down to a node.
#[derive(Clone, Copy)]
struct Context<'a> {
    is_root: bool,
    inside_metadata: bool,
    /// Why no default may be set here.
    no_defaults: Option<&'a str>,
}

pub(super) fn check(root: &Node, at: &Path) -> Vec<FieldError> {
    let context = Context { is_root: true, inside_metadata: false, no_defaults: None };
    let mut errors = Bounded::new();
    node(root, at, context, &mut errors);
    errors.into_vec()
}

fn node(this: &Node, at: &Path, context: Context<'_>, errors: &mut Bounded<FieldError>) {
    if errors.is_full() {
        return;
    }
    own(this, at, context, errors);
    let inner = Context { is_root: false, ..context };
    if let Some(entry) = this.additional_schema() {
        let context = Context {
            no_defaults: if context.inside_metadata {
                Some("inside additionalProperties applying to object metadata")
            } else {
                context.no_defaults
            },
            ..inner
        };
        node(entry, &at.child("additionalProperties"), context, errors);
    }
    for (name, property) in this.properties.iter() {
        let is_meta =
            (context.is_root || this.embedded) && matches!(name, "metadata" | "kind" | "apiVersion");
        let reason = format!("in top-level {name}");
        let context = Context {
            inside_metadata: context.inside_metadata || is_meta,
            no_defaults: if is_meta && context.is_root { Some(&reason) } else { context.no_defaults },
            ..inner
        };
        node(property, &at.child("properties").key(name), context, errors);
    }
    branches(this, at, inner, errors);
    if let Some(items) = &this.items {
        node(items, &at.child("items"), inner, errors);
    }
    lists::check(this, at, errors);
    rules::check(this, at, errors);
}

fn branches(this: &Node, at: &Path, context: Context<'_>, errors: &mut Bounded<FieldError>) {
    let checks = &this.checks;
    if let Some(not) = &checks.not {
        node(not, &at.child("not"), context, errors);
    }
    for (keyword, branches) in
        [("allOf", &checks.all_of), ("oneOf", &checks.one_of), ("anyOf", &checks.any_of)]
    {
        for (index, branch) in branches.iter().enumerate() {
            node(branch, &at.child(keyword).index(index), context, errors);
        }
    }
}

fn own(this: &Node, at: &Path, context: Context<'_>, errors: &mut Bounded<FieldError>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let kind = this.type_name();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&at.child("type"), kind, TYPES));
    }
    if this.default.is_some()
        && let Some(reason) = context.no_defaults
    {
        errors.push(FieldError::forbidden(&at.child("default"), format!("must not be set {reason}")));
    }
    let keywords = &this.keywords;
    for (keyword, is_set, detail) in [
        ("id", keywords.id, "id is not supported"),
        ("additionalItems", keywords.additional_items, "additionalItems is not supported"),
        ("patternProperties", keywords.pattern_properties, "patternProperties is not supported"),
        ("definitions", keywords.definitions, "definitions is not supported"),
        ("dependencies", keywords.dependencies, "dependencies is not supported"),
        ("$ref", keywords.reference, "$ref is not supported"),
        ("type", kind == "null", "type cannot be set to null, use nullable as an alternative"),
        ("items", keywords.items_array, "items must be a schema object and not an array"),
        (
            "x-kubernetes-embedded-resource",
            context.inside_metadata && this.embedded,
            "must not be used inside of resource meta",
        ),
        (
            "uniqueItems",
            this.checks.unique_items,
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            "additionalProperties",
            !this.properties.is_empty() && !matches!(this.additional, None | Some(Additional::Allowed)),
            "additionalProperties and properties are mutual exclusive",
        ),
    ] {
        if is_set {
            errors.push(FieldError::forbidden(&at.child(keyword), detail));
        }
    }
}
