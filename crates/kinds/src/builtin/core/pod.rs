mod quality;
mod table;

use crate::default::{add_missing, child, objects, set, text};
use crate::kind::row::{BINDING, EPHEMERAL_CONTAINERS, EVICTION, RESIZE, STATUS, field, field_at, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{keep, object, same};
use crate::validate::containers::trimmed_image;
use crate::validate::field::{Errors, Field};
use crate::validate::pod;
use crate::{Kind, SelectableField};
use serde_json::{Value, json};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("", "v1", "Pod", "pods", "pod")
    .short(&["po"])
    .in_all()
    .with(&[BINDING, EPHEMERAL_CONTAINERS, EVICTION, RESIZE, STATUS])
    .generation()
    .selectable(SELECTABLE)
    .returns_deleted()
    .unify(unify)
    .default_with(default)
    .type_defaults(&[
        ("Container", default_container),
        ("EphemeralContainer", default_container),
        ("Volume", default_volume),
    ])
    .prepare_create(prepare_create)
    .prepare_update(prepare_update)
    .prepare_status_update(prepare_status_update)
    .status_keeps(&["ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"])
    .validate_with(validate)
    .validate_update(validate_update)
    .grace_period_with(grace_period)
    .warn(warning)
    .table(table::TABLE);

const SELECTABLE: &[SelectableField] = &[
    field("spec.nodeName", ""),
    field("spec.restartPolicy", ""),
    field("spec.schedulerName", ""),
    field("spec.serviceAccountName", ""),
    field("spec.hostNetwork", "false"),
    field("status.phase", ""),
    field("status.podIP", ""),
    field("status.podIPs", ""),
    field("status.nominatedNodeName", ""),
    field_at("spec.host", "spec.nodeName", ""),
];

fn warning(pod: &Value, old: Option<&Value>) -> Option<&'static str> {
    let is_set = !pod["metadata"]["annotations"]["seccomp.security.alpha.kubernetes.io/pod"].is_null()
        && pod["spec"]["securityContext"]["seccompProfile"].is_null();
    (is_set && old.is_none()).then_some(
        "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \"seccompProfile\" field instead",
    )
}

/// The first of the addresses of a pod is its address.
fn unify(fields: &mut Fields) {
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

/// What only pods get, not templates of pods: requests as large as the limits, ports of the host.
fn default(fields: &mut Fields) {
    let Some(spec) = child(fields, "spec") else { return };
    set(spec, "enableServiceLinks", true);
    let is_on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            if let Some(resources) = child(container, "resources") {
                let limits = resources.get("limits").cloned().unwrap_or_default();
                add_missing(resources, "requests", &limits);
            }
            for port in objects(container, "ports").filter(|_| is_on_host) {
                let own = port.get("containerPort").cloned().unwrap_or_default();
                set(port, "hostPort", own);
            }
        }
    }
    if let Some(Value::Object(resources)) = spec.get_mut("resources") {
        let limits = resources.get("limits").cloned().unwrap_or_default();
        add_missing(resources, "requests", &limits);
    }
}

fn default_container(fields: &mut Fields) {
    let policy = pull_policy(text(fields, "image"));
    set(fields, "imagePullPolicy", policy);
}

fn default_volume(fields: &mut Fields) {
    if fields.keys().all(|name| name == "name") {
        fields.insert("emptyDir".into(), json!({}));
    }
    if let Some(Value::Object(image)) = fields.get_mut("image") {
        let policy = pull_policy(text(image, "reference"));
        set(image, "pullPolicy", policy);
    }
}

/// An image that is the latest by its tag, or by having neither tag nor digest, is always pulled.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let (name, digest) = name.split_once('@').map_or((name, None), |(name, digest)| (name, Some(digest)));
    let is_latest = match name.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none() && !image.is_empty() && !image.contains(char::is_whitespace),
    };
    if is_latest { "Always" } else { "IfNotPresent" }
}

fn prepare_create(fields: &mut Fields) {
    let class = quality::class(fields.get("spec").unwrap_or(&Value::Null));
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

/// Who replaces a pod and does not mention its priority leaves it as it is.
fn prepare_update(new: &mut Fields, old: &Fields) {
    let Some(before) = old.get("spec").and_then(Value::as_object) else { return };
    let spec = object(new, "spec");
    for field in ["priority", "preemptionPolicy"] {
        if !spec.contains_key(field) {
            keep(spec, Some(before), field);
        }
    }
}

fn prepare_status_update(new: &mut Fields, old: &Fields) {
    keep(object(new, "status"), old.get("status").and_then(Value::as_object), "qosClass");
}

/// A pod of its own, new or changed.
fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    pod::spec(spec, errors);
    for list in ["containers", "initContainers"] {
        spec.get(list).items().for_each(|container| trimmed_image(&container, errors));
    }
    if old.is_some() {
        return;
    }
    if !spec.get("ephemeralContainers").is_empty() {
        let at = &spec.get("ephemeralContainers").at;
        errors.push(FieldError::forbidden(at, "cannot be set on create"));
    }
    if !spec.get("nodeName").is_empty() && !spec.get("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&spec.get("nodeName").at, detail));
    }
}

/// Of a pod only images, its deadline and more tolerations can be changed.
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
    for list in ["containers", "initContainers"] {
        let count = |spec: &Field<'_>| spec.get(list).items().count();
        if count(new) != count(old) {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&new.get(list).at, detail));
            return;
        }
    }
    let gates: Vec<&str> = old.get("schedulingGates").items().map(|gate| gate.get("name").text()).collect();
    for gate in new.get("schedulingGates").items().map(|gate| gate.get("name")) {
        if !gates.contains(&gate.text()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text());
            errors.push(FieldError::forbidden(&gate.at, detail));
        }
    }
    let mut as_before = new.value.clone();
    for list in ["containers", "initContainers"] {
        let containers = as_before.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(old.get(list).items()) {
            if let Some(image) = container.get_mut("image") {
                *image = before.get("image").value.clone();
            }
        }
    }
    // Scheduling binds a pod to a node; everything else of a pod that waits at a gate may still be narrowed.
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        if let Value::Object(fields) = &mut as_before {
            fields.insert(field.into(), old.get(field).value.clone());
        }
    }
    if !same(Some(&as_before), Some(old.value)) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden(&new.at, detail));
    }
}

/// Where nothing runs, nothing has to end.
fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let placed = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let usual = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    if ended || !placed { 0 } else { asked.unwrap_or(usual) }
}
