//! Addresses: of hosts, of mail boxes, of things.

use regex::Regex;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;
use watchkeeper_go::address::{Block, parse_sloppy};

/// Letters and symbols of any script are welcome, underscores are not; a host with dots ends in letters.
pub(super) fn is_hostname(text: &str) -> bool {
    const C: &str = r"a-zA-Z0-9\p{S}\p{L}";
    static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let label = format!(r"[{C}](-?[{C}]{{0,62}})?");
        let dotted = format!(r"([{C}]([{C}\-]{{0,61}}[{C}])?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
        Regex::new(&format!("^({label}|{dotted})$")).ok()
    });
    text.len() <= 255
        && text.split('.').all(|part| part.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|hostname| hostname.is_match(text))
}

/// An address with dots. Leading zeros pass; so does an address of version 6 that ends in one of version 4.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && parse_sloppy(text).is_some()
}

/// An address with colons, without leading zeros in what it may have of version 4.
pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    Block::parse_sloppy(text).is_some()
}

/// Six, eight or twenty bytes, in pairs with colons or dashes, or in fours with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: [usize; 3]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len())
            && groups
                .iter()
                .all(|group| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

/// An absolute URI or an absolute path, as on the request line of HTTP.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let (authority, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    is_authority(authority) && escapes_are_good(path)
}

/// The scheme, empty if there is none; `None` if there is a colon with nothing in front.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at > 0 => return Some((&text[..at], &text[at + 1..])),
            b':' => return None,
            _ => return Some(("", text)),
        }
    }
    Some(("", text))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let user_is_good =
        user.chars().all(|char| char.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(char));
    user_is_good && escapes_are_good(user) && is_host(host)
}

fn is_host(text: &str) -> bool {
    if let Some(bracketed) = text.strip_prefix('[') {
        let Some((address, port)) = bracketed.rsplit_once(']') else {
            return false;
        };
        return is_port(port) && is_bracketed(address);
    }
    let colon = text.rfind(':').unwrap_or(text.len());
    let (host, port) = text.split_at(colon);
    let plain =
        |byte: u8| byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte);
    is_port(port) && !host.contains(':') && host.bytes().all(plain) && host_escapes_are_good(host)
}

/// Between brackets stands an IPv6 address, perhaps with a zone behind `%25`.
fn is_bracketed(text: &str) -> bool {
    let (address, zone) =
        text.split_once("%25").map_or((text, None), |(address, zone)| (address, Some(zone)));
    is_ipv6(address) && zone.is_none_or(|zone| !zone.is_empty() && escapes_are_good(zone))
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn escapes_are_good(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some())
}

/// In a host only bytes beyond ASCII may be escaped, and the percent sign itself.
fn host_escapes_are_good(text: &str) -> bool {
    escapes(text).all(|escape| escape.is_some_and(|byte| byte >= 0x80 || byte == b'%'))
}

/// The byte behind each percent sign, `None` where there are no two digits.
fn escapes(text: &str) -> impl Iterator<Item = Option<u8>> {
    text.split('%').skip(1).map(|rest| {
        let digits = rest.get(..2)?;
        u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
    })
}

/// One address of RFC 5322, with or without a name in front: `a@b`, `A <a@b>`.
pub(super) fn is_email(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.address().is_some() && reader.skip_comments().is_some() && reader.rest.is_empty()
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn address(&mut self) -> Option<()> {
        self.skip_space();
        let start = self.rest;
        if self.mail_box().is_some() {
            return Some(());
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        self.consume('<')?;
        self.mail_box()?;
        self.consume('>')
    }

    fn mail_box(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            (self.quoted()? > 0).then_some(())?;
        } else {
            self.atom(true)?;
        }
        self.consume('@')?;
        self.skip_space();
        if self.rest.starts_with('[') {
            let end = self.rest.find(']')?;
            let literal = &self.rest[1..end];
            self.rest = &self.rest[end + 1..];
            return literal.parse::<IpAddr>().is_ok().then_some(());
        }
        self.atom(true)
    }

    /// One word or more.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            self.skip_space();
            let word = if self.rest.starts_with('"') { self.quoted().map(drop) } else { self.atom(false) };
            match word {
                Some(()) => words += 1,
                None => return (words > 0).then_some(()),
            }
        }
    }

    /// Dots are welcome; `strict` forbids them at the ends and next to each other.
    fn atom(&mut self, strict: bool) -> Option<()> {
        let end = self
            .rest
            .find(|char: char| char <= ' ' || char == '\u{7f}' || "()<>[]:;@\\,\"".contains(char))
            .unwrap_or(self.rest.len());
        let atom = &self.rest[..end];
        if atom.is_empty() || (strict && atom.split('.').any(str::is_empty)) {
            return None;
        }
        self.rest = &self.rest[end..];
        Some(())
    }

    /// A quoted string; says how many characters it holds.
    fn quoted(&mut self) -> Option<usize> {
        let mut chars = self.rest.char_indices().skip(1);
        let mut length = 0;
        loop {
            let (at, char) = chars.next()?;
            match char {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(length);
                }
                '\\' => {
                    let (_, escaped) = chars.next()?;
                    (escaped >= ' ' || escaped == '\t').then_some(())?;
                }
                char if char < ' ' && char != '\t' || char == '\u{7f}' => return None,
                _ => {}
            }
            length += 1;
        }
    }

    fn consume(&mut self, char: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(char)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.rest.starts_with('(') {
            let mut depth = 0;
            let mut escaped = false;
            let end = self.rest.find(|char| {
                match char {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                depth == 0
            })?;
            self.rest = &self.rest[end + 1..];
            self.skip_space();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(check: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(check(text), "{text:?}");
        }
        for text in bad {
            assert!(!check(text), "{text:?}");
        }
    }

    #[test]
    fn addresses_of_the_internet() {
        table(
            is_ipv4,
            &["192.168.0.1", "192.168.000.001", "::ffff:1.2.3.4", "::01.2.3.4"],
            &["256.0.0.1", "1.2.3", "", "1.2.3.4.5", "a.b.c.d", "1..2.3"],
        );
        table(is_ipv6, &["::1", "fe80::1", "::ffff:1.2.3.4"], &["1.2.3.4", "fe80::1%eth0", ":::", ""]);
        table(
            is_cidr,
            &["10.0.0.0/8", "2001:db8::/32", "010.0.0.1/08"],
            &["10.0.0.0/33", "10.0.0.0", "::/129", "10.0.0.0/", "10.0.0.0/+8"],
        );
        table(
            is_mac,
            &["00:00:5e:00:53:01", "02-00-5e-10-00-00-00-01", "0000.5e00.5301"],
            &["00:00:5e:00:53", "zz:00:5e:00:53:01", "", "00-00:5e:00:53:01"],
        );
        table(
            is_hostname,
            &["localhost", "example.com", "a-b.example", "münchen.example", "a-", "1"],
            &["", "a_b", "-a", "a..b", "example.c", "a.b1", &"a".repeat(64)],
        );
    }

    #[test]
    fn addresses_of_things() {
        table(
            is_request_uri,
            &[
                "http://example.com",
                "https://u:p@[::1]:80/a?b=%zz",
                "/a/b",
                "mailto:a@b",
                "*",
                "http://a b".split(' ').next().unwrap_or_default(),
                "x:",
            ],
            &[
                "",
                "a/b",
                "example.com",
                ":foo",
                "http://a b/",
                "/%zz",
                "http://[::1",
                "http://a:x/",
                "ht\ttp://a",
            ],
        );
    }

    #[test]
    fn addresses_of_mail_boxes() {
        table(
            is_email,
            &[
                "a@b",
                "a.b+c@example.com",
                "A B <a@b>",
                "\"x y\"@b",
                "<a@b>",
                "a@[1.2.3.4]",
                "a@b (comment)",
                "é@b",
                "\"A\" <a@b>",
            ],
            &[
                "", "a", "@b", "a@", "a@b@c", "a..b@c", ".a@b", "a@b.", "a@b, c@d", "A <a@b", "a b@c",
                "\"\"@b",
            ],
        );
    }
}
