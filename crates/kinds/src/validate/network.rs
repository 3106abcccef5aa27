//! Ingresses, network policies, endpoint slices.

use super::field::{Errors, Field};
use super::selector;
use std::net::IpAddr;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems};

const NO_WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

pub(super) fn ingress(spec: &Field<'_>, errors: &mut Errors) {
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
        } else if host.text().contains('*') {
            let rest = host.text().strip_prefix("*.").unwrap_or_default();
            if !dns_subdomain_problems(rest).is_empty() {
                host.invalid(NO_WILDCARD, errors);
            }
        } else {
            host.dns_subdomain(errors);
        }
        let http = rule.get("http");
        if http.is_set() && http.get("paths").required(errors) {
            http.get("paths").items().for_each(|path| ingress_path(&path, errors));
        }
    }
    spec.get("ingressClassName").dns_subdomain(errors);
}

fn ingress_path(path: &Field<'_>, errors: &mut Errors) {
    let (text, kind) = (path.get("path"), path.get("pathType"));
    if !kind.is_set() {
        errors.push(FieldError::required(&kind.at, "pathType must be specified"));
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" if !text.text().starts_with('/') => {
            text.invalid("must be an absolute path", errors);
        }
        "ImplementationSpecific" if !text.is_empty() && !text.text().starts_with('/') => {
            text.invalid("must be an absolute path", errors);
        }
        _ => kind.one_of(&["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    backend(&path.get("backend"), errors);
}

fn backend(backend: &Field<'_>, errors: &mut Errors) {
    let service = backend.get("service");
    if !service.is_set() {
        if !backend.get("resource").is_set() {
            errors.push(FieldError::invalid(&backend.at, "", "resource or service backend is required"));
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

pub(super) fn ingress_class(spec: &Field<'_>, errors: &mut Errors) {
    let controller = spec.get("controller");
    if !controller.required(errors) {
        return;
    }
    let is_prefixed = controller
        .text()
        .split_once('/')
        .is_some_and(|(domain, path)| dns_subdomain_problems(domain).is_empty() && !path.is_empty());
    if !is_prefixed {
        controller.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")", errors);
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
    spec.get("policyTypes").items().for_each(|kind| kind.one_of(&["Ingress", "Egress"], errors));
}

fn policy_port(port: &Field<'_>, errors: &mut Errors) {
    port.get("protocol").one_of(&["TCP", "UDP", "SCTP"], errors);
    if port.get("port").is_set() {
        port.get("port").port_or_name(errors);
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
    if Cidr::read(block.text()).is_none() {
        block.invalid("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)", errors);
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
