//! The definitions of custom kinds.

use super::CustomKind;
use super::resource::gvk;
use crate::definition;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

const OBJECT_META: &str = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The group backwards, the version and a kind: `dev.demo.v1.Widget`.
pub(super) fn definition_name(kind: &CustomKind<'_>, name: &str) -> String {
    let group: Vec<&str> = kind.group.split('.').rev().collect();
    format!("{}.{}.{name}", group.join("."), kind.version)
}

/// The definitions of an object and of a list, references as in Swagger.
///
/// With `for_swagger` the schema says only what Swagger 2 can; a client that reads it must not be misled into refusing
/// objects, so where something cannot be said, nothing is.
pub(super) fn definitions(kind: &CustomKind<'_>, for_swagger: bool) -> [(String, Value); 2] {
    let name = definition_name(kind, kind.kind);
    let mut object = kind.schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    let is_open = keeps_unknown(&object);
    match object.as_object_mut() {
        Some(_) if kind.schema.is_none() || for_swagger && is_open => object = json!({"type": "object"}),
        Some(schema) => {
            if for_swagger {
                reduce(schema);
            }
            add_type_and_metadata(schema);
            add_to_embedded(schema, for_swagger);
        }
        None => object = json!({"type": "object"}),
    }
    object["x-kubernetes-group-version-kind"] = json!([gvk(kind.group, kind.version, kind.kind)]);
    let list = json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": type_meta("apiVersion"),
            "items": {
                "description": format!("List of {}.", kind.plural),
                "type": "array",
                "items": {"$ref": format!("#/definitions/{name}")},
            },
            "kind": type_meta("kind"),
            "metadata": {"description": "Metadata of the list.", "$ref": LIST_META},
        },
        "x-kubernetes-group-version-kind": [gvk(kind.group, kind.version, kind.list_kind)],
    });
    [(name, object), (definition_name(kind, kind.list_kind), list)]
}

fn type_meta(name: &str) -> Value {
    json!({"description": builtin_description(name), "type": "string"})
}

/// What the definitions of built-in kinds say about a field that every object has. Clients compare it.
fn builtin_description(name: &str) -> &'static str {
    static PROPERTIES: LazyLock<Value> = LazyLock::new(|| {
        let index = definition::find("io.k8s.api.core.v1.ConfigMap");
        index.map(|index| definition::schema(index)["properties"].take()).unwrap_or_default()
    });
    PROPERTIES[name]["description"].as_str().unwrap_or_default()
}

fn add_type_and_metadata(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        *properties = json!({});
    }
    for name in ["apiVersion", "kind"] {
        properties[name] = type_meta(name);
    }
    properties["metadata"] = json!({"description": builtin_description("metadata"), "$ref": OBJECT_META});
}

/// Objects inside of objects have type and metadata too.
fn add_to_embedded(schema: &mut Map<String, Value>, for_swagger: bool) {
    for below in children(schema) {
        let keeps_unknown = keeps_unknown(below);
        let Value::Object(below) = below else { continue };
        add_to_embedded(below, for_swagger);
        let is_embedded = below.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        if is_embedded && !(for_swagger && keeps_unknown) {
            add_type_and_metadata(below);
        }
    }
}

/// Takes away what Swagger 2, or a client that reads it, does not understand.
fn reduce(schema: &mut Map<String, Value>) {
    for keyword in ["allOf", "oneOf", "anyOf", "not"] {
        schema.remove(keyword);
    }
    let nullable: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, property)| property["nullable"] == true)
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| {
            name.as_str().is_none_or(|name| !nullable.iter().any(|nullable| nullable == name))
        });
    }
    let is_nullable = schema.remove("nullable") == Some(Value::Bool(true));
    let is_open = keeps_unknown_field(schema);
    if is_nullable || is_open {
        schema.remove("items");
        schema.remove("properties");
    }
    let is_untyped = is_nullable
        || is_open && schema.get("type") == Some(&json!("object"))
        || schema.get("type") == Some(&json!("array")) && !schema.contains_key("items");
    if is_untyped {
        schema.remove("type");
    }
    for below in children(schema) {
        if let Value::Object(below) = below {
            reduce(below);
        }
    }
}

fn children(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    schema.iter_mut().flat_map(|(keyword, value)| -> Vec<&mut Value> {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().collect(),
            ("items" | "additionalProperties", inner) => vec![inner],
            _ => Vec::new(),
        }
    })
}

fn keeps_unknown(schema: &Value) -> bool {
    schema.as_object().is_some_and(keeps_unknown_field)
}

fn keeps_unknown_field(schema: &Map<String, Value>) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}
