use crate::Kind;
use crate::kind::row::kind;
use crate::kind::strategy::Fields;
use crate::prepare::{differs, metadata_differs, same};
use crate::validate::addresses::reachable;
use crate::validate::field::{Errors, Field};
use serde_json::Value;
use std::collections::HashSet;
use std::net::IpAddr;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{
    dns_label_problems, dns_subdomain_problems, label_key_problems, label_value_problems,
};

pub(crate) const KIND: Kind =
    kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice")
        .immutable(&["addressType"])
        .generation_counts(|new, old| {
            ["addressType", "endpoints", "ports"].into_iter().any(|field| differs(field, new, old))
                || metadata_differs("labels", new, old)
        })
        .prepare_create(prepare_create)
        .validate_with(validate)
        .warn(warning)
        .metadata_checks(0, 1)
        .table(table::TABLE);

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The most that one slice, one endpoint or one hint may list.
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;
const MAX_TOPOLOGY: usize = 16;

/// What an older version said of where an endpoint is.
fn prepare_create(fields: &mut Fields) {
    let endpoints = fields.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

/// A new endpoint slice, or one that replaces `old`: what it says of its endpoints is not looked at as long as it is what
/// it was before.
fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
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

fn warning(slice: &Value, _: Option<&Value>) -> Option<&'static str> {
    (slice["addressType"] == "FQDN").then_some("spec.addressType: FQDN endpoints are deprecated")
}

mod table {
    use crate::columns::at_most;
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("AddressType", "What kind of addresses the slice holds."),
            text("Ports", "The ports of each endpoint, the first three."),
            text("Endpoints", "Addresses, the first three."),
            AGE,
        ],
        |view| {
            let slice = view.object;
            let ports: Vec<String> = slice.list("ports").iter().map(slice_port).collect();
            let addresses = slice.list("endpoints").iter().flat_map(|endpoint| endpoint.list("addresses"));
            let addresses: Vec<String> =
                addresses.map(|address| address.as_str().unwrap_or_default().to_owned()).collect();
            vec![
                view.name(),
                slice.text("addressType").into(),
                or_unset(at_most(3, ",", &ports)).into(),
                or_unset(at_most(3, ",", &addresses)).into(),
                view.age(),
            ]
        },
    );

    fn slice_port(port: &Value) -> String {
        match port.at("port").as_i64() {
            Some(number) => number.to_string(),
            None => port.text("name").into(),
        }
    }

    fn or_unset(text: String) -> String {
        if text.is_empty() { "<unset>".into() } else { text }
    }
}
