//! Writes what the crate knows about the types of the built-in kinds into the output folder: their schemas, as
//! `k8s-openapi` describes them, completed by the facts in `data/`.

#[path = "build/facts.rs"]
mod facts;
#[path = "build/records.rs"]
mod records;
#[path = "build/roots.rs"]
mod roots;

use facts::Facts;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["build.rs", "build", "data"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let mut facts = Facts::read(&fs::read_to_string("data/fields.txt")?)?;
    facts.add_defaults(&fs::read_to_string("data/defaults.txt")?)?;
    let mut definitions = roots::definitions();
    for (name, definition) in &mut definitions {
        annotate(definition, name, &facts);
    }
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    let (mut index, mut schemas, mut all_records) = (String::new(), String::new(), String::new());
    for (name, definition) in &definitions {
        let schema = definition.to_string();
        let record = records::record(name, definition, &definitions, &facts)?;
        let (schema_end, record_end) = (schemas.len() + schema.len(), all_records.len() + record.len());
        writeln!(
            index,
            "Entry {{ name: {name:?}, schema: {}..{schema_end}, record: {}..{record_end} }},",
            schemas.len(),
            all_records.len()
        )?;
        schemas.push_str(&schema);
        all_records.push_str(&record);
    }
    let count = definitions.len();
    fs::write(folder.join("definitions.rs"), format!("static INDEX: [Entry; {count}] = [\n{index}];\n"))?;
    fs::write(folder.join("definitions.json"), schemas)?;
    fs::write(folder.join("records.txt"), all_records)?;
    Ok(())
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
