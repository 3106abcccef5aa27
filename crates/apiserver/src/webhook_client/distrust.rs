//! What is wrong with the certificate of a server, in the words of Go's `crypto/x509` and in the order in which it looks: time, name,
//! authority.
//!
//! Nothing is verified here. Whoever asks knows that the certificate is not believed.

use std::net::IpAddr;
use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use watchkeeper_go::{Time, quote};
use watchkeeper_x509::{AlternativeName, Certificate, PublicKey, PublicKeyInfo, oid};

use super::Caller;

/// How many names of a certificate are told.
const MOST_NAMES: usize = 100;

/// What is said of a certificate, the first of a chain, that is not believed. `None` if nothing is seen that is wrong with it.
pub(super) fn distrusted(
    chain: &[Vec<u8>],
    is_foreign: bool,
    caller: &Caller,
    now: SystemTime,
) -> Option<String> {
    let (first, others) = chain.split_first()?;
    let certificate = Certificate::read(first).ok()?;
    let names = caller.server_name.clone().unwrap_or_else(|| caller.host().to_owned());
    if let Some(why) = untimely(&certificate, now).or_else(|| misnamed(&certificate, &names)) {
        return Some(why);
    }
    if !is_foreign {
        return None;
    }
    let authorities: Vec<_> = CertificateDer::pem_slice_iter(&caller.authorities).flatten().collect();
    let authorities: Vec<_> = authorities.iter().filter_map(|one| Certificate::read(one).ok()).collect();
    let others: Vec<_> = others.iter().filter_map(|other| Certificate::read(other).ok()).collect();
    let unknown = "certificate signed by unknown authority";
    Some(match supposed(&certificate, &others, &authorities) {
        Some((signed, authority)) => format!(
            "{unknown} (possibly because of {} while trying to verify candidate authority certificate {})",
            quote(&not_signed(signed, authority)),
            quote(&title(authority))
        ),
        None => unknown.to_owned(),
    })
}

/// What is said of a certificate that has expired, or does not count yet.
fn untimely(certificate: &Certificate<'_>, now: SystemTime) -> Option<String> {
    let validity = certificate.validity;
    let (relation, limit) = match () {
        () if now < validity.not_before => ("before", validity.not_before),
        () if now > validity.not_after => ("after", validity.not_after),
        () => return None,
    };
    let [now, limit] = [now, limit].map(|time| Time::from(time).rfc3339());
    Some(format!("certificate has expired or is not yet valid: current time {now} is {relation} {limit}"))
}

/// What is said of a certificate that is for others.
fn misnamed(certificate: &Certificate<'_>, host: &str) -> Option<String> {
    let names = &certificate.alternative_names;
    if let Ok(asked) = host.parse::<IpAddr>() {
        let addresses = names.iter().filter_map(|name| match name {
            AlternativeName::Address(address) => Some(*address),
            AlternativeName::Dns(_) => None,
        });
        let addresses: Vec<IpAddr> = addresses.collect();
        if addresses.contains(&asked) {
            return None;
        }
        if addresses.is_empty() {
            return Some(format!(
                "cannot validate certificate for {host} because it doesn't contain any IP SANs"
            ));
        }
        let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        return Some(others_named(&shown, "IP SANs", host));
    }
    let hosts = names.iter().filter_map(|name| match name {
        AlternativeName::Dns(name) => Some(name.clone()),
        AlternativeName::Address(_) => None,
    });
    let hosts: Vec<String> = hosts.collect();
    if hosts.iter().any(|pattern| matches(pattern, host)) {
        return None;
    }
    let common_name = certificate.subject.values(oid::COMMON_NAME).next_back();
    Some(match common_name {
        Some(common_name) if names.is_empty() && matches(common_name, host) => {
            "certificate relies on legacy Common Name field, use SANs instead".to_owned()
        }
        _ if hosts.is_empty() => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        _ => others_named(&hosts, "names", host),
    })
}

fn others_named(names: &[String], what: &str, host: &str) -> String {
    match names.len() {
        MOST_NAMES.. => {
            format!("certificate is valid for {} {what}, but none matched {host}", names.len())
        }
        _ => format!("certificate is valid for {}, not {host}", names.join(", ")),
    }
}

/// Whether a name of a certificate, whose first label may be `*`, is that of a host.
fn matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    let host = host.strip_suffix('.').unwrap_or(&host);
    match pattern.strip_prefix("*.") {
        Some(rest) => host.split_once('.').is_some_and(|(label, above)| !label.is_empty() && above == rest),
        None => !pattern.is_empty() && pattern == host,
    }
}

/// A certificate of a chain, and the authority of the name of its issuer, which did not sign it.
fn supposed<'a, 'b>(
    certificate: &'b Certificate<'a>,
    others: &'b [Certificate<'a>],
    authorities: &'b [Certificate<'a>],
) -> Option<(&'b Certificate<'a>, &'b Certificate<'a>)> {
    let mut signed = certificate;
    // One more than there are: a chain may lead back to itself.
    for _ in 0..=others.len() {
        let is_issuer = |one: &&Certificate<'_>| one.subject.encoded == signed.issuer.encoded;
        // The likeliest first, and of those that are as likely the first.
        let likely = |one: &&Certificate<'_>| match (one.subject_key_id, signed.authority_key_id) {
            (mine, named) if mine == named => 0,
            (None, _) | (_, None) => 1,
            _ => 2,
        };
        if let Some(authority) = authorities.iter().filter(is_issuer).min_by_key(likely) {
            return Some((signed, authority));
        }
        signed = others.iter().find(is_issuer)?;
    }
    None
}

/// What is said of a certificate that was not signed by an authority.
fn not_signed(signed: &Certificate<'_>, authority: &Certificate<'_>) -> String {
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    if !authority.is_authority {
        return "x509: invalid signature: parent certificate cannot sign this kind of certificate".to_owned();
    }
    let algorithm = signed.signature_algorithm;
    let algorithm = match () {
        () if algorithm == oid::ED25519 => "Ed25519",
        () if algorithm.starts_with(ECDSA) => "ECDSA",
        // Those of one family differ in the last number.
        () if algorithm.split_last().map(|(_, family)| family)
            == oid::RSA.split_last().map(|(_, family)| family) =>
        {
            "RSA"
        }
        () => return UNSUPPORTED.to_owned(),
    };
    let key = PublicKeyInfo::read(authority.public_key).ok().map(|info| info.key);
    let key = match key {
        Some(PublicKey::Rsa { .. }) => ("RSA", "*rsa.PublicKey"),
        Some(PublicKey::Ec { .. }) => ("ECDSA", "*ecdsa.PublicKey"),
        _ => ("Ed25519", "ed25519.PublicKey"),
    };
    match (algorithm, key) {
        (algorithm, (of, kind)) if algorithm != of => {
            format!(
                "x509: signature algorithm specifies an {algorithm} public key, but have public key of type {kind}"
            )
        }
        ("RSA", _) => "crypto/rsa: verification error".to_owned(),
        (algorithm, _) => format!("x509: {algorithm} verification failure"),
    }
}

const UNSUPPORTED: &str = "x509: cannot verify signature: algorithm unimplemented";

/// What an authority is called.
fn title(authority: &Certificate<'_>) -> String {
    let common_name = authority.subject.values(oid::COMMON_NAME).next_back().filter(|name| !name.is_empty());
    let name = common_name.or_else(|| authority.subject.organizations().next());
    name.map_or_else(|| format!("serial:{}", decimal(authority.serial)), str::to_owned)
}

/// A number as people write it.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0_u8];
    for byte in bytes {
        let mut carry = u16::from(*byte);
        for digit in &mut digits {
            let value = u16::from(*digit) * 256 + carry;
            (*digit, carry) = ((value % 10) as u8, value / 10);
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_any_length_is_written_in_decimal() {
        assert_eq!(decimal(&[]), "0");
        assert_eq!(decimal(&[0, 0xff]), "255");
        assert_eq!(decimal(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), "18446744073709551616");
    }

    #[test]
    fn a_star_stands_for_one_label() {
        assert!(matches("*.Hooks.dev", "a.hooks.dev") && matches("hooks.dev", "hooks.DEV."));
        assert!(!matches("*.hooks.dev", "hooks.dev") && !matches("*.hooks.dev", "a.b.hooks.dev"));
        assert!(!matches("", "hooks.dev") && !matches("*.dev", ".dev"));
    }
}
