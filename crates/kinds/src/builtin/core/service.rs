mod prepare;
mod table;

use crate::default::{child, objects, set, text};
use crate::kind::row::{STATUS, field, kind};
use crate::kind::strategy::Fields;
use crate::validate::addresses::reachable;
use crate::validate::field::{Errors, Field};
use crate::{Kind, NameRule, Subresource, address};
use serde_json::{Value, json};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems, label_key_problems};

pub(crate) const KIND: Kind = kind("", "v1", "Service", "services", "service")
    .short(&["svc"])
    .in_all()
    .with(&[STATUS])
    .named(NameRule::DnsLabel)
    .created_on_update()
    .selectable(&[field("spec.clusterIP", ""), field("spec.type", "")])
    .upstream_folder("services/specs")
    .returns_deleted()
    .default_with(default)
    .prepare_create(prepare::create)
    .prepare_update(prepare::update)
    .validate_with(validate)
    .validate_update_first(validate_update)
    .validate_subresources(&[(Subresource::Status, validate_status)])
    .warn(warning)
    .metadata_checks(1, 0)
    .table(table::TABLE);

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL: &str = "may not be set for ExternalName services";

/// For how long a client may be sent to the same place: a day.
const LONGEST_AFFINITY: i64 = 86_400;

fn default(fields: &mut Fields) {
    let Some(spec) = child(fields, "spec") else { return };
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

/// A new service, or one that replaces `old`.
fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
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
                ("AppProtocol", Value::Null),
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

/// An address once given is kept.
fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (new, old) = (&new.get("spec"), &old.get("spec"));
    let is_gone = |spec: &Field<'_>| spec.get("type").text() == "ExternalName";
    let (address, before) = (new.get("clusterIPs"), old.get("clusterIPs"));
    let has_first = before.value.get(0).is_some_and(|first| first != "");
    if !is_gone(new) && !is_gone(old) && has_first && address.value.get(0) != before.value.get(0) {
        errors.push(FieldError::invalid(
            &address.at.index(0),
            address.value.clone(),
            "may not change once set",
        ));
    }
}

fn validate_status(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    let (ingress, spec) = (object.get("status").get("loadBalancer").get("ingress"), object.get("spec"));
    if !ingress.is_empty() && spec.get("type").text() != "LoadBalancer" {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden(&ingress.at, detail));
    }
}

fn warning(service: &Value, _: Option<&Value>) -> Option<&'static str> {
    let spec = &service["spec"];
    let has_external = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    (has_external && spec["clusterIP"] != "None" && spec["type"] != "ExternalName")
        .then_some("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
}
