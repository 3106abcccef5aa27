//! Addresses and blocks of addresses, as strictly as new fields take them, and as old ones do.

use std::net::IpAddr;
use watchkeeper_go::address::{Block, is_mapped, parse_sloppy};

/// What is wrong with a text that is to be an address.
pub(crate) fn problem(text: &str) -> Option<String> {
    if let Some(problem) = legacy_problem(text) {
        return Some(problem.into());
    }
    let canonical = parse_sloppy(text)?.to_string();
    (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
}

/// What is wrong with an address in a field that is as old as Kubernetes: it may be written in several ways.
pub(crate) fn legacy_problem(text: &str) -> Option<&'static str> {
    let Some(address) = parse_sloppy(text) else {
        return Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    };
    if text.parse::<IpAddr>().is_err() {
        return Some("must not have leading 0s");
    }
    is_mapped(address).then_some("must not be an IPv4-mapped IPv6 address")
}

/// What is wrong with a text that is to be a block of addresses.
pub(crate) fn block_problem(text: &str) -> Option<String> {
    if let Some(problem) = legacy_block_problem(text) {
        return Some(problem.into());
    }
    let Block { address, bits } = Block::parse_sloppy(text)?;
    let canonical = format!("{address}/{bits}");
    (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
}

/// What is wrong with a block in a field that is as old as Kubernetes: it may be written in several ways.
pub(crate) fn legacy_block_problem(text: &str) -> Option<&'static str> {
    let Some(block) = Block::parse_sloppy(text) else {
        return Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    };
    let (written, length) = text.split_once('/').unwrap_or((text, ""));
    if written.parse::<IpAddr>().is_err() || length != block.bits.to_string() {
        return Some("must not have leading 0s in IP or prefix length");
    }
    if is_mapped(block.address) {
        return Some("must not have an IPv4-mapped IPv6 address");
    }
    (block.address != block.first()).then_some("must not have bits set beyond the prefix length")
}

/// Whether a block is of addresses of version 6; `None` if it is no block.
pub(crate) fn is_version_6(block: &str) -> Option<bool> {
    Block::parse_sloppy(block).map(|block| block.address.is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_one_way() {
        for good in ["10.0.0.1", "2001:db8::1", "::"] {
            assert_eq!(problem(good), None, "{good}");
        }
        for (bad, said) in [
            ("10.0.0", "must be a valid IP address"),
            ("010.0.0.1", "leading 0s"),
            ("::ffff:1.2.3.4", "IPv4-mapped"),
            ("2001:DB8::1", r#"must be in canonical form ("2001:db8::1")"#),
        ] {
            assert!(problem(bad).is_some_and(|problem| problem.contains(said)), "{bad}");
        }
    }

    #[test]
    fn blocks_begin_with_their_first_address() {
        for good in ["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/64", "10.1.2.3/32"] {
            assert_eq!(block_problem(good), None, "{good}");
        }
        for (bad, said) in [
            ("10.0.0.0", "must be a valid CIDR value"),
            ("10.0.0.0/33", "must be a valid CIDR value"),
            ("10.0.0.0/+8", "must be a valid CIDR value"),
            ("10.0.0.0/08", "leading 0s"),
            ("10.0.0.1/8", "bits set beyond"),
            ("2001:DB8::/64", "canonical"),
        ] {
            assert!(block_problem(bad).is_some_and(|problem| problem.contains(said)), "{bad}");
        }
    }
}
