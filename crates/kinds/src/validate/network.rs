//! Ingresses, network policies, endpoint slices.

use super::field::{Errors, Field};
use super::names::path_segment;
use super::selector;
use std::net::IpAddr;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems};
use watchkeeper_schema::{FieldError, Path};

/// The annotation that names a class on old ingresses.
const CLASS: &str = "kubernetes.io/ingress.class";

/// What the path of an exact or a prefix match may not contain, and what it may not end with.
const NOT_WITHIN: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const NOT_AT_END: [&str; 2] = ["/..", "/."];

const NO_WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

pub(super) fn ingress(object: &Field<'_>, is_new: bool, errors: &mut Errors) {
    let spec = &object.get("spec");
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&spec.at, serde_json::Value::Null, detail));
    }
    if backend.is_set() {
        self::backend(&backend, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        if host.text().parse::<IpAddr>().is_ok() {
            host.invalid("must be a DNS name, not an IP address", errors);
        } else {
            self::host(&host, errors);
        }
        let http = rule.get("http");
        if http.is_set() && http.get("paths").required(errors) {
            http.get("paths").items().for_each(|path| ingress_path(&path, errors));
        }
    }
    for tls in spec.get("tls").items() {
        tls.get("hosts").items().for_each(|host| self::host(&host, errors));
        tls.get("secretName").dns_subdomain(errors);
    }
    let class = spec.get("ingressClassName");
    class.dns_subdomain(errors);
    let noted = object.get("metadata").get("annotations").get(CLASS);
    if is_new && noted.is_set() && class.is_set() && noted.text() != class.text() {
        let at = Path::root().child("annotations").child(CLASS);
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&at, noted.text(), detail));
    }
}

/// A name of a host, perhaps with a wildcard for its first label.
fn host(host: &Field<'_>, errors: &mut Errors) {
    if !host.text().contains('*') {
        return host.dns_subdomain(errors);
    }
    let rest = host.text().strip_prefix("*.").unwrap_or_default();
    if !dns_subdomain_problems(rest).is_empty() {
        host.invalid(NO_WILDCARD, errors);
    }
}

fn ingress_path(path: &Field<'_>, errors: &mut Errors) {
    let (text, kind) = (path.get("path"), path.get("pathType"));
    if !kind.is_set() {
        errors.push(FieldError::required(&kind.at, "pathType must be specified"));
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.text().starts_with('/') {
                text.invalid("must be an absolute path", errors);
            }
            for part in NOT_WITHIN.into_iter().filter(|part| text.text().contains(part)) {
                text.invalid(format!("must not contain '{part}'"), errors);
            }
            for end in NOT_AT_END.into_iter().filter(|end| text.text().ends_with(end)) {
                text.invalid(format!("cannot end with '{end}'"), errors);
            }
        }
        "ImplementationSpecific" if !text.is_empty() && !text.text().starts_with('/') => {
            text.invalid("must be an absolute path", errors);
        }
        _ => kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    backend(&path.get("backend"), errors);
}

fn backend(backend: &Field<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    if !service.is_set() {
        match resource.is_set() {
            true => typed_reference(&resource, errors),
            false => {
                let detail = "resource or service backend is required";
                errors.push(FieldError::invalid(&backend.at, "", detail));
            }
        }
        return;
    }
    if backend.get("resource").is_set() {
        let detail = "cannot set both resource and service backends";
        errors.push(FieldError::invalid(&backend.at, "", detail));
        return;
    }
    let name = service.get("name");
    if name.required(errors) {
        dns_label_problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
    }
    let port = service.get("port");
    let has_number = port.get("number").number().is_some_and(|number| number != 0);
    match (port.get("name").is_empty(), has_number) {
        (true, false) => errors.push(FieldError::required(&backend.at, "port name or number is required")),
        (true, true) => port.get("number").port(errors),
        (false, false) => port.get("name").port_or_name(errors),
        (false, true) => {
            errors.push(FieldError::invalid(&backend.at, "", "cannot set both port name & port number"));
        }
    }
}

/// A group, a kind and a name.
fn typed_reference(reference: &Field<'_>, errors: &mut Errors) {
    reference.get("apiGroup").dns_subdomain(errors);
    for part in ["kind", "name"] {
        if reference.get(part).required(errors) {
            path_segment(&reference.get(part), errors);
        }
    }
}

pub(super) fn ingress_class(spec: &Field<'_>, errors: &mut Errors) {
    let (controller, parameters) = (spec.get("controller"), spec.get("parameters"));
    if controller.required(errors) {
        domain_prefixed(&controller, errors);
    }
    if !parameters.is_set() {
        return;
    }
    typed_reference(&parameters, errors);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    if !scope.is_set() {
        errors.push(FieldError::required(&scope.at, ""));
    }
    scope.one_of(&["Cluster", "Namespace"], errors);
    match scope.text() {
        "Namespace" if namespace.is_empty() => {
            errors.push(FieldError::required(&namespace.at, "`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => namespace.dns_label(errors),
        "Cluster" => {
            namespace.forbidden_if_set("`parameters.scope` is set to 'Cluster'", errors);
        }
        _ => {}
    }
}

/// A domain and a path, such as `acme.io/foo`.
pub(super) fn domain_prefixed(text: &Field<'_>, errors: &mut Errors) {
    let is_prefixed = text
        .text()
        .split_once('/')
        .is_some_and(|(domain, path)| dns_subdomain_problems(domain).is_empty() && !path.is_empty());
    if !is_prefixed {
        text.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")", errors);
    }
}

pub(super) fn policy(spec: &Field<'_>, errors: &mut Errors) {
    selector::selector(&spec.get("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(rules).items() {
            rule.get("ports").items().for_each(|port| policy_port(&port, errors));
            rule.get(peers).items().for_each(|peer| policy_peer(&peer, errors));
        }
    }
    let types = spec.get("policyTypes");
    if types.items().count() > 2 {
        return types.invalid("may not specify more than two policyTypes", errors);
    }
    types.items().for_each(|kind| kind.one_of(&["Ingress", "Egress"], errors));
}

fn policy_port(port: &Field<'_>, errors: &mut Errors) {
    port.get("protocol").one_of(&["TCP", "UDP", "SCTP"], errors);
    let (first, last) = (port.get("port"), port.get("endPort"));
    if first.is_set() {
        first.port_or_name(errors);
    }
    match (first.value, last.number()) {
        (_, None) => {}
        (serde_json::Value::Null, Some(_)) => {
            last.invalid("may not be specified when `port` is not specified", errors);
        }
        (serde_json::Value::String(_), Some(_)) => {
            last.invalid("may not be specified when `port` is non-numeric", errors);
        }
        (_, Some(end)) => {
            // kube-apiserver shows the first port here.
            let begin = first.number().unwrap_or_default();
            if end < begin {
                let detail = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(&last.at, begin, detail));
            }
            if !(1..=65535).contains(&end) {
                last.invalid("must be between 1 and 65535, inclusive", errors);
            }
        }
    }
}

fn policy_peer(peer: &Field<'_>, errors: &mut Errors) {
    let (block, pods, namespaces) =
        (peer.get("ipBlock"), peer.get("podSelector"), peer.get("namespaceSelector"));
    if !block.is_set() && !pods.is_set() && !namespaces.is_set() {
        errors.push(FieldError::required(&peer.at, "must specify a peer"));
        return;
    }
    selector::selector(&pods, errors);
    selector::selector(&namespaces, errors);
    if block.is_set() {
        let cidr = block.get("cidr");
        let read = Cidr::read(cidr.text());
        self::block(&cidr, errors);
        for except in block.get("except").items() {
            self::block(&except, errors);
            let inner = Cidr::read(except.text());
            let fits = inner.zip(read).is_none_or(|(inner, outer)| outer.strictly_contains(&inner));
            if !fits {
                except.invalid("must be a strict subset of `cidr`", errors);
            }
        }
        if pods.is_set() || namespaces.is_set() {
            errors.push(FieldError::forbidden(&peer.at, "may not specify both ipBlock and another peer"));
        }
    }
}

/// A text is a block of addresses.
pub(super) fn block(block: &Field<'_>, errors: &mut Errors) {
    if let Some(problem) = crate::address::legacy_block_problem(block.text()) {
        errors.push(FieldError::invalid(&block.at, block.text(), problem));
    }
}

/// A block of addresses.
#[derive(Clone, Copy)]
struct Cidr {
    bits: u128,
    width: u32,
    prefix: u32,
}

impl Cidr {
    fn read(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let (bits, width) = match address.parse().ok()? {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= width)?;
        Some(Self { bits, width, prefix })
    }

    fn strictly_contains(&self, inner: &Self) -> bool {
        let network = |bits: u128| bits.checked_shr(self.width - self.prefix).unwrap_or_default();
        self.width == inner.width && self.prefix < inner.prefix && network(self.bits) == network(inner.bits)
    }
}
