//! OpenAPI 3.0.

use super::operations::{Operation, Parameter, Path, paths};
use super::resource::resources;
use super::{CustomKind, published};
use serde_json::{Map, Value, json};

const TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

pub(super) fn document(group: &str, version: &str, release: &str, custom: &[CustomKind<'_>]) -> Vec<u8> {
    let custom: Vec<CustomKind<'_>> =
        custom.iter().filter(|kind| kind.group == group && kind.version == version).cloned().collect();
    let mut resources = resources(&custom);
    resources.retain(|resource| resource.group == group && resource.version == version);
    let mut out = Vec::new();
    let head = json!({"title": "Kubernetes", "version": release});
    out.extend_from_slice(format!("{{\"openapi\":\"3.0.0\",\"info\":{head},\"paths\":{{").as_bytes());
    let mut is_first = true;
    if let Some(first) = resources.first().filter(|first| !first.is_custom) {
        entry(&mut out, &format!("{}/", first.root()), &listing(first), &mut is_first);
    }
    for path in resources.iter().flat_map(paths) {
        entry(&mut out, &path.path, &path_item(&path), &mut is_first);
    }
    let security = json!({"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "A bearer token."}});
    out.extend_from_slice(
        format!("}},\"components\":{{\"securitySchemes\":{security},\"schemas\":{{").as_bytes(),
    );
    let mut is_first = true;
    published::each(&resources, &custom, false, |name, schema| {
        entry(&mut out, name, &schema_of(name, schema), &mut is_first);
    });
    out.extend_from_slice(b"}}}");
    out
}

/// What is at the root of a version: the list of its resources.
fn listing(resource: &super::resource::Resource) -> Value {
    let answer = json!({"schema": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"}});
    let content: Value = TYPES.iter().map(|kind| ((*kind).to_owned(), answer.clone())).collect();
    json!({"get": {
        "tags": [resource.tag()], "description": "The resources of this version.", "operationId": format!("get_{}_APIResources", resource.tag()),
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
    }})
}

/// Writes one field of an object.
pub(super) fn entry(out: &mut Vec<u8>, name: &str, value: &Value, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
    out.extend_from_slice(format!("{}:{value}", Value::from(name)).as_bytes());
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
        "name": parameter.name, "in": parameter.place, "description": parameter.description,
        "schema": {"type": parameter.kind, "uniqueItems": true},
    });
    if parameter.place == "path" {
        value["required"] = true.into();
    }
    value
}

fn operation(operation: &Operation) -> Value {
    let content = |types: &[&str], definition: &str| -> Value {
        let schema = json!({"schema": {"$ref": format!("#/components/schemas/{definition}")}});
        types.iter().map(|kind| ((*kind).to_owned(), schema.clone())).collect()
    };
    let mut responses = Map::new();
    for code in operation.codes {
        let description = if *code == "200" {
            "OK"
        } else if *code == "201" {
            "Created"
        } else {
            "Accepted"
        };
        let content = content(&TYPES, &operation.answer);
        responses.insert((*code).into(), json!({"description": description, "content": content}));
    }
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let mut value = json!({
        "tags": [operation.tag], "description": operation.description, "operationId": operation.id,
        "parameters": operation.parameters.iter().map(parameter).collect::<Value>(), "responses": responses,
    });
    if let (Some(fields), Value::Object(mut extensions)) = (value.as_object_mut(), operation.extensions()) {
        fields.append(&mut extensions);
        if let Some(body) = &operation.body {
            fields.insert("requestBody".into(), json!({"content": content(&operation.body_types, body)}));
        }
    }
    value
}

/// A definition as OpenAPI 3 has it: references stand alone, and a type can be one of several.
fn schema_of(name: &str, schema: Value) -> Value {
    let description = schema["description"].clone();
    match name {
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => json!({
            "description": description, "format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}],
        }),
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
            json!({"description": description, "oneOf": [{"type": "string"}, {"type": "number"}]})
        }
        _ if name
            .rsplit('.')
            .next()
            .is_some_and(|kind| kind.starts_with("JSONSchemaPropsOr") || kind == "JSON") =>
        {
            json!({"description": description})
        }
        _ => convert(schema),
    }
}

fn convert(schema: Value) -> Value {
    let Value::Object(fields) = schema else { return schema };
    let mut converted: Map<String, Value> = Map::new();
    for (keyword, value) in fields {
        let value = match (keyword.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                Value::String(reference.replace("#/definitions/", "#/components/schemas/"))
            }
            ("properties", Value::Object(properties)) => {
                properties.into_iter().map(|(name, property)| (name, convert(property))).collect()
            }
            ("items" | "additionalProperties" | "not", inner) => convert(inner),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                branches.into_iter().map(convert).collect()
            }
            (_, value) => value,
        };
        converted.insert(keyword, value);
    }
    if converted.len() > 1
        && let Some(reference) = converted.remove("$ref")
    {
        converted.insert("allOf".into(), json!([{"$ref": reference}]));
    }
    Value::Object(converted)
}
