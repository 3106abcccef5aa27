//! Definitions with every reference followed.

use crate::{Kind, builtin, definition};
use serde_json::{Map, Value};
use std::sync::OnceLock;
use watchkeeper_schema::Schema;

static DEFINITIONS: [OnceLock<Value>; builtin::COUNT] = [const { OnceLock::new() }; builtin::COUNT];
static SCHEMAS: [OnceLock<Schema>; builtin::COUNT] = [const { OnceLock::new() }; builtin::COUNT];

pub(crate) fn definition(kind: &Kind) -> &'static Value {
    DEFINITIONS[builtin::place(kind)].get_or_init(|| resolve_name(&kind.definition_name(), &mut Vec::new()))
}

pub(crate) fn schema(kind: &Kind) -> &'static Schema {
    let read = || Schema::read(definition(kind)).or_else(|_| Schema::read(&Value::Object(Map::new())));
    SCHEMAS[builtin::place(kind)].get_or_init(|| {
        #[allow(clippy::expect_used, reason = "a schema without keywords is readable")]
        read().expect("the empty schema is readable")
    })
}

/// `open` are the definitions this one stands in; one that stands in itself is cut.
fn resolve_name(name: &str, open: &mut Vec<usize>) -> Value {
    let Some(index) = definition::find(name).filter(|index| !open.contains(index)) else {
        return serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
    };
    open.push(index);
    let resolved = resolve(definition::schema(index), open);
    open.pop();
    match name.rsplit('.').next() {
        // Whatever JSON there is.
        Some("RawExtension" | "FieldsV1" | "JSON") => {
            serde_json::json!({"x-kubernetes-preserve-unknown-fields": true})
        }
        Some(or) if or.starts_with("JSONSchemaPropsOr") => {
            serde_json::json!({"x-kubernetes-preserve-unknown-fields": true})
        }
        _ => resolved,
    }
}

fn resolve(schema: Value, open: &mut Vec<usize>) -> Value {
    let Value::Object(mut keywords) = schema else { return schema };
    keywords.remove("description");
    if let Some(Value::String(reference)) = keywords.remove("$ref") {
        let mut resolved = resolve_name(reference.rsplit('/').next().unwrap_or_default(), open);
        if let Value::Object(resolved) = &mut resolved {
            resolved.append(&mut keywords);
        }
        return resolved;
    }
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        for property in properties.values_mut() {
            *property = resolve(property.take(), open);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = keywords.get_mut(keyword) {
            *inner = resolve(inner.take(), open);
        }
    }
    Value::Object(keywords)
}
