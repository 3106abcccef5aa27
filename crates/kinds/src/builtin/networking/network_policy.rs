use crate::Kind;
use crate::kind::row::kind;
use crate::kind::strategy::Fields;
use crate::validate::field::{Errors, Field};
use crate::validate::{addresses, selector};
use serde_json::{Value, json};
use std::net::IpAddr;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy")
        .short(&["netpol"])
        .generation()
        .validate_with(validate)
        .type_defaults(&[("NetworkPolicySpec", default_spec)])
        .metadata_checks(1, 0)
        .table(table::TABLE);

/// A policy is about ingress, and about egress if it has rules for it.
fn default_spec(fields: &mut Fields) {
    let has_items =
        |name: &str| fields.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !has_items("policyTypes") {
        let types = if has_items("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        fields.insert("policyTypes".into(), types);
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
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
        (Value::Null, Some(_)) => {
            last.invalid("may not be specified when `port` is not specified", errors);
        }
        (Value::String(_), Some(_)) => {
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
        addresses::block(&cidr, errors);
        for except in block.get("except").items() {
            addresses::block(&except, errors);
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

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, selector, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[NAME, text("Pod-Selector", "The labels of the pods that the policy is for."), AGE],
        |view| vec![view.name(), selector::shown(view.object.at("spec.podSelector")).into(), view.age()],
    );
}
