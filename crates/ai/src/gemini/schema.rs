//! Schemas: the vendor has a form of its own beside JSON Schema, with types in capitals.

use serde_json::Value;

/// A schema of the vendor's form as JSON Schema.
pub(super) fn to_json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let convert = |(key, value): (&String, &Value)| {
                let value = match (key.as_str(), value) {
                    ("type", Value::String(name)) => name.to_ascii_lowercase().into(),
                    // Names of properties are not keywords.
                    ("properties", Value::Object(properties)) => properties
                        .iter()
                        .map(|(name, schema)| (name.clone(), to_json_schema(schema)))
                        .collect(),
                    ("enum" | "required" | "default" | "example", value) => value.clone(),
                    (_, value) => to_json_schema(value),
                };
                let key = match key.as_str() {
                    "anyOf" | "any_of" => "anyOf",
                    "minItems" | "min_items" => "minItems",
                    "maxItems" | "max_items" => "maxItems",
                    "propertyOrdering" | "property_ordering" => return None,
                    key => key,
                };
                Some((key.to_owned(), value))
            };
            fields.iter().filter_map(convert).collect()
        }
        Value::Array(items) => items.iter().map(to_json_schema).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_become_small_and_names_stay() {
        let schema = json!({
            "type": "OBJECT",
            "properties": {"type": {"type": "STRING", "enum": ["A"]}, "list": {"type": "ARRAY", "items": {"type": "INTEGER"}}},
            "required": ["type"], "propertyOrdering": ["type"],
        });
        let expected = json!({
            "type": "object",
            "properties": {"type": {"type": "string", "enum": ["A"]}, "list": {"type": "array", "items": {"type": "integer"}}},
            "required": ["type"],
        });
        assert_eq!(to_json_schema(&schema), expected);
    }
}
