//! Rust types from a definition that somebody else made.

mod ident;
mod shape;

use std::fmt::Write as _;

use serde_json::Value;

use crate::definition::{Definition, Version};
use crate::file::HEADER;
use shape::Module;

/// Writes a module of Rust with the kind of a definition and all types in it, for one of its versions or the one that is stored.
///
/// What an object has is kept: fields that need not be there are `Option`s, what the schema leaves open is `serde_json::Value`, so that an
/// object decodes and encodes to itself. Rules, patterns and defaults are the server's and are not in the types.
///
/// A kind is made of its `spec`. One that has none, or other fields beside it and `status`, is made of a struct of all these fields (`no_spec`
/// of `#[watchkeeper::kind]`).
///
/// # Errors
///
/// If there is no such version, it has no schema, or its objects have something that these types could not keep: fields without names beside
/// `spec` and `status`, or a `status` that is no object of named fields. The text says which.
pub fn types(definition: &Definition<'_>, version: Option<&str>) -> Result<String, String> {
    let found = match version {
        Some(name) => definition.versions().find(|version| version.name == name),
        None => definition.storage(),
    };
    let names: Vec<&str> = definition.versions().map(|version| version.name).collect();
    let found = found.ok_or_else(|| {
        format!(
            "{} has no version {:?}: it has {}",
            definition.name,
            version.unwrap_or_default(),
            names.join(", ")
        )
    })?;
    let schema = found.schema().ok_or_else(|| format!("{} {} has no schema", definition.name, found.name))?;
    if let Some(lost) = lost(schema) {
        return Err(format!(
            "objects of {} {} have {lost}, which the types would lose",
            definition.name, found.name
        ));
    }
    let mut module = Module::new(definition.kind);
    let status = schema.pointer("/properties/status").filter(|status| has_fields(status));
    let only_spec = only_spec(schema);
    let attribute = attribute(definition, found, only_spec.is_some(), status.is_some());
    match only_spec {
        Some(spec) => module.root(&format!("{}Spec", definition.kind), spec, Some(&attribute)),
        None => module.fields(&format!("{}Fields", definition.kind), &fields(schema), &attribute),
    }
    if let Some(status) = status {
        module.root(&format!("{}Status", definition.kind), status, None);
    }
    Ok(format!("{}{}", preamble(definition, found, &module), module.text()))
}

/// The fields of all objects, and `status`: a typed kind has them beside those that it is made of.
const ELSEWHERE: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// What objects have that no type of ours keeps.
fn lost(schema: &Value) -> Option<&'static str> {
    if shape::is_open(schema) {
        return Some("fields that the schema does not name");
    }
    let status = schema.pointer("/properties/status");
    let is_other = status.is_some_and(|status| !is_object_of_named_fields(status));
    is_other.then_some("a status that is no object of named fields")
}

/// The schema of `spec`, if objects are made of nothing else.
fn only_spec(schema: &Value) -> Option<&Value> {
    let mut names = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    if names.any(|(name, _)| name != "spec" && !ELSEWHERE.contains(&name.as_str())) {
        return None;
    }
    schema.pointer("/properties/spec").filter(|spec| is_object_of_named_fields(spec))
}

/// The schema of what objects are made of, without the fields that a typed kind has anyway.
fn fields(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !ELSEWHERE.contains(&name.as_str()));
    }
    schema
}

fn is_object_of_named_fields(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("additionalProperties").is_none()
}

/// Whether objects that follow a schema can have fields.
fn has_fields(schema: &Value) -> bool {
    schema.get("properties").is_some() || shape::is_open(schema)
}

fn preamble(definition: &Definition<'_>, version: Version<'_>, module: &Module) -> String {
    let mut text = format!("// {HEADER}\n//! Types of {} {}.\n", definition.name, version.name);
    text.push_str("#![allow(missing_docs, clippy::all, rustdoc::all, reason = \"the words are those of the definition\")]\n\n");
    if module.has_maps() {
        text.push_str("use std::collections::BTreeMap;\n\n");
    }
    if module.has_int_or_string() {
        text.push_str("use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;\n\n");
    }
    text
}

fn attribute(definition: &Definition<'_>, version: Version<'_>, has_spec: bool, has_status: bool) -> String {
    let mut text = format!(
        "#[watchkeeper::kind(\n    group = {:?},\n    version = {:?},\n    kind = {:?},\n    plural = {:?},\n",
        definition.group, version.name, definition.kind, definition.plural
    );
    if definition.namespaced {
        text.push_str("    namespaced,\n");
    }
    if !has_spec {
        text.push_str("    no_spec,\n");
    }
    if has_status {
        let _ = writeln!(text, "    status = \"{}Status\",", definition.kind);
    }
    let names = definition.value.pointer("/spec/names/shortNames").and_then(Value::as_array);
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(text, "    shortname = {name:?},");
    }
    text.push_str("    derive = \"PartialEq\"\n)]\n");
    text
}
