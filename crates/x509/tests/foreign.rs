//! Certificates and requests that OpenSSL wrote.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, UNIX_EPOCH};

use watchkeeper_x509::{AlternativeName, Certificate, CertificateRequest, PublicKey, PublicKeyInfo, oid};

const AUTHORITY: &[u8] = include_bytes!("data/rsa-authority.crt.der");
/// Its names are written with two bytes a character.
const WIDE: &[u8] = include_bytes!("data/wide-name.csr.der");

#[test]
fn a_certificate_says_who_when_and_where() {
    let certificate = Certificate::read(AUTHORITY).unwrap();
    assert_eq!(certificate.subject.organizations().collect::<Vec<_>>(), ["system:masters", "Grün"]);
    assert_eq!(certificate.subject.values(oid::COMMON_NAME).collect::<Vec<_>>(), ["jane"]);
    assert_eq!(certificate.issuer, certificate.subject, "it signed itself");
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!(certificate.validity.not_before, at(1_794_807_356)); // 2026-11-16 05:35:56
    assert_eq!(certificate.validity.not_after, at(4_127_607_356)); // 2100-10-19 05:35:56
    assert!(certificate.is_authority);
    let id = [
        0x61, 0x2b, 0xc4, 0xb0, 0x82, 0x80, 0xaf, 0x7a, 0x19, 0x32, 0xe5, 0x94, 0xfb, 0x9c, 0xe1, 0xe3, 0xea,
        0xba, 0x9c, 0x33,
    ];
    assert_eq!(certificate.subject_key_id, Some(&id[..]));
    assert_eq!(certificate.authority_key_id, None);
    assert_eq!((&certificate.serial[..3], certificate.serial.len()), (&[0x6b, 0x63, 0x7f][..], 20));
    let rsa_with_sha256 = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
    assert_eq!(certificate.signature_algorithm, rsa_with_sha256);
    let names = [
        AlternativeName::Dns("api.example".into()),
        AlternativeName::Address("192.0.2.7".parse().unwrap()),
        AlternativeName::Address("2001:db8::1".parse().unwrap()),
    ];
    assert_eq!(certificate.alternative_names, names, "mail addresses and URIs are left out");
    match PublicKeyInfo::read(certificate.public_key).unwrap().key {
        PublicKey::Rsa { modulus, exponent } => {
            assert_eq!((modulus.len(), modulus[..3].to_vec()), (256, vec![0xb5, 0x8f, 0xc8]));
            assert_eq!(exponent, [1, 0, 1]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_names_groups_whichever_way_they_are_written() {
    let request = CertificateRequest::read(WIDE).unwrap();
    assert_eq!(request.subject.organizations().collect::<Vec<_>>(), ["system:masters", "Grün"]);
    match PublicKeyInfo::read(request.public_key).unwrap().key {
        PublicKey::Ec { curve, point } => assert_eq!((curve, point.len(), point[0]), (oid::P256, 65, 4)),
        other => panic!("{other:?}"),
    }
    assert!(Certificate::read(WIDE).is_err() && CertificateRequest::read(AUTHORITY).is_err());
}

#[test]
fn what_is_cut_off_or_goes_on_is_refused() {
    for end in 0..AUTHORITY.len() {
        assert!(Certificate::read(&AUTHORITY[..end]).is_err(), "{end}");
    }
    for end in 0..WIDE.len() {
        assert!(CertificateRequest::read(&WIDE[..end]).is_err(), "{end}");
    }
    assert!(Certificate::read(&[AUTHORITY, &[0]].concat()).is_err());
    assert!(CertificateRequest::read(&[WIDE, &[0]].concat()).is_err());
}
