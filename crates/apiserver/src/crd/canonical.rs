//! When two definitions say the same: what is missing and what is empty mean the same in most places.

use super::field::get;
use serde_json::{Map, Value};

/// Fields where `""`, `false` and `0` say something else than nothing.
const MEANINGFUL: [&str; 23] = [
    "additionalItems",
    "additionalProperties",
    "deprecationWarning",
    "labelSelectorPath",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "optionalOldSelf",
    "path",
    "port",
    "reason",
    "rule",
    "$ref",
    "url",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
];

/// The spec of a definition without what says nothing.
pub(super) fn canonical_spec(definition: &Value) -> Value {
    canonical(get(definition, "spec").unwrap_or(&Value::Null))
}

/// Any part of a spec without what says nothing.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().filter_map(|(name, value)| field(name, value)).collect())
        }
        other => other.clone(),
    }
}

fn field(name: &str, value: &Value) -> Option<(String, Value)> {
    let value = match name {
        // What an author gives as an example of an object is not ours to tidy up.
        "default" | "enum" | "example" => value.clone(),
        // The names in here are those of fields, not of keywords.
        "properties" | "patternProperties" | "definitions" | "dependencies" => {
            let fields = value.as_object().into_iter().flatten();
            let fields: Map<String, Value> =
                fields.map(|(name, value)| (name.clone(), canonical(value))).collect();
            if fields.is_empty() {
                return None;
            }
            Value::Object(fields)
        }
        _ => canonical(value),
    };
    let says_nothing = match &value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
        _ if MEANINGFUL.contains(&name) || name == "default" || name == "example" => false,
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
    };
    (!says_nothing).then(|| (name.into(), value))
}
