//! What kube-apiserver's admission plugins add to objects of built-in kinds.

use serde_json::{Map, Value, json};

use crate::meta;
use crate::resource::Resource;
use crate::write::Part;

/// How long a pod stays on a node that is in trouble, in seconds.
const TOLERATION: i64 = 300;

/// Completes a new object.
pub(crate) fn admit_new(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => admit_pod(object),
        ("", "persistentvolumeclaims") => protect(object, "kubernetes.io/pvc-protection"),
        ("", "persistentvolumes") => protect(object, "kubernetes.io/pv-protection"),
        ("storage.k8s.io", "volumeattributesclasses") => protect(object, "kubernetes.io/vac-protection"),
        ("", "nodes") => taint(object),
        _ => {}
    }
}

/// Completes the successor of an object: what it was given when it was new stays, though the writer does not mention it.
pub(crate) fn admit_update(resource: &Resource, part: Part, new: &mut Value, old: &Value) {
    if !resource.is_core("pods") || part != Part::Main {
        return;
    }
    let Some(Value::Object(spec)) = new.get_mut("spec") else { return };
    for field in ["priority", "preemptionPolicy"] {
        if let Some(known) = old["spec"].get(field) {
            spec.entry(field).or_insert_with(|| known.clone());
        }
    }
    tolerate_trouble(spec);
}

/// Priority, and tolerations for nodes that are in trouble.
fn admit_pod(pod: &mut Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    spec.entry("priority").or_insert(json!(0));
    spec.entry("preemptionPolicy").or_insert(json!("PreemptLowerPriority"));
    tolerate_trouble(spec);
}

/// Adds tolerations for nodes that are in trouble.
fn tolerate_trouble(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert(json!([]));
    let Value::Array(tolerations) = tolerations else { return };
    for trouble in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |toleration: &Value| {
            let any_key = matches!(toleration["key"].as_str(), None | Some(""));
            let any_effect = matches!(toleration["effect"].as_str(), None | Some("" | "NoExecute"));
            any_effect && (any_key || toleration["key"] == trouble)
        };
        if !tolerations.iter().any(tolerates) {
            tolerations.push(json!({
                "key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION,
            }));
        }
    }
}

/// Nothing that is in use is deleted.
fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set_finalizers(object, finalizers);
    }
}

/// A new node is not ready.
fn taint(node: &mut Value) {
    let spec = meta::fields(node).entry("spec").or_insert(json!({}));
    let taints = meta::fields(spec).entry("taints").or_insert(json!([]));
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    if let Value::Array(taints) = taints
        && !taints
            .iter()
            .any(|taint| taint["key"] == not_ready["key"] && taint["effect"] == not_ready["effect"])
    {
        taints.push(not_ready);
    }
}
