//! Addresses and blocks of them.

use super::field::{Errors, Field};
use std::net::IpAddr;
use watchkeeper_go::address::parse_sloppy;
use watchkeeper_schema::FieldError;

/// An address that something else than the host itself can have.
pub(crate) fn reachable(address: &Field<'_>, errors: &mut Errors) {
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

/// A text is a block of addresses.
pub(crate) fn block(block: &Field<'_>, errors: &mut Errors) {
    if let Some(problem) = crate::address::legacy_block_problem(block.text()) {
        errors.push(FieldError::invalid(&block.at, block.text(), problem));
    }
}
