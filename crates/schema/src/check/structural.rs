//! A schema is structural if what a value looks like can be told without looking at `allOf`, `anyOf`, `oneOf` and `not`.

use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::schema::{Additional, Checks, Node, Properties, Type};

/// Where a node stands, for the words of its errors.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps the schema from being looked at at all.
pub(super) fn unsupported(node: &Node) -> Option<String> {
    let keywords = &node.keywords;
    let keyword = [
        ("id", keywords.id),
        ("schema", keywords.schema),
        ("$ref", keywords.reference),
        ("patternProperties", keywords.pattern_properties),
        ("dependencies", keywords.dependencies),
        ("additionalItems", keywords.additional_items),
        ("definitions", keywords.definitions),
    ];
    if let Some((name, _)) = keyword.into_iter().find(|(_, is_set)| *is_set) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if node.preserve_unknown == Some(false) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".into(),
        );
    }
    if keywords.items_array {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    children(node).find_map(unsupported)
}

fn children(node: &Node) -> impl Iterator<Item = &Node> {
    let checks = &node.checks;
    let branches = checks.all_of.iter().chain(&checks.any_of).chain(&checks.one_of);
    branches
        .chain(checks.not.as_deref())
        .chain(node.items.as_deref())
        .chain(node.properties.iter().map(|(_, property)| property))
        .chain(node.additional_schema())
}

/// Everything that makes the schema not structural, sorted by text.
pub(super) fn check(root: &Node, at: &Path) -> Vec<FieldError> {
    let mut errors = Bounded::new();
    structure(root, Level::Root, at, &mut errors);
    completeness(&root.checks, root, at, at, &mut errors);
    let mut errors = errors.into_vec();
    errors.sort_by_cached_key(FieldError::to_string);
    errors
}

fn structure(node: &Node, level: Level, at: &Path, errors: &mut Bounded<FieldError>) {
    if errors.is_full() {
        return;
    }
    if node.kind == Some(Type::Array) && node.items.is_none() {
        errors.push(FieldError::required(&at.child("items"), "must be specified"));
    }
    if let Some(items) = &node.items {
        structure(items, Level::Item, &at.child("items"), errors);
    }
    for (name, property) in node.properties.iter() {
        structure(property, Level::Field, &at.child("properties").key(name), errors);
    }
    if node.additional.is_some() {
        let at = at.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if let Some(entry) = node.additional_schema() {
            structure(entry, Level::Field, &at, errors);
        }
    }
    if node.int_or_string && node.preserves_unknown() {
        let at = at.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&at, true, "must be false if x-kubernetes-int-or-string is true"));
    }
    if node.int_or_string && node.embedded {
        let at = at.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::invalid(&at, true, "must be false if x-kubernetes-int-or-string is true"));
    }
    let skip_any_of = is_int_or_string(&node.checks.any_of);
    let first = node.checks.all_of.first();
    let skip_first = first.is_some_and(|first| is_int_or_string(&first.checks.any_of));
    value_checks(&node.checks, skip_any_of, skip_first, at, errors);
    types(node, level, at, errors);
    metadata(node, level, at, errors);
}

fn types(node: &Node, level: Level, at: &Path, errors: &mut Bounded<FieldError>) {
    let at_type = at.child("type");
    if node.embedded && node.kind != Some(Type::Object) {
        const RULE: &str = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match &node.kind {
            None => FieldError::required(&at_type, RULE),
            Some(kind) => FieldError::invalid(&at_type, kind.name(), RULE),
        });
    } else if node.kind.is_none() && !node.int_or_string && !node.preserves_unknown() {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&at_type, format!("must not be empty {place}")));
    }
    if node.embedded && node.additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&at.child("additionalProperties"), detail));
    }
    if level == Level::Root && node.kind.as_ref().is_some_and(|kind| *kind != Type::Object) {
        errors.push(FieldError::invalid(&at_type, node.type_name(), "must be object at the root"));
    }
    if node.embedded && !node.preserves_unknown() && node.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&at.child("properties"), detail));
    }
}

/// The schema of `metadata` can only restrict names; it is known anyway.
fn metadata(node: &Node, level: Level, at: &Path, errors: &mut Bounded<FieldError>) {
    let is_object_root = level == Level::Root || node.embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(property) = node.property(name).filter(|_| is_object_root)
            && property.kind != Some(Type::String)
        {
            let at = at.child("properties").key(name).child("type");
            errors.push(FieldError::invalid(&at, property.type_name(), "must be string"));
        }
    }
    let Some(metadata) = node.property("metadata") else {
        return;
    };
    let at = at.child("properties").key("metadata");
    if is_object_root && metadata.kind != Some(Type::Object) {
        errors.push(FieldError::invalid(&at.child("type"), metadata.type_name(), "must be object"));
    }
    if level == Level::Root && !restricts_names_only(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(&at, detail));
    }
}

fn restricts_names_only(metadata: &Node) -> bool {
    let names = ["name", "generateName"].into_iter().filter(|name| metadata.property(name).is_some());
    let bare = Node { properties: Properties::default(), default: None, ..metadata.clone() };
    names.count() == metadata.properties.len() && bare.says_only_its_type()
}

/// The two branches that say nothing but that a value is an integer or a string.
fn is_int_or_string(branches: &[Node]) -> bool {
    let is_only = |node: &Node, kind: Type| node.kind == Some(kind) && node.says_only_its_type();
    matches!(branches, [first, second] if is_only(first, Type::Integer) && is_only(second, Type::String))
}

fn value_checks(
    checks: &Checks,
    skip_any_of: bool,
    skip_first: bool,
    at: &Path,
    errors: &mut Bounded<FieldError>,
) {
    if !skip_any_of {
        for (index, branch) in checks.any_of.iter().enumerate() {
            nested(branch, false, &at.child("anyOf").index(index), errors);
        }
    }
    for (index, branch) in checks.all_of.iter().enumerate() {
        nested(branch, skip_first && index == 0, &at.child("allOf").index(index), errors);
    }
    for (index, branch) in checks.one_of.iter().enumerate() {
        nested(branch, false, &at.child("oneOf").index(index), errors);
    }
    if let Some(not) = &checks.not {
        nested(not, false, &at.child("not"), errors);
    }
    if let Some(pattern) = &checks.pattern
        && let Some(problem) = pattern.problem()
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(FieldError::invalid(&at.child("pattern"), pattern.source(), detail));
    }
}

/// A branch may check values and look into fields and items; it may not say what anything is.
fn nested(node: &Node, skip_any_of: bool, at: &Path, errors: &mut Bounded<FieldError>) {
    if errors.is_full() {
        return;
    }
    value_checks(&node.checks, skip_any_of, false, at, errors);
    if let Some(items) = &node.items {
        nested(items, false, &at.child("items"), errors);
    }
    for (name, property) in node.properties.iter() {
        nested(property, false, &at.child("properties").key(name), errors);
    }
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    let says_fields = !matches!(node.additional, None | Some(Additional::Refused));
    for (keyword, is_set, rule) in [
        ("type", node.kind.is_some(), EMPTY),
        ("additionalProperties", says_fields, UNDEFINED),
        ("default", node.default.is_some(), UNDEFINED),
        ("title", node.keywords.title, EMPTY),
        ("description", node.keywords.description, EMPTY),
        ("nullable", node.nullable, FALSE),
        ("x-kubernetes-preserve-unknown-fields", node.preserves_unknown(), FALSE),
        ("x-kubernetes-embedded-resource", node.embedded, FALSE),
        ("x-kubernetes-int-or-string", node.int_or_string, FALSE),
        ("x-kubernetes-list-map-keys", !node.list_map_keys.is_empty(), EMPTY),
        ("x-kubernetes-list-type", node.list_type.is_some(), UNDEFINED),
        ("x-kubernetes-map-type", node.map_type.is_some(), UNDEFINED),
        ("x-kubernetes-validations", !node.rules.is_empty(), EMPTY),
    ] {
        if is_set {
            errors.push(FieldError::forbidden(&at.child(keyword), rule));
        }
    }
    if node.property("metadata").is_some() {
        let at = at.child("properties").key("metadata");
        errors.push(FieldError::forbidden(&at, "must not be specified in a nested context"));
    }
}

/// Every field and item a branch looks into must be known outside of branches.
fn completeness(checks: &Checks, node: &Node, at: &Path, branch_at: &Path, errors: &mut Bounded<FieldError>) {
    if let Some(not) = &checks.not {
        nested_completeness(not, node, at, &branch_at.child("not"), errors);
    }
    for (keyword, branches) in
        [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)]
    {
        for (index, branch) in branches.iter().enumerate() {
            nested_completeness(branch, node, at, &branch_at.child(keyword).index(index), errors);
        }
    }
}

fn nested_completeness(
    branch: &Node,
    node: &Node,
    at: &Path,
    branch_at: &Path,
    errors: &mut Bounded<FieldError>,
) {
    if errors.is_full() {
        return;
    }
    completeness(&branch.checks, node, at, branch_at, errors);
    let because = |branch_at: &Path| format!("because it is defined in {branch_at}");
    if let Some(branch_items) = &branch.items {
        let (at, branch_at) = (at.child("items"), branch_at.child("items"));
        match &node.items {
            Some(items) => nested_completeness(branch_items, items, &at, &branch_at, errors),
            None => errors.push(FieldError::required(&at, because(&branch_at))),
        }
    }
    for (name, branch_property) in branch.properties.iter() {
        let at = at.child("properties").key(name);
        let branch_at = branch_at.child("properties").key(name);
        match node.property(name) {
            Some(property) => nested_completeness(branch_property, property, &at, &branch_at, errors),
            None => errors.push(FieldError::required(&at, because(&branch_at))),
        }
    }
}
