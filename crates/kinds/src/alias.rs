//! Fields that have two names, or two forms.

use serde_json::{Map, Value, json};
use watchkeeper_go::base64;

/// How often the template of a daemon set has changed.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Makes the forms of an object that has just been read agree.
pub(crate) fn unify(definition: &str, fields: &mut Map<String, Value>) {
    match definition {
        "io.k8s.api.core.v1.Secret" => string_data(fields),
        "io.k8s.api.core.v1.Pod" => pod_ips(fields),
        "io.k8s.api.core.v1.Node" => pod_blocks(fields),
        "io.k8s.api.apps.v1.DaemonSet" => template_generation(fields),
        _ => {}
    }
}

/// `stringData` is a way to write `data`; it is never read.
fn string_data(fields: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(data) = data {
        for (key, text) in texts {
            data.insert(key, base64::encode(text.as_str().unwrap_or_default().as_bytes()).into());
        }
    }
}

/// The old name of the service account is kept for old readers. A pod has at least a second to end in, if it has any.
pub(crate) fn pod_spec(spec: &mut Map<String, Value>) {
    let seconds = spec.get_mut("terminationGracePeriodSeconds");
    if let Some(seconds) = seconds.filter(|seconds| seconds.as_i64().is_some_and(|seconds| seconds < 0)) {
        *seconds = 1.into();
    }
    let name = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned();
    if let Some(name) = name {
        spec.insert("serviceAccountName".into(), name.clone());
        spec.insert("serviceAccount".into(), name);
    }
}

/// The first of the addresses of a pod is its address.
fn pod_ips(fields: &mut Map<String, Value>) {
    let Some(Value::Object(status)) = fields.get_mut("status") else { return };
    let first = status.get("podIPs").and_then(|all| all.get(0)).map(|first| first["ip"].clone());
    match (first, status.get("podIP").cloned()) {
        (Some(first), None) => {
            status.insert("podIP".into(), first);
        }
        (None, Some(address)) => {
            status.insert("podIPs".into(), json!([{"ip": address}]));
        }
        _ => {}
    }
}

/// The first of the blocks of addresses for the pods of a node is its block.
fn pod_blocks(fields: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = fields.get_mut("spec") else { return };
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    match (first, spec.get("podCIDR").cloned()) {
        (Some(first), None) => {
            spec.insert("podCIDR".into(), first);
        }
        (None, Some(block)) => {
            spec.insert("podCIDRs".into(), json!([block]));
        }
        _ => {}
    }
}

/// A field that is gone, of which an annotation is left: how often the template of a daemon set has changed.
fn template_generation(fields: &mut Map<String, Value>) {
    let Some(Value::Object(metadata)) = fields.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(annotations) = annotations {
        annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
    }
}
