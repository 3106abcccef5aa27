//! What the server has given to a service, through its changes.

use crate::kind::strategy::Fields;
use crate::prepare::{keep, object};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

pub(super) fn create(fields: &mut Fields) {
    no_internal_traffic(object(fields, "spec"));
}

/// What the server has given to a service stays when the writer leaves it out, as long as the service needs it.
pub(super) fn update(new: &mut Fields, old: &Fields) {
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
fn no_internal_traffic(spec: &mut Fields) {
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
