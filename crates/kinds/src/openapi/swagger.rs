//! Swagger 2.0, in JSON and in protobuf.

use super::operations::{Operation, Parameter, Path, paths};
use super::resource::resources;
use super::three::entry;
use super::{CustomKind, protobuf, published};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

pub(super) fn json(release: &str, custom: &[CustomKind<'_>], others: &[&Value]) -> Vec<u8> {
    let resources = resources(custom);
    let mut known = BTreeSet::new();
    let mut out = Vec::new();
    let info = json!({"title": "Kubernetes", "version": release});
    out.extend_from_slice(format!("{{\"swagger\":\"2.0\",\"info\":{info},\"paths\":{{").as_bytes());
    let mut is_first = true;
    for path in resources.iter().flat_map(paths) {
        entry(&mut out, &path.path, &path_item(&path), &mut is_first);
        known.insert(path.path);
    }
    each_new(others, "paths", known, |path, item| entry(&mut out, path, item, &mut is_first));
    out.extend_from_slice(b"},\"definitions\":{");
    let (mut is_first, mut known) = (true, BTreeSet::new());
    published::each(&resources, custom, true, |name, schema| {
        entry(&mut out, name, &schema_of(name, schema), &mut is_first);
        known.insert(name.to_owned());
    });
    each_new(others, "definitions", known, |name, schema| entry(&mut out, name, schema, &mut is_first));
    let security = json!({"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "A bearer token."}});
    let rest = format!(
        "}},\"parameters\":{{}},\"securityDefinitions\":{security},\"security\":[{{\"BearerToken\":[]}}]}}"
    );
    out.extend_from_slice(rest.as_bytes());
    out
}

pub(super) fn protobuf(release: &str, custom: &[CustomKind<'_>], others: &[&Value]) -> Vec<u8> {
    let resources = resources(custom);
    let mut known = BTreeSet::new();
    let mut document = protobuf::Document::new("Kubernetes", release);
    for path in resources.iter().flat_map(paths) {
        document.path(&path.path, &path_item(&path));
        known.insert(path.path);
    }
    each_new(others, "paths", known, |path, item| document.path(path, item));
    let mut known = BTreeSet::new();
    published::each(&resources, custom, true, |name, schema| {
        document.definition(name, &schema_of(name, schema));
        known.insert(name.to_owned());
    });
    each_new(others, "definitions", known, |name, schema| document.definition(name, schema));
    document.finish()
}

/// Calls `add` with what the documents of others have under names that are not known yet, each once.
fn each_new(others: &[&Value], field: &str, mut known: BTreeSet<String>, mut add: impl FnMut(&str, &Value)) {
    for (name, value) in others.iter().filter_map(|other| other[field].as_object()).flatten() {
        if known.insert(name.clone()) {
            add(name, value);
        }
    }
}

fn path_item(path: &Path) -> Value {
    let mut item: Map<String, Value> = path
        .operations
        .iter()
        .map(|operation| (operation.method.to_owned(), self::operation(operation)))
        .collect();
    if !path.parameters.is_empty() {
        item.insert("parameters".into(), path.parameters.iter().map(parameter).collect());
    }
    Value::Object(item)
}

fn parameter(parameter: &Parameter) -> Value {
    let mut value = json!({
        "name": parameter.name, "in": parameter.place, "description": parameter.description, "type": parameter.kind,
        "uniqueItems": true,
    });
    if parameter.place == "path" {
        value["required"] = true.into();
    }
    value
}

fn operation(operation: &Operation) -> Value {
    let schema = |definition: &str| json!({"$ref": format!("#/definitions/{definition}")});
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(body) = &operation.body {
        let is_required = matches!(operation.method, "post" | "put" | "patch");
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema(body)});
        if is_required {
            parameter["required"] = true.into();
        }
        parameters.push(parameter);
    }
    parameters.extend(operation.parameters.iter().map(parameter));
    let mut responses = Map::new();
    for code in operation.codes {
        let description = if *code == "200" {
            "OK"
        } else if *code == "201" {
            "Created"
        } else {
            "Accepted"
        };
        responses
            .insert((*code).into(), json!({"description": description, "schema": schema(&operation.answer)}));
    }
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let mut value = json!({
        "tags": [operation.tag], "description": operation.description, "operationId": operation.id,
        "consumes": operation.body_types, "produces": TYPES, "schemes": ["https"],
        "parameters": parameters, "responses": responses,
    });
    if let (Some(fields), Value::Object(mut extensions)) = (value.as_object_mut(), operation.extensions()) {
        fields.append(&mut extensions);
    }
    value
}

/// A definition as Swagger has it: a type is one type.
fn schema_of(name: &str, mut schema: Value) -> Value {
    let description = schema["description"].clone();
    match name.rsplit('.').next() {
        Some("IntOrString") if name.contains(".intstr.") => {
            json!({"description": description, "type": "string", "format": "int-or-string"})
        }
        Some("Quantity") if name.contains(".resource.") => {
            json!({"description": description, "type": "string"})
        }
        Some(kind)
            if name.contains(".apiextensions.")
                && (kind.starts_with("JSONSchemaPropsOr") || kind == "JSON") =>
        {
            json!({"description": description})
        }
        _ => {
            if let Some(fields) = schema.as_object_mut() {
                fields.remove("oneOf");
            }
            schema
        }
    }
}
