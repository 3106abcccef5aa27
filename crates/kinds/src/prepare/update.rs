use super::create::custom_resource_definition;
use super::{Write, generation, object};
use crate::Kind;
use crate::alias::TEMPLATE_GENERATION;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

type Fields = Map<String, Value>;

pub(super) fn prepare(kind: &Kind, write: Write, new: &mut Fields, old: &Fields) {
    if kind.generation {
        keep(object(new, "metadata"), metadata(old), "generation");
    }
    match write {
        Write::Main => main(kind, new, old),
        Write::Status => status(kind, new, old),
        Write::Finalize => only(new, old, "finalizers"),
        Write::EphemeralContainers => only(new, old, "ephemeralContainers"),
        Write::Approval => approval(new, old),
        Write::Binding => {}
        Write::Resize => resize(new, old),
    }
    let counts = kind.generation && !matches!(write, Write::Status | Write::Binding);
    if counts && generation::differs(kind, new, old) {
        let before = metadata(old).and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64);
        object(new, "metadata").insert("generation".into(), json!(before.unwrap_or_default() + 1));
    }
}

fn main(kind: &Kind, new: &mut Fields, old: &Fields) {
    if kind.has_status() {
        keep(new, Some(old), "status");
    }
    match kind.kind {
        "Namespace" => {
            let finalizers = old.get("spec").and_then(Value::as_object);
            keep(object(new, "spec"), finalizers, "finalizers");
        }
        "DaemonSet" => template_generation(new, old),
        "Service" => service(new, old),
        "CustomResourceDefinition" => custom_resource_definition(new),
        "CertificateSigningRequest" => keep(new, Some(old), "spec"),
        "CSIDriver" => counted(new, old),
        _ => {}
    }
}

/// The generation of a driver is that of its changes: a new one has none.
fn counted(new: &mut Fields, old: &Fields) {
    keep(object(new, "metadata"), metadata(old), "generation");
    if !generation::same(new.get("spec"), old.get("spec")) {
        let before = metadata(old).and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64);
        object(new, "metadata").insert("generation".into(), json!(before.unwrap_or_default() + 1));
    }
}

/// Everything is as before but what was decided.
fn approval(new: &mut Fields, old: &Fields) {
    let conditions = new.get("status").and_then(|status| status.get("conditions")).cloned();
    keep(new, Some(old), "spec");
    keep(new, Some(old), "status");
    let status = object(new, "status");
    match conditions {
        Some(conditions) => status.insert("conditions".into(), conditions),
        None => status.remove("conditions"),
    };
}

/// Decisions on a request for a certificate are as before, if there are as many.
fn keep_decisions(new: &mut Fields, old: &Fields) {
    fn of_type<'a>(status: Option<&'a mut Value>, kind: &'a str) -> impl Iterator<Item = &'a mut Value> {
        let conditions = status.and_then(|status| status.get_mut("conditions")).and_then(Value::as_array_mut);
        conditions.into_iter().flatten().filter(move |condition| condition["type"] == kind)
    }
    let mut before = old.get("status").cloned();
    for kind in ["Approved", "Denied"] {
        let known: Vec<Value> = of_type(before.as_mut(), kind).map(|condition| condition.clone()).collect();
        if of_type(new.get_mut("status"), kind).count() == known.len() {
            of_type(new.get_mut("status"), kind).zip(known).for_each(|(condition, known)| *condition = known);
        }
    }
}

/// Everything but metadata and status is as before.
fn status(kind: &Kind, new: &mut Fields, old: &Fields) {
    let is_kept = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    new.retain(|name, _| !is_kept(name) || old.contains_key(name));
    for name in old.keys().filter(|name| is_kept(name)) {
        keep(new, Some(old), name);
    }
    let kept: &[&str] = match kind.kind {
        "Deployment" => &["labels"],
        "Pod" => &["ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"],
        "APIService"
        | "CustomResourceDefinition"
        | "ResourceClaim"
        | "ServiceCIDR"
        | "ValidatingAdmissionPolicy"
        | "VolumeAttachment" => &["labels", "annotations", "ownerReferences", "finalizers"],
        _ => &[],
    };
    for field in kept {
        keep(object(new, "metadata"), metadata(old), field);
    }
    if kind.kind == "CertificateSigningRequest" {
        keep_decisions(new, old);
    }
    if kind.kind == "Pod" {
        keep(object(new, "status"), old.get("status").and_then(Value::as_object), "qosClass");
    }
}

/// Everything is as before but one field of the spec.
fn only(new: &mut Fields, old: &Fields, field: &str) {
    let asked = new.get("spec").and_then(|spec| spec.get(field)).cloned();
    keep(new, Some(old), "status");
    keep(new, Some(old), "spec");
    let spec = object(new, "spec");
    match asked {
        Some(asked) => spec.insert(field.into(), asked),
        None => spec.remove(field),
    };
}

/// Everything is as before but the resources of containers.
fn resize(new: &mut Fields, old: &Fields) {
    let asked = new.get("spec").cloned().unwrap_or_default();
    keep(new, Some(old), "status");
    keep(new, Some(old), "spec");
    for list in ["containers", "initContainers"] {
        let containers =
            object(new, "spec").get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers {
            let same =
                asked[list].as_array().into_iter().flatten().find(|asked| asked["name"] == container["name"]);
            for field in ["resources", "resizePolicy"] {
                let asked = same.and_then(|asked| asked.get(field));
                if let (Some(asked), Value::Object(container)) = (asked, &mut *container) {
                    container.insert(field.into(), asked.clone());
                }
            }
        }
    }
}

/// A daemon set counts how often its template changed.
fn template_generation(new: &mut Fields, old: &Fields) {
    let counted =
        metadata(old).and_then(|metadata| metadata.get("annotations")).map(|all| &all[TEMPLATE_GENERATION]);
    let mut count: i64 =
        counted.and_then(Value::as_str).and_then(|count| count.parse().ok()).unwrap_or_default();
    let template = |object: &Fields| object.get("spec").and_then(|spec| spec.get("template")).cloned();
    if !generation::same(template(new).as_ref(), template(old).as_ref()) {
        count += 1;
    }
    if count > 0 {
        let annotations = object(object(new, "metadata"), "annotations");
        annotations.insert(TEMPLATE_GENERATION.into(), count.to_string().into());
    }
}

/// What the server has given to a service stays when the writer leaves it out, as long as the service needs it.
fn service(new: &mut Fields, old: &Fields) {
    let Some(before) = old.get("spec").and_then(Value::as_object) else { return };
    let spec = object(new, "spec");
    if needs_address(spec) && needs_address(before) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            keep_if_empty(spec, before, field);
        }
    }
    if needs_health_check(spec) && needs_health_check(before) {
        keep_if_empty(spec, before, "healthCheckNodePort");
    }
    if needs_node_ports(spec) && needs_node_ports(before) {
        keep_node_ports(spec, before);
    }
    give_back(spec, before);
    no_internal_traffic(spec);
}

/// What is somewhere else has no traffic in the cluster, and is not shown with a policy for it.
pub(super) fn no_internal_traffic(spec: &mut Fields) {
    if !needs_address(spec) {
        spec.remove("internalTrafficPolicy");
    }
}

fn keep_if_empty(spec: &mut Fields, before: &Fields, field: &str) {
    let is_empty = |value: &Value| value == "" || value == 0 || value.as_array().is_some_and(Vec::is_empty);
    if spec.get(field).is_none_or(is_empty) {
        keep(spec, Some(before), field);
    }
}

/// Ports are known by their names, whatever else of them changes.
fn keep_node_ports(spec: &mut Fields, before: &Fields) {
    let asked = node_ports(spec);
    let known: HashMap<&str, i64> = before
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|port| (name(port), port["nodePort"].as_i64().unwrap_or_default()))
        .collect();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter(|port| port["nodePort"].as_i64().is_none_or(|number| number == 0)) {
        let number = known.get(name(port)).copied().unwrap_or_default();
        if number != 0 && !asked.contains(&number) {
            port["nodePort"] = number.into();
        }
    }
}

fn name(port: &Value) -> &str {
    port["name"].as_str().unwrap_or_default()
}

/// What the service needed before and does not need any more goes, unless the writer changed it as well.
fn give_back(spec: &mut Fields, before: &Fields) {
    let ends = |needs: fn(&Fields) -> bool, spec: &Fields| needs(before) && !needs(spec);
    let is_same = |spec: &Fields, field: &str| spec.get(field) == before.get(field);
    if ends(needs_address, spec) {
        if is_same(spec, "clusterIP") && is_same(spec, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if is_same(spec, field) {
                spec.remove(field);
            }
        }
    }
    if ends(needs_node_ports, spec) && node_ports(spec).is_subset(&node_ports(before)) {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        ports.filter_map(Value::as_object_mut).for_each(|port| drop(port.remove("nodePort")));
    }
    for (needs, field) in [
        (needs_health_check as fn(&Fields) -> bool, "healthCheckNodePort"),
        (is_balanced, "allocateLoadBalancerNodePorts"),
        (is_balanced, "loadBalancerClass"),
        (is_reached_from_outside, "externalTrafficPolicy"),
    ] {
        if ends(needs, spec) && is_same(spec, field) {
            spec.remove(field);
        }
    }
}

fn kind_of_service(spec: &Fields) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn needs_address(spec: &Fields) -> bool {
    kind_of_service(spec) != "ExternalName"
}

fn needs_node_ports(spec: &Fields) -> bool {
    matches!(kind_of_service(spec), "NodePort" | "LoadBalancer")
}

fn is_balanced(spec: &Fields) -> bool {
    kind_of_service(spec) == "LoadBalancer"
}

fn is_reached_from_outside(spec: &Fields) -> bool {
    let addresses = spec.get("externalIPs").and_then(Value::as_array);
    needs_node_ports(spec)
        || kind_of_service(spec) == "ClusterIP" && addresses.is_some_and(|addresses| !addresses.is_empty())
}

fn needs_health_check(spec: &Fields) -> bool {
    is_balanced(spec) && spec.get("externalTrafficPolicy") == Some(&json!("Local"))
}

fn node_ports(spec: &Fields) -> BTreeSet<i64> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| port["nodePort"].as_i64()).filter(|number| *number != 0).collect()
}

fn metadata(fields: &Fields) -> Option<&Fields> {
    fields.get("metadata").and_then(Value::as_object)
}

/// Sets a field to what it was before, or to nothing if it was not there.
fn keep(new: &mut Fields, old: Option<&Fields>, field: &str) {
    match old.and_then(|old| old.get(field)) {
        Some(before) => new.insert(field.to_owned(), before.clone()),
        None => new.remove(field),
    };
}
