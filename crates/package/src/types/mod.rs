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
/// # Errors
///
/// If there is no such version, it has no schema, its objects have no `spec`, or they have something that these types could not keep: another
/// field beside `spec` and `status`, or one of the two that is no object of named fields. The text says which.
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
    let spec = schema.pointer("/properties/spec");
    let spec = spec.ok_or_else(|| format!("objects of {} {} have no spec", definition.name, found.name))?;
    let loses = |what: &str| {
        format!(
            "objects of {} {} have {what}, which a type of spec and status would lose",
            definition.name, found.name
        )
    };
    if let Some(lost) = lost(schema) {
        return Err(loses(&lost));
    }
    let mut module = Module::new(definition.kind);
    let status = schema.pointer("/properties/status").filter(|status| has_fields(status));
    let attribute = attribute(definition, found, status.is_some());
    module.root(&format!("{}Spec", definition.kind), spec, Some(&attribute));
    if let Some(status) = status {
        module.root(&format!("{}Status", definition.kind), status, None);
    }
    Ok(format!("{}{}", preamble(definition, found, &module), module.text()))
}

/// What objects have that is neither a named field of `spec` or `status` nor what all objects have.
fn lost(schema: &Value) -> Option<String> {
    const KEPT: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
    let fields = schema.get("properties").and_then(Value::as_object);
    let other =
        fields.into_iter().flatten().map(|(name, _)| name).find(|name| !KEPT.contains(&name.as_str()));
    if let Some(other) = other {
        return Some(format!("the field {other}"));
    }
    if shape::is_open(schema) {
        return Some("fields that the schema does not name".to_owned());
    }
    let is_other = |name: &str| {
        let part = schema.pointer(&format!("/properties/{name}"));
        part.is_some_and(|part| part["type"] != "object" || part.get("additionalProperties").is_some())
    };
    let part = ["spec", "status"].into_iter().find(|name| is_other(name));
    part.map(|name| format!("a {name} that is no object of named fields"))
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

fn attribute(definition: &Definition<'_>, version: Version<'_>, has_status: bool) -> String {
    let mut text = format!(
        "#[watchkeeper::kind(\n    group = {:?},\n    version = {:?},\n    kind = {:?},\n    plural = {:?},\n",
        definition.group, version.name, definition.kind, definition.plural
    );
    if definition.namespaced {
        text.push_str("    namespaced,\n");
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
