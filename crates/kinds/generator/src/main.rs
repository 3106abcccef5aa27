//! Writes what `watchkeeper-kinds` knows about the types of the built-in kinds into its `src/generated`: their schemas, as
//! `k8s-openapi` describes them, completed by the facts in `data/`. `make generated` runs it, after a change to `data/` or
//! another version of Kubernetes; `make test` runs its test, which fails where that was forgotten.

mod facts;
mod records;
mod roots;

use facts::Facts;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    for (path, text) in Generated::read()?.files() {
        fs::write(path, text)?;
    }
    Ok(())
}

fn kinds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut facts = Facts::read(&fs::read_to_string(kinds().join("data/fields.txt"))?)?;
        facts.add_defaults(&fs::read_to_string(kinds().join("data/defaults.txt"))?)?;
        let mut definitions = roots::definitions();
        for (name, definition) in &mut definitions {
            annotate(definition, name, &facts);
        }
        let (mut index, mut schemas, mut records) = (String::from("[\n"), String::new(), String::new());
        for (name, definition) in &definitions {
            let schema = definition.to_string();
            let record = records::record(name, definition, &definitions, &facts)?;
            writeln!(index, "    ({name:?}, {}, {}),", schema.len(), record.len())?;
            writeln!(schemas, "{schema}")?;
            records.push_str(&record);
        }
        index.push_str("]\n");
        Ok(Self { index, schemas, records })
    }

    fn files(self) -> [(PathBuf, String); 3] {
        let folder = kinds().join("src/generated");
        [("index.rs", self.index), ("schemas.jsonl", self.schemas), ("records.txt", self.records)]
            .map(|(name, text)| (folder.join(name), text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_in_is_what_the_types_and_the_facts_say() {
        for (path, made) in Generated::read().unwrap().files() {
            let checked_in = fs::read_to_string(&path).unwrap_or_default();
            let line = checked_in.lines().zip(made.lines()).take_while(|(old, new)| old == new).count() + 1;
            let path = path.display();
            assert!(checked_in == made, "{path} is out of date from line {line} on: run `make generated`");
        }
    }
}
