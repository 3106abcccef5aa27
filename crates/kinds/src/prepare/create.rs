use super::{object, qos};
use crate::Kind;
use crate::alias::TEMPLATE_GENERATION;
use serde_json::{Map, Value, json};

pub(super) fn prepare(kind: &Kind, fields: &mut Map<String, Value>) {
    if kind.generation {
        object(fields, "metadata").insert("generation".into(), json!(1));
    }
    // A node reports itself: its status is part of what it creates.
    if kind.has_status()
        && kind.kind != "Node"
        && let Some(status) = kind.empty_status()
    {
        fields.insert("status".into(), status);
    }
    match kind.kind {
        "Pod" => pod(fields),
        "Namespace" => namespace(fields),
        "PersistentVolume" => persistent_volume(fields),
        "PersistentVolumeClaim" => {
            object(fields, "status").insert("phase".into(), "Pending".into());
        }
        "DaemonSet" => {
            let annotations = object(object(fields, "metadata"), "annotations");
            let counted = annotations.get(TEMPLATE_GENERATION).and_then(Value::as_str);
            if counted.and_then(|count| count.parse().ok()).is_none_or(|count: i64| count < 1) {
                annotations.insert(TEMPLATE_GENERATION.into(), "1".into());
            }
        }
        "Job" => job(fields),
        "Service" => super::update::no_internal_traffic(object(fields, "spec")),
        "CustomResourceDefinition" => custom_resource_definition(fields),
        "APIService" => api_service(fields),
        "EndpointSlice" => endpoint_slice(fields),
        _ => {}
    }
}

fn pod(fields: &mut Map<String, Value>) {
    let class = qos::class(fields.get("spec").unwrap_or(&Value::Null));
    let gates = fields.get("spec").and_then(|spec| spec["schedulingGates"].as_array());
    let is_gated = gates.is_some_and(|gates| !gates.is_empty());
    let created = fields.get("metadata").map(|metadata| metadata["creationTimestamp"].clone());
    let status = object(fields, "status");
    status.insert("phase".into(), "Pending".into());
    status.insert("qosClass".into(), class.into());
    if is_gated {
        status.insert(
            "conditions".into(),
            json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
                "lastTransitionTime": created, "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]),
        );
    }
}

fn namespace(fields: &mut Map<String, Value>) {
    fields.insert("status".into(), json!({"phase": "Active"}));
    let finalizers = object(fields, "spec").entry("finalizers").or_insert(Value::Null);
    match finalizers {
        Value::Array(finalizers) if finalizers.iter().any(|finalizer| finalizer == "kubernetes") => {}
        Value::Array(finalizers) => finalizers.push("kubernetes".into()),
        none => *none = json!(["kubernetes"]),
    }
}

fn persistent_volume(fields: &mut Map<String, Value>) {
    let created = fields.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")).cloned();
    let status = object(fields, "status");
    status.insert("phase".into(), "Pending".into());
    if let Some(created) = created {
        status.insert("lastPhaseTransitionTime".into(), created);
    }
}

/// Unless the user takes care of it, the pods of a job are found by its uid.
fn job(fields: &mut Map<String, Value>) {
    let metadata = object(fields, "metadata");
    let [name, uid] = ["name", "uid"].map(|field| metadata.get(field).cloned().unwrap_or_else(|| "".into()));
    let spec = object(fields, "spec");
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = object(object(object(spec, "template"), "metadata"), "labels");
    let before = Value::Object(labels.clone());
    for (label, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        labels.entry(label).or_insert_with(|| value.clone());
    }
    let labels = Value::Object(labels.clone());
    let selected = object(object(spec, "selector"), "matchLabels");
    selected.entry("batch.kubernetes.io/controller-uid").or_insert(uid);
    // Labels that were taken over from the template are one with it, so they get these too.
    let metadata = object(fields, "metadata");
    if metadata.get("labels").is_none_or(|own| *own == before) {
        metadata.insert("labels".into(), labels);
    }
}

/// What an older version said of where an endpoint is.
fn endpoint_slice(fields: &mut Map<String, Value>) {
    let endpoints = fields.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

/// What this server serves itself is available at once.
fn api_service(fields: &mut Map<String, Value>) {
    let created = fields.get("metadata").map(|metadata| metadata["creationTimestamp"].clone());
    if fields.get("spec").is_none_or(|spec| spec["service"].is_null()) {
        let condition = json!({
            "type": "Available", "status": "True", "reason": "Local", "lastTransitionTime": created,
            "message": "Local APIServices are always available",
        });
        object(fields, "status").insert("conditions".into(), json!([condition]));
    }
}

/// The version that is stored is one of the stored versions.
pub(super) fn custom_resource_definition(fields: &mut Map<String, Value>) {
    let versions = fields.get("spec").and_then(|spec| spec["versions"].as_array());
    let stored = versions.and_then(|versions| versions.iter().find(|version| version["storage"] == true));
    let Some(name) = stored.map(|version| version["name"].clone()) else { return };
    let versions = object(fields, "status").entry("storedVersions").or_insert(Value::Null);
    match versions {
        Value::Array(versions) if versions.contains(&name) => {}
        Value::Array(versions) => versions.push(name),
        none => *none = json!([name]),
    }
}
