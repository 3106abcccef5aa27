use std::net::IpAddr;
use std::time::SystemTime;

use crate::der::{self, BIT_STRING, BOOLEAN, INTEGER, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE};
use crate::{Malformed, Name, oid, time};

/// A certificate, as far as somebody looks into it. Neither its signature nor its chain is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// Its number, big-endian, as it is written.
    pub serial: &'a [u8],
    /// The [object identifier](oid) of the algorithm that it is signed with.
    pub signature_algorithm: &'a [u8],
    /// The issuer.
    pub issuer: Name<'a>,
    /// The subject: the holder of the key.
    pub subject: Name<'a>,
    /// The validity.
    pub validity: Validity,
    /// The key of its owner: a [`PublicKeyInfo`](crate::PublicKeyInfo), as it is written.
    pub public_key: &'a [u8],
    /// Whether its owner may issue certificates.
    pub is_authority: bool,
    /// By which certificates name the key that signed them.
    pub subject_key_id: Option<&'a [u8]>,
    /// What the key that signed it is named by.
    pub authority_key_id: Option<&'a [u8]>,
    /// The names and addresses it stands for. Other kinds of names are left out.
    pub alternative_names: Vec<AlternativeName>,
}

/// The validity of a certificate, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: SystemTime,
    /// The last second.
    pub not_after: SystemTime,
}

/// A name that a certificate stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlternativeName {
    /// The name of a host.
    Dns(String),
    /// An address.
    Address(IpAddr),
}

impl<'a> Certificate<'a> {
    /// Reads a certificate.
    pub fn read(encoded: &'a [u8]) -> Result<Self, Malformed> {
        let mut certificate = der::only(SEQUENCE, encoded)?.reader();
        let mut signed = certificate.expect(SEQUENCE)?.reader();
        let signature_algorithm = certificate.expect(SEQUENCE)?.reader().expect(OBJECT_ID)?.object_id()?;
        certificate.expect(BIT_STRING)?;
        certificate.finish()?;

        signed.optional(der::explicit(0))?; // the version
        let serial = signed.expect(INTEGER)?.content;
        signed.expect(SEQUENCE)?; // the algorithm of the signature, again
        let issuer = Name::read(&mut signed)?;
        let mut validity = signed.expect(SEQUENCE)?.reader();
        let (not_before, not_after) = (time::read(&mut validity)?, time::read(&mut validity)?);
        validity.finish()?;
        let subject = Name::read(&mut signed)?;
        let public_key = signed.expect(SEQUENCE)?.encoded;
        signed.optional(der::implicit(1))?; // identifiers that nobody uses
        signed.optional(der::implicit(2))?;
        let extensions = signed.optional(der::explicit(3))?;
        signed.finish()?;

        let mut read = Self {
            serial,
            signature_algorithm,
            issuer,
            subject,
            validity: Validity { not_before, not_after },
            public_key,
            is_authority: false,
            subject_key_id: None,
            authority_key_id: None,
            alternative_names: Vec::new(),
        };
        if let Some(extensions) = extensions {
            read.read_extensions(der::only(SEQUENCE, extensions.content)?.reader())?;
        }
        Ok(read)
    }

    fn read_extensions(&mut self, mut extensions: Reader<'a>) -> Result<(), Malformed> {
        let mut seen: Vec<&[u8]> = Vec::new();
        while !extensions.is_empty() {
            let mut extension = extensions.expect(SEQUENCE)?.reader();
            let id = extension.expect(OBJECT_ID)?.object_id()?;
            extension.optional(BOOLEAN)?.map_or(Ok(false), |critical| critical.boolean())?;
            let value = extension.expect(OCTET_STRING)?.content;
            extension.finish()?;
            let known =
                [oid::BASIC_CONSTRAINTS, oid::SUBJECT_KEY_ID, oid::AUTHORITY_KEY_ID, oid::ALTERNATIVE_NAMES];
            if !known.contains(&id) {
                continue;
            }
            if seen.contains(&id) {
                return Err(Malformed("an extension is there twice"));
            }
            seen.push(id);
            match id {
                oid::BASIC_CONSTRAINTS => {
                    let mut constraints = der::only(SEQUENCE, value)?.reader();
                    let is_authority = constraints.optional(BOOLEAN)?;
                    self.is_authority = is_authority.map_or(Ok(false), |value| value.boolean())?;
                }
                oid::SUBJECT_KEY_ID => {
                    self.subject_key_id = Some(der::only(OCTET_STRING, value)?.content);
                }
                oid::AUTHORITY_KEY_ID => {
                    let mut authority = der::only(SEQUENCE, value)?.reader();
                    self.authority_key_id = authority.optional(der::implicit(0))?.map(|id| id.content);
                }
                _ => self.alternative_names = alternative_names(der::only(SEQUENCE, value)?.reader())?,
            }
        }
        Ok(())
    }
}

const DNS: u8 = der::implicit(2);
const ADDRESS: u8 = der::implicit(7);

fn alternative_names(mut names: Reader<'_>) -> Result<Vec<AlternativeName>, Malformed> {
    let mut read = Vec::new();
    while !names.is_empty() {
        let name = names.value()?;
        let (four, sixteen) = (<[u8; 4]>::try_from(name.content), <[u8; 16]>::try_from(name.content));
        read.push(match (name.tag, str::from_utf8(name.content), four, sixteen) {
            (DNS, Ok(name), ..) if name.is_ascii() => AlternativeName::Dns(name.to_owned()),
            (ADDRESS, _, Ok(four), _) => AlternativeName::Address(four.into()),
            (ADDRESS, _, _, Ok(sixteen)) => AlternativeName::Address(sixteen.into()),
            (DNS | ADDRESS, ..) => return Err(Malformed("an alternative name is not what it should be")),
            _ => continue,
        });
    }
    Ok(read)
}

/// Writes one entry of the alternative names: an address if it is one, otherwise the name of a host.
pub fn alternative_name(name: &str) -> Vec<u8> {
    match name.parse() {
        Ok(IpAddr::V4(address)) => der::tagged(ADDRESS, &address.octets()),
        Ok(IpAddr::V6(address)) => der::tagged(ADDRESS, &address.octets()),
        Err(_) => der::tagged(DNS, name.as_bytes()),
    }
}

/// Writes an extension of a certificate.
pub fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { der::boolean(true) } else { Vec::new() };
    der::sequence(&[&der::object_id(id), &critical, &der::octets(value)])
}
