//! Services.

use super::endpoints::reachable;
use super::field::{Errors, Field};
use crate::address;
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems, label_key_problems};

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL: &str = "may not be set for ExternalName services";

/// For how long a client may be sent to the same place: a day.
const LONGEST_AFFINITY: i64 = 86_400;

/// A new service, or one that replaces `old`.
pub(super) fn service(spec: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let (kind, ports) = (spec.get("type"), spec.get("ports"));
    let is_headless = spec.get("clusterIP").text() == "None";
    if ports.is_empty() && !is_headless && kind.text() != "ExternalName" {
        errors.push(FieldError::required(&ports.at, ""));
    }
    match kind.text() {
        "LoadBalancer" | "NodePort" if is_headless => {
            let at = spec.get("clusterIPs").at.index(0);
            let detail = format!("may not be set to 'None' for {} services", kind.text());
            errors.push(FieldError::invalid(&at, "None", detail));
        }
        "ExternalName" => external_name(spec, errors),
        _ => {}
    }
    let is_single = ports.items().count() == 1;
    let mut names = HashSet::new();
    for port in ports.items() {
        self::port(&port, is_single, &mut names, errors);
    }
    spec.get("selector").labels(errors);
    affinity(spec, errors);
    let known = old.map(|old| old.get("spec").get("externalIPs"));
    for address in spec.get("externalIPs").items() {
        external_address(&address, known.as_ref(), errors);
    }
    if kind.required(errors) {
        kind.one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    }
    port_numbers(&ports, kind.text(), errors);
    balancing(spec, errors);
    traffic(spec, errors);
}

fn external_name(spec: &Field<'_>, errors: &mut Errors) {
    // The first address is said to be one of the list, wherever it is written.
    for (field, other) in [("clusterIPs", "clusterIP"), ("ipFamilies", ""), ("ipFamilyPolicy", "")] {
        if !spec.get(field).is_empty() || !spec.get(other).is_empty() {
            errors.push(FieldError::forbidden(&spec.get(field).at, NOT_EXTERNAL));
        }
    }
    let name = spec.get("externalName");
    let host = name.text().strip_suffix('.').unwrap_or(name.text());
    if host.is_empty() {
        errors.push(FieldError::required(&name.at, ""));
    } else {
        let problems = dns_subdomain_problems(host).into_iter();
        problems.for_each(|problem| errors.push(FieldError::invalid(&name.at, host, problem)));
    }
}

fn port<'a>(port: &Field<'a>, is_single: bool, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    let name = port.get("name");
    if name.is_empty() && !is_single {
        errors.push(FieldError::required(&name.at, ""));
    } else if !name.is_empty() {
        dns_label_problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
    }
    port.get("port").port(errors);
    if port.get("protocol").required(errors) {
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
    }
    port.get("targetPort").port_or_name(errors);
    port.get("appProtocol").if_set(label_key_problems, errors);
}

fn affinity(spec: &Field<'_>, errors: &mut Errors) {
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    if affinity.required(errors) {
        affinity.one_of(&["ClientIP", "None"], errors);
    }
    match affinity.text() {
        "ClientIP" => {
            if !config.is_set() {
                let detail = "when session affinity type is ClientIP";
                return errors.push(FieldError::required(&config.at, detail));
            }
            let seconds = config.get("clientIP").get("timeoutSeconds");
            if !config.get("clientIP").is_set() {
                let detail = "when session affinity type is ClientIP";
                errors.push(FieldError::required(&config.get("clientIP").at, detail));
            } else if !seconds.is_set() {
                let detail = "when session affinity type is ClientIP";
                errors.push(FieldError::required(&seconds.at, detail));
            } else if !(1..=LONGEST_AFFINITY).contains(&seconds.number().unwrap_or_default()) {
                seconds.invalid(format!("must be greater than 0 and less than {LONGEST_AFFINITY}"), errors);
            }
        }
        "None" if config.is_set() => {
            let detail = "must not be set when session affinity is None";
            errors.push(FieldError::forbidden(&config.at, detail));
        }
        _ => {}
    }
}

/// An address of a node or of something in front of it; one that was there before may stay.
fn external_address(address: &Field<'_>, known: Option<&Field<'_>>, errors: &mut Errors) {
    let is_known = known.is_some_and(|known| known.items().any(|old| old.value == address.value));
    let before = errors.len();
    if !is_known {
        address.ip(errors);
    }
    if errors.len() == before {
        reachable(address, errors);
    }
}

fn port_numbers(ports: &Field<'_>, kind: &str, errors: &mut Errors) {
    let node_ports = || ports.items().map(|port| (port.get("nodePort"), port.get("protocol").text()));
    let chosen = || node_ports().filter(|(port, _)| port.number().is_some_and(|port| port != 0));
    if kind == "ClusterIP" {
        for (port, _) in chosen() {
            errors.push(FieldError::forbidden(&port.at, "may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut seen = HashSet::new();
    for (port, protocol) in chosen() {
        if !seen.insert((port.number(), protocol)) {
            errors.push(FieldError::duplicate(&port.at, port.value.clone()));
        }
    }
    let mut seen = HashSet::new();
    for port in ports.items() {
        if !seen.insert((port.get("port").number(), port.get("protocol").text())) {
            errors.push(FieldError::duplicate(&port.at, port.value.clone()).structure(&[
                ("Name", "".into()),
                ("Protocol", port.get("protocol").value.clone()),
                ("AppProtocol", serde_json::Value::Null),
                ("Port", port.get("port").value.clone()),
                ("TargetPort", 0.into()),
                ("NodePort", 0.into()),
            ]));
        }
    }
}

/// What only services with a load balancer have.
fn balancing(spec: &Field<'_>, errors: &mut Errors) {
    let is_balanced = spec.get("type").text() == "LoadBalancer";
    let (ranges, class) = (spec.get("loadBalancerSourceRanges"), spec.get("loadBalancerClass"));
    // kube-apiserver names the field as its structure does.
    let at = spec.at.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !is_balanced {
        errors.push(FieldError::forbidden(&at, ONLY_BALANCED));
    }
    for (index, range) in ranges.items().enumerate() {
        let text = range.text().trim();
        if let Some(problem) = address::legacy_block_problem(text) {
            errors.push(FieldError::invalid(&at.index(index), text, problem));
        }
    }
    if !is_balanced {
        spec.get("allocateLoadBalancerNodePorts").forbidden_if_set(ONLY_BALANCED, errors);
        class.forbidden_if_set(ONLY_BALANCED, errors);
    } else if class.is_set() {
        class.if_set(label_key_problems, errors);
    }
}

fn traffic(spec: &Field<'_>, errors: &mut Errors) {
    let kind = spec.get("type").text();
    let (external, health) = (spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort"));
    let is_reached = matches!(kind, "LoadBalancer" | "NodePort")
        || kind == "ClusterIP" && !spec.get("externalIPs").is_empty();
    if is_reached {
        if external.required(errors) {
            external.one_of(&["Cluster", "Local"], errors);
        }
    } else if !external.is_empty() {
        external.invalid("may only be set for externally-accessible services", errors);
    }
    let needs_health = kind == "LoadBalancer" && external.text() == "Local";
    if health.number().is_some_and(|port| port != 0) {
        if needs_health {
            health.port(errors);
        } else {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            health.invalid(detail, errors);
        }
    }
    let internal = spec.get("internalTrafficPolicy");
    if !internal.is_set() && matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") {
        errors.push(FieldError::required(&internal.at, ""));
    }
    internal.one_of(&["Cluster", "Local"], errors);
    let distribution = spec.get("trafficDistribution");
    distribution.one_of(&["PreferClose", "PreferSameZone", "PreferSameNode"], errors);
}
