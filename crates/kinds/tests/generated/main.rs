//! What the crate knows about the types of the built-in kinds is checked in, in `src/generated`: their schemas, as
//! `k8s-openapi` describes them, completed by the facts in `data/`. This makes it again and compares, so that no build has
//! to. `make generated` writes it instead, after a change to `data/` or another version of `k8s-openapi`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod facts;
mod records;
mod roots;

use facts::Facts;
use serde_json::{Map, Value, json};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[test]
fn what_is_checked_in_is_what_the_types_and_the_facts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = |name: &str| fs::read_to_string(folder.join("data").join(name)).unwrap();
    let generated = Generated::from_facts(&data("fields.txt"), &data("defaults.txt")).unwrap();
    for (name, made) in
        [("index.rs", generated.index), ("schemas.jsonl", generated.schemas), ("records.txt", generated.records)]
    {
        let path = folder.join("src/generated").join(name);
        if env::var_os("WATCHKEEPER_UPDATE").is_some() {
            fs::write(path, made).unwrap();
            continue;
        }
        let checked_in = fs::read_to_string(&path).unwrap_or_default();
        let differs = checked_in.lines().zip(made.lines()).position(|(old, new)| old != new);
        assert!(
            checked_in == made,
            "{} is out of date from line {} on: run `make generated`",
            path.display(),
            differs.unwrap_or_else(|| checked_in.lines().count().min(made.lines().count())) + 1
        );
    }
}

/// The files of `src/generated`.
struct Generated {
    /// The name of each definition, in order, and the lengths of its schema and its record.
    index: String,
    /// One schema a line.
    schemas: String,
    /// One field a line; see [`records`].
    records: String,
}

impl Generated {
    fn from_facts(fields: &str, defaults: &str) -> Result<Self, String> {
        let mut facts = Facts::read(fields)?;
        facts.add_defaults(defaults)?;
        let mut definitions = roots::definitions();
        for (name, definition) in &mut definitions {
            annotate(definition, name, &facts);
        }
        let (mut index, mut schemas, mut records) = (String::from("[\n"), String::new(), String::new());
        for (name, definition) in &definitions {
            let schema = definition.to_string();
            let record = records::record(name, definition, &definitions, &facts)?;
            writeln!(index, "    ({name:?}, {}, {}),", schema.len(), record.len()).unwrap();
            writeln!(schemas, "{schema}").unwrap();
            records.push_str(&record);
        }
        index.push_str("]\n");
        Ok(Self { index, schemas, records })
    }
}

/// Adds the facts to a schema in the form of OpenAPI extensions.
fn annotate(definition: &mut Value, name: &str, facts: &Facts) {
    if let Some(schema) = definition.as_object_mut() {
        extend(schema, facts.of(name, "."));
        let is_optional = |field: &str| {
            (field == "metadata" && name != "io.k8s.api.core.v1.Event")
                || facts.of(name, field).iter().any(|fact| fact == "optional")
        };
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|field| !field.as_str().is_some_and(is_optional));
            if required.is_empty() {
                schema.remove("required");
            }
        }
    }
    let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (field, property) in properties {
        if let Some(property) = property.as_object_mut() {
            extend(property, facts.of(name, field));
        }
    }
}

fn extend(schema: &mut Map<String, Value>, facts: &[String]) {
    for fact in facts {
        let Some((fact, value)) = fact.split_once('=') else { continue };
        let (keyword, value) = match fact {
            "merge" => ("x-kubernetes-patch-merge-key", json!(value)),
            "strategy" => ("x-kubernetes-patch-strategy", json!(value)),
            "list" => ("x-kubernetes-list-type", json!(value)),
            "keys" => ("x-kubernetes-list-map-keys", value.split(',').collect()),
            "map" => ("x-kubernetes-map-type", json!(value)),
            "default" => ("default", serde_json::from_str(value).unwrap_or_default()),
            _ => continue,
        };
        schema.insert(keyword.into(), value);
    }
}
