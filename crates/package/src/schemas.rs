//! JSON Schemas of the kinds, for editors and kubeconform.

use serde_json::{Value, json};

use crate::Renderer;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "schemas",
    about: "a JSON Schema for each kind and version, for editors and kubeconform",
    owns: &["schemas/"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    for definition in &operator.definitions {
        for version in definition.versions() {
            let Some(schema) = version.schema() else { continue };
            let mut schema = closed(schema);
            schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
            schema["title"] = json!(definition.kind);
            let api_version = format!("{}/{}", definition.group, version.name);
            schema["properties"]["apiVersion"] = json!({"type": "string", "enum": [api_version]});
            schema["properties"]["kind"] = json!({"type": "string", "enum": [definition.kind]});
            schema["properties"]["metadata"] = json!({"type": "object"});
            // As kubeconform looks for it: {{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json
            let kind = definition.kind.to_lowercase();
            files.push(File::json(
                format!("schemas/{}/{kind}_{}.json", definition.group, version.name),
                &schema,
            ));
        }
    }
    Ok(files)
}

/// The same in the words of JSON Schema: fields that are not known are refused, and what may be null says so.
fn closed(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut closed = serde_json::Map::new();
    for (key, value) in fields {
        match key.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.map(|(name, schema)| (name.clone(), self::closed(schema)));
                closed.insert(key.clone(), Value::Object(fields.collect()));
            }
            "items" | "additionalProperties" | "not" => {
                closed.insert(key.clone(), self::closed(value));
            }
            "allOf" | "anyOf" | "oneOf" => {
                // These only add conditions, and may not close what the schema around them opens.
                closed.insert(key.clone(), value.clone());
            }
            "nullable" => {}
            _ if key.starts_with("x-kubernetes-") => {}
            _ => {
                closed.insert(key.clone(), value.clone());
            }
        }
    }
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    if flag("x-kubernetes-int-or-string") {
        closed.remove("type");
        closed.insert("oneOf".into(), json!([{"type": "string"}, {"type": "integer"}]));
        closed.remove("anyOf");
    }
    let is_open = flag("x-kubernetes-preserve-unknown-fields") || flag("x-kubernetes-embedded-resource");
    if closed.contains_key("properties") && !closed.contains_key("additionalProperties") && !is_open {
        closed.insert("additionalProperties".into(), json!(false));
    }
    if flag("nullable")
        && let Some(of) = closed.get("type").cloned()
    {
        closed.insert("type".into(), json!([of, "null"]));
        if let Some(values) = closed.get_mut("enum").and_then(Value::as_array_mut)
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    Value::Object(closed)
}
