//! Where services are: endpoints, and slices of them.

use super::field::{Errors, Field};
use crate::prepare::same;
use std::collections::HashSet;
use std::net::IpAddr;
use watchkeeper_go::address::parse_sloppy;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{
    dns_label_problems, dns_subdomain_problems, label_key_problems, label_value_problems,
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The most that one slice, one endpoint or one hint may list.
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;
const MAX_TOPOLOGY: usize = 16;

/// New endpoints, or those that replace `old`: what was there before and stays is not looked at again.
pub(super) fn endpoints(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let subsets = object.get("subsets");
    if old.is_some_and(|old| same(Some(old.get("subsets").value), Some(subsets.value))) {
        return;
    }
    for subset in subsets.items() {
        let (ready, others) = (subset.get("addresses"), subset.get("notReadyAddresses"));
        if ready.is_empty() && others.is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&subset.at, detail));
        }
        ready.items().chain(others.items()).for_each(|address| subset_address(&address, errors));
        let ports = subset.get("ports");
        let is_one_of_many = ports.items().count() > 1;
        ports.items().for_each(|port| subset_port(&port, is_one_of_many, errors));
    }
}

fn subset_address(address: &Field<'_>, errors: &mut Errors) {
    let ip = address.get("ip");
    ip.ip(errors);
    address.get("hostname").dns_label(errors);
    address.get("nodeName").if_set(dns_subdomain_problems, errors);
    reachable(&ip, errors);
}

fn subset_port(port: &Field<'_>, is_one_of_many: bool, errors: &mut Errors) {
    let (name, protocol) = (port.get("name"), port.get("protocol"));
    if is_one_of_many {
        name.required(errors);
    }
    name.dns_label(errors);
    port.get("port").port(errors);
    if protocol.required(errors) {
        protocol.one_of(&PROTOCOLS, errors);
    }
    port.get("appProtocol").if_set(label_key_problems, errors);
}

/// A new endpoint slice, or one that replaces `old`: what it says of its endpoints is not looked at as long as it is what
/// it was before.
pub(super) fn slice(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let kind = object.get("addressType");
    if kind.required(errors) {
        kind.one_of(&["FQDN", "IPv4", "IPv6"], errors);
    }
    slice_ports(&object.get("ports"), errors);
    let endpoints = object.get("endpoints");
    if old.is_some_and(|old| same(Some(old.get("endpoints").value), Some(endpoints.value))) {
        return;
    }
    if endpoints.at_most(MAX_ENDPOINTS, errors) {
        endpoints.items().for_each(|endpoint| slice_endpoint(&endpoint, kind.text(), errors));
    }
}

fn slice_ports(ports: &Field<'_>, errors: &mut Errors) {
    if !ports.at_most(MAX_PORTS, errors) {
        return;
    }
    let mut names = HashSet::new();
    for port in ports.items() {
        let (name, protocol) = (port.get("name"), port.get("protocol"));
        name.dns_label(errors);
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
        if protocol.is_set() {
            protocol.one_of(&PROTOCOLS, errors);
        } else {
            errors.push(FieldError::required(&protocol.at, ""));
        }
        port.get("appProtocol").if_set(label_key_problems, errors);
    }
}

fn slice_endpoint(endpoint: &Field<'_>, kind: &str, errors: &mut Errors) {
    let addresses = endpoint.get("addresses");
    if addresses.required_as("must contain at least 1 address", errors) {
        addresses.at_most(MAX_ADDRESSES, errors);
    }
    for address in addresses.items() {
        match kind {
            "IPv4" | "IPv6" => slice_address(&address, &addresses, kind, errors),
            "FQDN" => full_name(&address, errors),
            _ => {}
        }
    }
    endpoint.get("nodeName").if_set(dns_subdomain_problems, errors);
    let topology = endpoint.get("deprecatedTopology");
    let count = topology.entries().count();
    if count > MAX_TOPOLOGY {
        errors.push(FieldError::too_many(&topology.at, count, MAX_TOPOLOGY as i64));
    }
    topology.labels(errors);
    endpoint.get("hostname").if_set(dns_label_problems, errors);
    let hints = endpoint.get("hints");
    if self::hints(&hints.get("forZones"), label_value_problems, errors) {
        self::hints(&hints.get("forNodes"), dns_subdomain_problems, errors);
    }
}

/// The names of zones or nodes that an endpoint is for; returns whether there were too many to look at.
fn hints(hints: &Field<'_>, problems: fn(&str) -> Vec<String>, errors: &mut Errors) -> bool {
    if !hints.at_most(MAX_HINTS, errors) {
        return false;
    }
    let mut names = HashSet::new();
    for name in hints.items().map(|hint| hint.get("name")) {
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
        for problem in problems(name.text()) {
            errors.push(FieldError::invalid(&name.at, name.text(), problem));
        }
    }
    true
}

fn slice_address(address: &Field<'_>, all: &Field<'_>, family: &str, errors: &mut Errors) {
    let problem = match family {
        "IPv4" => crate::address::legacy_problem(address.text()).map(str::to_owned),
        _ => crate::address::problem(address.text()),
    };
    if let Some(problem) = problem {
        return address.invalid(problem, errors);
    }
    let is_other = |read: IpAddr| read.is_ipv4() != (family == "IPv4");
    if address.text().parse().is_ok_and(is_other) {
        let detail = format!("must be an {family} address");
        errors.push(FieldError::invalid(&all.at, address.text(), detail));
    }
    reachable(address, errors);
}

/// An address that something else than the host itself can have.
pub(super) fn reachable(address: &Field<'_>, errors: &mut Errors) {
    let Some(read) = parse_sloppy(address.text()) else {
        errors.push(FieldError::invalid(&address.at, address.text(), "must be a valid IP address"));
        return;
    };
    let is_link_local = match read {
        IpAddr::V4(read) => read.is_link_local(),
        IpAddr::V6(read) => read.is_unicast_link_local(),
    };
    if read.is_unspecified() {
        address.invalid(format!("may not be unspecified ({})", address.text()), errors);
    }
    if read.is_loopback() {
        address.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)", errors);
    }
    if is_link_local {
        address.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)", errors);
    }
    let is_local_multicast = match read {
        IpAddr::V4(read) => read.octets()[..3] == [224, 0, 0],
        IpAddr::V6(read) => read.segments()[0] & 0xff0f == 0xff02,
    };
    if is_local_multicast {
        address.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)", errors);
    }
}

/// A name with at least two labels; only the first thing that is wrong is said.
fn full_name(name: &Field<'_>, errors: &mut Errors) {
    if !name.required(errors) {
        return;
    }
    let text = name.text().strip_suffix('.').unwrap_or(name.text());
    let problems = dns_subdomain_problems(text);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(&name.at, text, problems.join(",")));
    } else if !text.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(&name.at, text, detail));
    } else if let Some(label) = text.split('.').find(|label| !dns_label_problems(label).is_empty()) {
        errors.push(FieldError::invalid(&name.at, label, dns_label_problems(label).join(",")));
    }
}
