//! Bindings: a Pod is assigned to a node, once.

use serde_json::{Value, json};
use watchkeeper_schema::{FieldError, Path};

use super::{check_name, check_precondition};
use crate::object::meta;
use crate::resource::ObjectRef;
use crate::status_error::{StatusError, Subject};

/// Refuses a Binding that names no node.
pub(super) fn check(binding: &Value) -> Result<(), StatusError> {
    let (at, target) = (Path::root().child("target"), &binding["target"]);
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        errors.push(FieldError::not_supported(&at.child("kind"), text("kind"), ["Node", "<empty>"]));
    }
    if text("name").is_empty() {
        errors.push(FieldError::required(&at.child("name"), ""));
    }
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(StatusError::untyped(one.as_str())),
        several => Err(StatusError::untyped(format!("[{}]", several.join(", ")))),
    }
}

/// Refuses to assign a Pod to a node that is not the one the client means, is on its way out or on a node already.
fn check_pod(target: &ObjectRef, binding: &Value, pod: &Value) -> Result<(), StatusError> {
    check_precondition(target, "UID", meta::uid(binding), meta::uid(pod))?;
    let version = |object| meta::text(object, "resourceVersion");
    check_precondition(target, "ResourceVersion", version(binding), version(pod))?;
    let name = &target.name;
    let conflict = |why: String| {
        let subject = Subject { group: "", name: "pods/binding" };
        Err(StatusError::conflict(subject, name, &why))
    };
    if meta::is_deleting(pod) {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(known) = pod["spec"]["nodeName"].as_str().filter(|known| !known.is_empty()) {
        return conflict(format!("pod {name} is already assigned to node {known:?}"));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

/// The Pod on the node of the Binding, with its labels and annotations. Admission may have completed the Binding to what is none.
pub(super) fn laid_into(
    target: &ObjectRef,
    pod: &Value,
    binding: &Value,
    now: &str,
) -> Result<Value, StatusError> {
    check_name(target, binding, "Binding")?;
    check(binding)?;
    check_pod(target, binding, pod)?;
    let mut object = pod.clone();
    object["spec"]["nodeName"] = binding["target"]["name"].clone();
    meta::fields(&mut object["status"]).remove("nominatedNodeName");
    for field in ["labels", "annotations"] {
        let said = binding["metadata"][field].as_object().into_iter().flatten();
        for (key, value) in said.filter(|(_, value)| value.is_string()) {
            object["metadata"][field][key] = value.clone();
        }
    }
    let scheduled =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    match object["status"]["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(scheduled);
        }
        None => object["status"]["conditions"] = json!([scheduled]),
    }
    Ok(object)
}
