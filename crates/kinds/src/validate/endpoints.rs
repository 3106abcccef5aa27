//! Endpoint slices.

use super::field::{Errors, Field};
use std::collections::HashSet;
use std::net::IpAddr;
use watchkeeper_schema::FieldError;

/// A new endpoint slice, or one that replaces `old`: what it says of its endpoints is not looked at as long as it is what
/// it was before.
pub(super) fn slice(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    let kind = object.get("addressType");
    if kind.required(errors) {
        kind.one_of(&["FQDN", "IPv4", "IPv6"], errors);
    }
    let mut names = HashSet::new();
    for port in object.get("ports").items() {
        let name = port.get("name");
        name.dns_label(errors);
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
    }
    let endpoints = object.get("endpoints");
    if old.is_some_and(|old| old.get("endpoints").value == endpoints.value) {
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.get("addresses");
        addresses.required_as("must contain at least 1 address", errors);
        for address in addresses.items().filter(|_| matches!(kind.text(), "IPv4" | "IPv6")) {
            self::address(&address, &addresses, kind.text(), errors);
        }
        endpoint.get("nodeName").dns_subdomain(errors);
        endpoint.get("hostname").dns_label(errors);
    }
}

fn address(address: &Field<'_>, all: &Field<'_>, family: &str, errors: &mut Errors) {
    let Ok(read) = address.text().parse::<IpAddr>() else {
        address.ip(errors);
        return;
    };
    if read.is_ipv4() != (family == "IPv4") {
        let detail = format!("must be an {family} address");
        errors.push(FieldError::invalid(&all.at, address.text(), detail));
    }
    reachable(address, read, errors);
}

/// An address that something else than the host itself can have.
fn reachable(address: &Field<'_>, read: IpAddr, errors: &mut Errors) {
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
