//! Names of hosts and networks.

use std::net::IpAddr;
use std::sync::Arc;

/// Which hosts: every one, those below a name, or one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// A name, in lower case.
    Exact(Arc<str>),
    /// All names that end so; it begins with a dot.
    Below(Arc<str>),
    /// All names.
    Any,
}

impl HostPattern {
    /// Reads `example.com`, `*.example.com` or `*`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let (pattern, name) = match text.strip_prefix("*.") {
            Some(name) => (Self::Below(format!(".{name}").into()), name),
            None if text == "*" => return Ok(Self::Any),
            None => (Self::Exact(text.as_str().into()), text.as_str()),
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let is_name = name.len() <= 253 && name.split('.').all(is_label);
        if is_name || matches!(pattern, Self::Exact(_)) && is_bracketed_address(name) {
            return Ok(pattern);
        }
        Err(format!("{text:?} is not a host such as example.com or *.example.com; it has no port"))
    }

    /// Whether a host, in lower case and without port, is among them.
    pub fn contains(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => **name == *host,
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(&**suffix),
            Self::Any => true,
        }
    }

    /// How specific it is: larger is more specific.
    pub fn specificity(&self) -> (u8, usize) {
        match self {
            Self::Exact(name) => (2, name.len()),
            Self::Below(suffix) => (1, suffix.len()),
            Self::Any => (0, 0),
        }
    }
}

fn is_bracketed_address(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
}

impl std::fmt::Display for HostPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(suffix) => write!(f, "*{suffix}"),
            Self::Any => f.write_str("*"),
        }
    }
}

/// Addresses that can be given away: one, or those of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPool {
    first: IpAddr,
    count: u64,
}

/// How many addresses of a network are used at most.
const POOL: u64 = 1 << 16;

impl AddressPool {
    /// Reads an address, or a network such as `127.8.0.0/16`. Of a network, the first address and the last one are not used.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an address or a network such as 127.8.0.0/16");
        let (address, bits) = network(text).ok_or_else(wrong)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let rest = width - u32::from(bits);
        if rest == 0 {
            return Ok(Self { first: address, count: 1 });
        }
        if rest == 1 {
            return Err(format!("{text:?} has no addresses besides its first and its last one"));
        }
        let first = prefix(address, bits) << rest;
        let count = 1_u64.checked_shl(rest).unwrap_or(u64::MAX).saturating_sub(2).min(POOL);
        Ok(Self { first: nth(address, first + 1), count })
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none; there is always one.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One of them.
    pub fn get(&self, index: u64) -> IpAddr {
        nth(
            self.first,
            prefix(self.first, if self.first.is_ipv4() { 32 } else { 128 }) + u128::from(index % self.count),
        )
    }

    /// Whether an address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let value = |address: IpAddr| prefix(address, if address.is_ipv4() { 32 } else { 128 });
        address.is_ipv4() == self.first.is_ipv4()
            && value(address).checked_sub(value(self.first)).is_some_and(|at| at < u128::from(self.count))
    }
}

/// `127.0.0.1`.
impl Default for AddressPool {
    fn default() -> Self {
        Self { first: IpAddr::from([127, 0, 0, 1]), count: 1 }
    }
}

/// The address with this value, of the same family.
fn nth(family: IpAddr, value: u128) -> IpAddr {
    match family {
        IpAddr::V4(_) => IpAddr::from(u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()),
        IpAddr::V6(_) => IpAddr::from(value.to_be_bytes()),
    }
}

/// A list of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Box<[(IpAddr, u8)]>);

impl Networks {
    /// Reads addresses and networks: `10.0.0.0/8`, `2001:db8::1`. An error says which one is wrong.
    pub fn parse(texts: &[String]) -> Result<Self, (usize, String)> {
        let read = |(index, text): (usize, &String)| {
            network(text)
                .ok_or_else(|| (index, format!("{text:?} is not an address or a network such as 10.0.0.0/8")))
        };
        texts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>().map(|all| Self(all.into()))
    }

    /// Whether an address is in one of them.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|(network, bits)| {
            prefix(*network, *bits) == prefix(address, *bits) && { network.is_ipv4() == address.is_ipv4() }
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    (bits <= most).then_some((address, bits))
}

/// The first bits of an address.
fn prefix(address: IpAddr, bits: u8) -> u128 {
    let (value, width) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    match width - u32::from(bits).min(width) {
        128 => 0,
        rest => value >> rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_all_below_one() {
        let contains = |pattern: &str, host| HostPattern::parse(pattern).unwrap().contains(host);
        assert!(contains("Example.com", "example.com") && !contains("example.com", "a.example.com"));
        assert!(contains("*.example.com", "a.example.com") && contains("*.example.com", "a.b.example.com"));
        assert!(!contains("*.example.com", "example.com") && !contains("*.example.com", "badexample.com"));
        assert!(
            contains("*", "anything") && contains("[::1]", "[::1]") && contains("127.0.0.1", "127.0.0.1")
        );
        for wrong in ["", "a b", "example.com:80", "*.*.com", "a..b", "http://x", "*."] {
            assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pool_has_the_addresses_between_the_first_and_the_last() {
        let pool = AddressPool::parse("127.8.0.0/30").unwrap();
        assert_eq!((pool.len(), pool.get(0), pool.get(1)), (2, [127, 8, 0, 1].into(), [127, 8, 0, 2].into()));
        assert!(pool.contains([127, 8, 0, 2].into()) && !pool.contains([127, 8, 0, 3].into()));
        assert!(!pool.contains([127, 8, 0, 0].into()) && !pool.contains("::1".parse().unwrap()));
        let one = AddressPool::parse("::1").unwrap();
        assert_eq!((one.len(), one.get(7)), (1, "::1".parse().unwrap()));
        assert_eq!(AddressPool::parse("fd00::/8").unwrap().get(0), "fd00::1".parse::<IpAddr>().unwrap());
        assert_eq!(AddressPool::parse("10.0.0.0/8").unwrap().len(), POOL);
        for wrong in ["", "10.0.0.0/31", "10.0.0.0/33", "web"] {
            assert!(AddressPool::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks_contain_addresses() {
        let networks = |texts: &[&str]| {
            Networks::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        let some = networks(&["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"]).unwrap();
        for (address, expected) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("::ffff:10.0.0.1", true),
            ("2001:db8:1::", true),
            ("2001:db9::", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::a00:1", false),
        ] {
            assert_eq!(some.contain(address.parse().unwrap()), expected, "{address}");
        }
        assert!(networks(&["0.0.0.0/0"]).unwrap().contain("1.2.3.4".parse().unwrap()));
        assert!(!networks(&["0.0.0.0/0"]).unwrap().contain("::1".parse().unwrap()));
        assert!(networks(&["::/0"]).unwrap().contain("::1".parse().unwrap()));
        assert_eq!(networks(&["::1", "10.0.0.0/33"]).unwrap_err().0, 1);
    }
}
