use super::field::{Errors, Field};
use std::collections::HashSet;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::dns_subdomain_problems;

pub(super) fn service(spec: &Field<'_>, errors: &mut Errors) {
    let kind = spec.get("type");
    let is_headless = spec.get("clusterIP").text() == "None";
    if spec.get("ports").is_empty() && !is_headless && kind.text() != "ExternalName" {
        errors.push(FieldError::required(&spec.get("ports").at, ""));
    }
    let name = spec.get("externalName");
    if kind.text() == "ExternalName" && name.required(errors) {
        let host = name.text().strip_suffix('.').unwrap_or(name.text());
        dns_subdomain_problems(host).into_iter().for_each(|problem| name.invalid(problem, errors));
    }
    let ports = spec.get("ports");
    let is_single = ports.value.as_array().is_some_and(|ports| ports.len() == 1);
    let mut names = HashSet::new();
    for port in ports.items() {
        self::port(&port, is_single, &mut names, errors);
    }
    spec.get("selector").labels(errors);
    if spec.get("sessionAffinity").required(errors) {
        spec.get("sessionAffinity").one_of(&["ClientIP", "None"], errors);
    }
    for address in spec.get("externalIPs").items() {
        address.ip(errors);
        if address.text().parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()) {
            address.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)", errors);
        }
    }
    kind.one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    if kind.text() == "ClusterIP" {
        for port in ports.items() {
            let node_port = port.get("nodePort");
            if node_port.number().is_some_and(|port| port != 0) {
                errors
                    .push(FieldError::forbidden(&node_port.at, "may not be used when `type` is 'ClusterIP'"));
            }
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
    spec.get("externalTrafficPolicy").one_of(&["Cluster", "Local"], errors);
    spec.get("internalTrafficPolicy").one_of(&["Cluster", "Local"], errors);
}

fn port<'a>(port: &Field<'a>, is_single: bool, names: &mut HashSet<&'a str>, errors: &mut Errors) {
    let name = port.get("name");
    if name.is_empty() && !is_single {
        errors.push(FieldError::required(&name.at, ""));
    } else if !name.is_empty() {
        let before = errors.len();
        name.dns_label(errors);
        if !names.insert(name.text()) && errors.len() == before {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
    }
    port.get("port").port(errors);
    if port.get("protocol").required(errors) {
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
    }
    port.get("targetPort").port_or_name(errors);
}
