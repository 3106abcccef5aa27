//! The second form of a definition: one line a field, made for reading objects instead of for telling clients.
//!
//! A line is `name shape go-type flags [=default]`. A shape is one letter, or a letter and the shape inside:
//! `s`tring, `i`nt32, `l`ong (int64), `b`oolean, `f`loat, b`y`tes, `q`uantity, int-or-string `x`, `t`ime, `m`icro time,
//! `a`nything, `[`list, `{`map, `#N;` the definition with the index N. A `-` stands for no flags or no type name.

use crate::facts::Facts;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(crate) fn record(
    name: &str,
    definition: &Value,
    all: &BTreeMap<String, Value>,
    facts: &Facts,
) -> Result<String, String> {
    let mut lines = String::new();
    let Some(properties) = definition["properties"].as_object() else { return Ok(lines) };
    for (field, schema) in properties {
        let facts_of_field = facts.of(name, field);
        let has = |fact: &str| facts_of_field.iter().any(|known| known == fact);
        let flags: String = [("pointer", 'p'), ("always", 'a'), ("null", 'n'), ("value", 'v')]
            .into_iter()
            .filter_map(|(fact, letter)| has(fact).then_some(letter))
            .collect();
        let flags = if flags.is_empty() { "-" } else { &flags };
        let go_type = facts_of_field.iter().find_map(|fact| fact.strip_prefix("type=")).unwrap_or("-");
        let shape = shape(schema, all).map_err(|problem| format!("{name}.{field}: {problem}"))?;
        let default = facts.filling(name, field).map(|default| format!(" ={default}")).unwrap_or_default();
        writeln!(lines, "{field} {shape} {go_type} {flags}{default}").map_err(|error| error.to_string())?;
    }
    Ok(lines)
}

fn shape(schema: &Value, all: &BTreeMap<String, Value>) -> Result<String, String> {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference_shape(reference.rsplit('/').next().unwrap_or_default(), all);
    }
    let letter = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("byte")) => "y",
        (Some("string"), _) => "s",
        (Some("integer"), Some("int32")) => "i",
        (Some("integer"), _) => "l",
        (Some("number"), _) => "f",
        (Some("boolean"), _) => "b",
        (Some("array"), _) => return Ok(format!("[{}", shape(&schema["items"], all)?)),
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            return Ok(format!("{{{}", shape(&schema["additionalProperties"], all)?));
        }
        (Some("object"), _) => "a",
        _ => return Err(format!("unreadable schema {schema}")),
    };
    Ok(letter.into())
}

fn reference_shape(name: &str, all: &BTreeMap<String, Value>) -> Result<String, String> {
    let letter = match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => "q",
        "IntOrString" => "x",
        "Time" => "t",
        "MicroTime" => "m",
        "RawExtension"
        | "FieldsV1"
        | "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => "a",
        _ => {
            let index = all.keys().position(|known| known == name);
            return index.map(|index| format!("#{index};")).ok_or_else(|| format!("{name} is not there"));
        }
    };
    Ok(letter.into())
}
