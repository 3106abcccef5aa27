use super::{Fields, add_missing, object, objects, set, text};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn service(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else { return };
    set(spec, "sessionAffinity", "None");
    set(spec, "type", "ClusterIP");
    let timeout =
        spec.get("sessionAffinityConfig").map(|config| config["clientIP"]["timeoutSeconds"].clone());
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" if timeout.is_none_or(|timeout| timeout.is_null()) => {
            spec.insert("sessionAffinityConfig".into(), json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
        _ => {}
    }
    for port in objects(spec, "ports") {
        set(port, "protocol", "TCP");
        let own = port.get("port").cloned().unwrap_or_default();
        if port.get("targetPort").is_none_or(|target| target.is_null() || target == 0 || target == "") {
            port.insert("targetPort".into(), own);
        }
    }
    let kind = text(spec, "type").to_owned();
    let has_external_ips =
        spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    let is_external =
        matches!(kind.as_str(), "NodePort" | "LoadBalancer") || kind == "ClusterIP" && has_external_ips;
    if is_external {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
        let status = fields.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
        for ingress in
            status.and_then(Value::as_object_mut).into_iter().flat_map(|status| objects(status, "ingress"))
        {
            if !text(ingress, "ip").is_empty() {
                set(ingress, "ipMode", "VIP");
            }
        }
    }
}

/// Selector and labels are those of the template.
pub(super) fn replication_controller(fields: &mut Fields) {
    let labels = fields.get("spec").map(|spec| spec["template"]["metadata"]["labels"].clone());
    let Some(labels) = labels.filter(Value::is_object) else { return };
    if let Some(spec) = object(fields, "spec") {
        set(spec, "selector", labels.clone());
    }
    if let Some(metadata) = object(fields, "metadata") {
        set(metadata, "labels", labels);
    }
}

/// Every namespace with a name has it as a label too.
pub(super) fn namespace(fields: &mut Fields) {
    let Some(metadata) = object(fields, "metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = object(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

pub(super) fn node_status(fields: &mut Fields) {
    if let Some(capacity) = fields.get("capacity").filter(|capacity| capacity.is_object()).cloned() {
        set(fields, "allocatable", capacity);
    }
}

/// Limits default to the maximum, requests to the limits, then to the minimum.
pub(super) fn limit_range_item(fields: &mut Fields) {
    if text(fields, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let from = fields.get(from).cloned().unwrap_or_default();
        add_missing(fields, to, &from);
    }
}

pub(super) fn subject(fields: &mut Fields) {
    if matches!(text(fields, "kind"), "User" | "Group") {
        set(fields, "apiGroup", RBAC);
    }
}

/// A policy is about ingress, and about egress if it has rules for it.
pub(super) fn network_policy(fields: &mut Fields) {
    let has_items =
        |name: &str| fields.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !has_items("policyTypes") {
        let types = if has_items("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        fields.insert("policyTypes".into(), types);
    }
}

pub(super) fn custom_resource_definition(fields: &mut Fields) {
    let Some(spec) = object(fields, "spec") else { return };
    if let Some(names) = object(spec, "names") {
        let kind = text(names, "kind").to_owned();
        set(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            set(names, "listKind", format!("{kind}List"));
        }
    }
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let stored =
        versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).next();
    if let (Some(stored), Some(status)) = (stored, object(fields, "status"))
        && status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        status.insert("storedVersions".into(), json!([stored]));
    }
}

/// Who asks for a number of devices and does not say how many asks for one.
pub(super) fn device_request(request: &mut Fields) {
    let counts = matches!(text(request, "allocationMode"), "" | "ExactCount");
    if counts && request.get("count").is_none_or(|count| count.is_null() || count == 0) {
        request.insert("count".into(), 1.into());
    }
}
