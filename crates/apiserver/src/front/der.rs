//! The few forms of DER, the encoding of certificates, that ours are made of.

use std::net::IpAddr;

use time::OffsetDateTime;

pub(super) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OCTETS: u8 = 0x04;

/// A value under a tag.
pub(crate) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    match length {
        0..=0x7f => out.push(length as u8),
        _ => {
            let bytes = length.to_be_bytes();
            let significant = &bytes[length.leading_zeros() as usize / 8..];
            out.push(0x80 | significant.len() as u8);
            out.extend_from_slice(significant);
        }
    }
    out.extend_from_slice(content);
    out
}

pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

pub(crate) fn object_id(encoded: &[u8]) -> Vec<u8> {
    tagged(0x06, encoded)
}

/// A positive number. The first byte has to have its highest bit clear and not be zero.
pub(crate) fn number(bytes: &[u8]) -> Vec<u8> {
    tagged(0x02, bytes)
}

/// Bits, of which the last byte leaves some unused.
pub(crate) fn bits(unused: u8, bytes: &[u8]) -> Vec<u8> {
    tagged(0x03, &[&[unused], bytes].concat())
}

pub(crate) fn octets(bytes: &[u8]) -> Vec<u8> {
    tagged(OCTETS, bytes)
}

pub(super) fn explicit(number: u8, content: &[u8]) -> Vec<u8> {
    tagged(0xa0 | number, content)
}

/// A distinguished name: attributes in order, each one its own set.
pub(super) fn name<'a>(attributes: impl IntoIterator<Item = (&'a [u8], &'a str)>) -> Vec<u8> {
    let mut all = Vec::new();
    for (kind, value) in attributes {
        let pair = sequence(&[&object_id(kind), &tagged(0x0c, value.as_bytes())]);
        all.extend(tagged(SET, &pair));
    }
    tagged(SEQUENCE, &all)
}

/// A moment, to the second: with two digits for the year as long as that is unambiguous, as X.509 wants it.
pub(super) fn moment(at: OffsetDateTime) -> Vec<u8> {
    let (year, month, day) = (at.year(), at.month() as u8, at.day());
    let rest = format!("{month:02}{day:02}{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second());
    match year {
        1950..=2049 => tagged(0x17, format!("{:02}{rest}", year % 100).as_bytes()),
        _ => tagged(0x18, format!("{year:04}{rest}").as_bytes()),
    }
}

pub(super) fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if critical { &[0x01, 0x01, 0xff] } else { &[] };
    sequence(&[&object_id(id), critical, &octets(value)])
}

/// One entry of the names that a certificate stands for.
pub(super) fn general_name(name: &str) -> Vec<u8> {
    match name.parse() {
        Ok(IpAddr::V4(address)) => tagged(0x87, &address.octets()),
        Ok(IpAddr::V6(address)) => tagged(0x87, &address.octets()),
        Err(_) => tagged(0x82, name.as_bytes()),
    }
}
