//! The values of the chart: the text for users, and the schema that Helm checks them with.

use serde_json::{Value, json};
use watchkeeper_schema::yaml;

/// Settings that are handed on to Kubernetes as they are, or have keys of the user's own.
const OPEN: [&str; 5] =
    ["resources", "podSecurityContext", "securityContext", "affinity", "dashboards.labels"];

/// The defaults as a file in which nothing is set: each line is there to be taken out of its comment.
pub(crate) fn commented(values: &str) -> String {
    let mut text = "# Yours: written once by `watchkeeper generate`, and never again. What is set here is laid over the defaults, which are below;\n# values.schema.json says what there is in newer versions of the chart.\n\n".to_owned();
    for line in values.lines() {
        match line.trim_start().strip_prefix("# ") {
            Some(words) => text.push_str(&format!("## {words}\n")),
            None => text.push_str(&format!("# {line}\n")),
        }
    }
    text
}

/// The schema of values, from their defaults: a type is that of the default, and a setting that has none is a mistake.
pub(crate) fn schema(values: &str) -> Value {
    let defaults = yaml::decode(values.as_bytes()).map(|decoded| decoded.value).unwrap_or_default();
    let mut schema = of(&defaults, "");
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    // Helm hands these to all charts of a release.
    schema["properties"]["global"] = json!({"type": "object"});
    let fields = &mut schema["properties"];
    fields["replicas"]["minimum"] = json!(0);
    // What keeps something has its volume to itself.
    if fields.get("persistence").is_some() {
        fields["replicas"]["maximum"] = json!(1);
    }
    if fields.get("watchNamespaces").is_some() {
        let namespace = json!({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"});
        fields["watchNamespaces"]["items"] = namespace;
    }
    if fields.get("service").is_some() {
        fields["service"]["properties"]["type"]["enum"] = json!(["ClusterIP", "NodePort", "LoadBalancer"]);
    }
    fields["terminationGracePeriodSeconds"]["minimum"] = json!(0);
    fields["image"]["properties"]["pullPolicy"]["enum"] = json!(["Always", "IfNotPresent", "Never"]);
    fields["image"]["properties"]["digest"]["pattern"] = json!("^(sha256:[a-f0-9]{64})?$");
    fields["image"]["properties"]["repository"]["minLength"] = json!(1);
    fields["podDisruptionBudget"]["properties"]["maxUnavailable"] = json!({"oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[1-9][0-9]?%$"}]});
    if fields.get("metrics").is_some() {
        let port = &mut fields["metrics"]["properties"]["port"];
        port["minimum"] = json!(1);
        port["maximum"] = json!(65535);
    }
    schema
}

fn of(value: &Value, path: &str) -> Value {
    match value {
        Value::Object(fields) if fields.is_empty() || OPEN.contains(&path) => json!({"type": "object"}),
        Value::Object(fields) => {
            let inside =
                |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let properties: serde_json::Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), of(value, &inside(name)))).collect();
            json!({"type": "object", "properties": properties, "additionalProperties": false})
        }
        Value::Array(_) => json!({"type": "array"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Null => json!({}),
    }
}
