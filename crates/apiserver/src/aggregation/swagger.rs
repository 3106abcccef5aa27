//! What is taken of the Swagger document of another server: what it says about its group and version.

use serde_json::{Map, Value, json};

use super::taken;

/// The paths of a group and version in a document, and the definitions that they need. Everything else in it is its server's own.
pub(super) fn only(mut document: Value, api_version: &str) -> Value {
    let mut field = |name: &str| match taken(&mut document, name) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let (mut paths, mut definitions, parameters) =
        (field("paths"), field("definitions"), field("parameters"));
    let root = format!("/apis/{api_version}");
    paths.retain(|path, item| {
        item.is_object()
            && path.strip_prefix(&root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    for item in paths.values_mut() {
        spell_out(item, &parameters);
    }
    let (mut open, mut needed) = (Vec::new(), Map::new());
    paths.values().for_each(|item| refer(item, &mut open));
    while let Some(name) = open.pop() {
        if let Some(definition) = definitions.remove(&name) {
            refer(&definition, &mut open);
            needed.insert(name, definition);
        }
    }
    json!({"paths": paths, "definitions": needed})
}

/// Replaces references to the parameters that operations share by these parameters.
fn spell_out(item: &mut Value, parameters: &Map<String, Value>) {
    let Some(fields) = item.as_object_mut() else { return };
    for (name, value) in fields {
        match value {
            Value::Array(list) if name == "parameters" => {
                for parameter in list {
                    let shared =
                        parameter["$ref"].as_str().and_then(|name| name.strip_prefix("#/parameters/"));
                    if let Some(shared) = shared.and_then(|name| parameters.get(name)) {
                        *parameter = shared.clone();
                    }
                }
            }
            // An operation.
            Value::Object(_) => {
                if let Some(Value::Array(_)) = value.get("parameters") {
                    spell_out(value, parameters);
                }
            }
            _ => {}
        }
    }
}

/// Collects the definitions that are referred to. The depth is that of a document that was decoded, which is bounded.
fn refer(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            found.extend(name.and_then(|name| name.strip_prefix("#/definitions/")).map(str::to_owned));
            fields.values().for_each(|field| refer(field, found));
        }
        Value::Array(list) => list.iter().for_each(|value| refer(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_document_the_group_is_taken_with_what_it_needs() {
        let of = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
        let get = |name: &str| {
            json!({"get": {
                "parameters": [{"$ref": "#/parameters/pretty"}, {"$ref": "#/parameters/unknown"}, {"name": "own"}],
                "responses": {"200": {"schema": of(name)}},
            }})
        };
        let document = json!({
            "swagger": "2.0",
            "paths": {
                "/apis/metrics.k8s.io/v1beta1/nodes": get("List"),
                "/apis/metrics.k8s.io/v1beta12/nodes": get("Other"),
                "/api/v1/secrets": get("Secret"),
                "/apis/metrics.k8s.io/v1beta1/wrong": "text",
            },
            "parameters": {"pretty": {"name": "pretty", "in": "query"}},
            "definitions": {
                "List": {"properties": {"items": {"items": of("Item")}, "again": of("List")}},
                "Item": {"properties": {"meta": of("Missing")}},
                "Other": {}, "Secret": {},
            },
        });
        let taken = only(document, "metrics.k8s.io/v1beta1");
        let names = |field: &str| taken[field].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names("paths"), ["/apis/metrics.k8s.io/v1beta1/nodes"]);
        let mut definitions = names("definitions");
        definitions.sort();
        assert_eq!(definitions, ["Item", "List"]);
        assert_eq!(
            taken["paths"]["/apis/metrics.k8s.io/v1beta1/nodes"]["get"]["parameters"],
            json!([{"name": "pretty", "in": "query"}, {"$ref": "#/parameters/unknown"}, {"name": "own"}])
        );
        for nonsense in [Value::Null, json!([]), json!({"paths": [], "definitions": "x"})] {
            assert_eq!(only(nonsense, "a/v1"), json!({"paths": {}, "definitions": {}}));
        }
    }
}
