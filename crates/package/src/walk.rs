//! Walks over the fields of a schema.

use serde_json::Value;

/// A field of a schema, where it is, and whether an object has to have it.
pub(crate) struct Field<'a> {
    /// As Kubernetes writes it: `spec.ports[].name`, `spec.env{}`.
    pub(crate) path: String,
    pub(crate) schema: &'a Value,
    pub(crate) required: bool,
}

/// Visits all fields below a schema, each before those in it, sorted by name.
pub(crate) fn fields(schema: &Value) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    below(schema, "", &mut found);
    found
}

fn below<'a>(schema: &'a Value, path: &str, found: &mut Vec<Field<'a>>) {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.push(Field { path: path.clone(), schema, required: is_required(name) });
        below(schema, &path, found);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        inner(items, format!("{path}[]"), found);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        inner(values, format!("{path}{{}}"), found);
    }
}

fn inner<'a>(schema: &'a Value, path: String, found: &mut Vec<Field<'a>>) {
    found.push(Field { path: path.clone(), schema, required: false });
    below(schema, &path, found);
}

/// The fields of a path in Rust: `spec.maxSize` is `spec.max_size`.
pub(crate) fn rust(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    let mut before = '.';
    for char in path.chars() {
        if char.is_ascii_uppercase() {
            if before.is_ascii_lowercase() || before.is_ascii_digit() {
                name.push('_');
            }
            name.push(char.to_ascii_lowercase());
        } else {
            name.push(char);
        }
        before = char;
    }
    name
}
