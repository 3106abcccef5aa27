//! IP addresses and blocks of them, as Kubernetes reads them.
//!
//! Addresses used to be read by a parser of Go that took leading zeros for nothing (`010.0.0.1` is `10.0.0.1`), and objects
//! that hold such addresses are still to be read. `k8s.io/utils/net` has kept that parser: `ParseIPSloppy`,
//! `ParseCIDRSloppy`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads an address whose numbers may begin with zeros.
///
/// ```
/// use watchkeeper_go::address;
/// assert_eq!(address::parse_sloppy("010.0.0.1").map(|read| read.to_string()).as_deref(), Some("10.0.0.1"));
/// assert_eq!(address::parse_sloppy("fe80::1%eth0"), None);
/// ```
pub fn parse_sloppy(text: &str) -> Option<IpAddr> {
    match text.parse() {
        Ok(address) => Some(address),
        Err(_) if text.contains(':') => version_6(text).map(IpAddr::V6),
        Err(_) => version_4(text).map(IpAddr::V4),
    }
}

fn version_4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u8> =
        text.split('.').map(|part| u8::try_from(decimal(part)?).ok()).collect::<Option<_>>()?;
    <[u8; 4]>::try_from(parts).ok().map(Ipv4Addr::from)
}

/// Writes every part without the zeros that are too many, and leaves the rest to the strict parser.
fn version_6(text: &str) -> Option<Ipv6Addr> {
    let parts: Option<Vec<String>> = text
        .split(':')
        .map(|part| match part {
            dotted if dotted.contains('.') => version_4(dotted).map(|address| address.to_string()),
            long if long.len() > 4 => Some(or_zero(long.trim_start_matches('0'))),
            part => Some(part.to_owned()),
        })
        .collect();
    parts?.join(":").parse().ok()
}

fn or_zero(digits: &str) -> String {
    if digits.is_empty() { "0".into() } else { digits.to_owned() }
}

/// A number of decimal digits only, whatever its leading zeros.
fn decimal(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// An address and how many of its first bits the addresses of a block share with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address as it is written, which need not be the first of the block.
    pub address: IpAddr,
    /// The length of the prefix, in bits.
    pub bits: u32,
}

impl Block {
    /// Reads a block in CIDR notation whose numbers may begin with zeros.
    ///
    /// ```
    /// use watchkeeper_go::address::Block;
    /// let block = Block::parse_sloppy("10.1.2.3/08").unwrap();
    /// assert_eq!((block.bits, block.first().to_string().as_str()), (8, "10.0.0.0"));
    /// ```
    pub fn parse_sloppy(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address = parse_sloppy(address)?;
        let bits = decimal(length)?;
        (bits <= if address.is_ipv6() { 128 } else { 32 }).then_some(Self { address, bits })
    }

    /// The first address of the block.
    pub fn first(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.bits.min(32)).unwrap_or_default();
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.bits.min(128)).unwrap_or_default();
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

/// Whether an address of version 6 stands for one of version 4: `::ffff:1.2.3.4`.
pub fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Go holds an address that stands for one of version 4 for that one, and prints it so.
    fn shown(address: IpAddr) -> String {
        address.to_canonical().to_string()
    }

    #[test]
    fn texts_are_read_and_refused_as_kubernetes_does() {
        for case in recorded(include_str!("cases/addresses.jsonl")) {
            let text = case["in"].as_str().unwrap();
            if let Some(address) = case.get("address") {
                assert_eq!(*address, json!(parse_sloppy(text).map(shown)), "{case}");
            } else {
                let read = Block::parse_sloppy(text);
                let said = read.map_or(Value::Null, |block| {
                    let bits = if block.address.is_ipv6() { 128 } else { 32 };
                    json!({"ip": shown(block.address), "ones": block.bits, "bits": bits, "first": shown(block.first())})
                });
                assert_eq!(case["block"], said, "{case}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(512)))]

        #[test]
        fn what_is_written_is_read(bits in any::<u128>(), narrow in any::<u32>()) {
            for address in [IpAddr::from(bits.to_be_bytes()), IpAddr::from(narrow.to_be_bytes())] {
                prop_assert_eq!(parse_sloppy(&address.to_string()), Some(address));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), likely in "([0-9a-f]{0,6}[:.]){0,9}[0-9]{0,4}(/[0-9]{1,4})?") {
            for text in [text, likely] {
                let _ = (parse_sloppy(&text), Block::parse_sloppy(&text));
            }
        }
    }
}
