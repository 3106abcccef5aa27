//! What is written is read back, and what strangers send does no harm.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use watchkeeper_x509::der::{self, BIT_STRING, Reader};
use watchkeeper_x509::{
    AlternativeName, Certificate, CertificateRequest, PublicKey, PublicKeyInfo, alternative_name, extension,
    name, oid, time,
};

const AUTHORITY: &[u8] = include_bytes!("data/rsa-authority.crt.der");
const WIDE: &[u8] = include_bytes!("data/wide-name.csr.der");

fn cases() -> ProptestConfig {
    let cases = std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Everything that reads. What it finds does not matter.
fn read_as_everything(bytes: &[u8]) {
    let _ = Certificate::read(bytes);
    let _ = CertificateRequest::read(bytes);
    let _ = PublicKeyInfo::read(bytes);
    let mut reader = Reader::new(bytes);
    while let Ok(value) = reader.value() {
        let _ = (value.unsigned(), value.whole_bits(), value.boolean(), value.object_id());
    }
}

/// A tag of one byte.
fn tag() -> impl Strategy<Value = u8> {
    any::<u8>().prop_filter("tags of more bytes are not read", |tag| tag & 0x1f != 0x1f)
}

/// A certificate of which all that is read can be chosen.
fn certificate(
    groups: &[String],
    (begin, end): (SystemTime, SystemTime),
    names: &[String],
    is_authority: bool,
) -> Vec<u8> {
    let algorithm = der::sequence(&[&der::object_id(oid::ECDSA_WITH_SHA256)]);
    let subject = name(groups.iter().map(|group| (oid::ORGANIZATION, group.as_str())));
    let constraints = if is_authority { der::boolean(true) } else { Vec::new() };
    let names: Vec<u8> = names.iter().flat_map(|name| alternative_name(name)).collect();
    let extensions = [
        extension(oid::BASIC_CONSTRAINTS, true, &der::sequence(&[&constraints])),
        extension(oid::KEY_USAGE, true, &der::bits(7, &[0x80])),
        extension(oid::ALTERNATIVE_NAMES, false, &der::sequence(&[&names])),
    ];
    let signed = der::sequence(&[
        &der::tagged(der::explicit(0), &der::unsigned(&[2])),
        &der::unsigned(&[17]),
        &algorithm,
        &name([(oid::COMMON_NAME, "authority")]),
        &der::sequence(&[&time::write(begin), &time::write(end)]),
        &subject,
        &PublicKeyInfo::write_ec(oid::P256, &[4; 65]),
        &der::tagged(der::explicit(3), &der::tagged(der::SEQUENCE, &extensions.concat())),
    ]);
    der::sequence(&[&signed, &algorithm, &der::bits(0, &[1, 2, 3])])
}

/// Moments that certificates can hold, to the second.
fn moment() -> impl Strategy<Value = SystemTime> {
    (0..253_402_300_800_u64).prop_map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn damaged_certificates_are_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for good in [AUTHORITY, WIDE] {
            let mut bytes = good.to_vec();
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            read_as_everything(&bytes);
        }
    }

    #[test]
    fn values_are_read_as_they_were_written(
        values in prop::collection::vec((tag(), prop::collection::vec(any::<u8>(), 0..600)), 0..5),
    ) {
        let written: Vec<u8> = values.iter().flat_map(|(tag, content)| der::tagged(*tag, content)).collect();
        let mut reader = Reader::new(&written);
        for (tag, content) in &values {
            let value = reader.value().unwrap();
            prop_assert_eq!((value.tag, value.content), (*tag, &content[..]));
            prop_assert_eq!(value.encoded, der::tagged(*tag, content));
        }
        prop_assert!(reader.finish().is_ok());
    }

    /// There is one way to write each value.
    #[test]
    fn what_is_read_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut reader = Reader::new(&bytes);
        while let Ok(value) = reader.value() {
            prop_assert_eq!(der::tagged(value.tag, value.content), value.encoded);
            if let (der::INTEGER, Ok(number)) = (value.tag, value.unsigned()) {
                prop_assert_eq!(der::unsigned(number), value.encoded);
            }
            if let (BIT_STRING, Ok(bits)) = (value.tag, value.whole_bits()) {
                prop_assert_eq!(der::bits(0, bits), value.encoded);
            }
        }
    }

    #[test]
    fn numbers_are_read_as_they_were_written(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let written = der::unsigned(&bytes);
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        prop_assert_eq!(der::only(der::INTEGER, &written).unwrap().unsigned(), Ok(&bytes[zeros..]));
    }

    #[test]
    fn certificates_are_read_as_they_were_written(
        groups in prop::collection::vec("\\PC{0,20}", 0..4),
        life in (moment(), moment()),
        hosts in prop::collection::vec("[a-z]{1,10}(\\.[a-z]{1,10}){0,2}", 0..3),
        addresses in prop::collection::vec(any::<std::net::IpAddr>(), 0..3),
        is_authority: bool,
    ) {
        let names: Vec<String> =
            hosts.iter().cloned().chain(addresses.iter().map(ToString::to_string)).collect();
        let written = certificate(&groups, life, &names, is_authority);
        let read = Certificate::read(&written).unwrap();
        prop_assert_eq!(read.subject.organizations().collect::<Vec<_>>(), groups);
        prop_assert_eq!((read.validity.not_before, read.validity.not_after), life);
        prop_assert_eq!(read.is_authority, is_authority);
        let hosts = hosts.into_iter().map(AlternativeName::Dns);
        let expected: Vec<_> = hosts.chain(addresses.into_iter().map(AlternativeName::Address)).collect();
        prop_assert_eq!(read.alternative_names, expected);
        let key = PublicKeyInfo::read(read.public_key).unwrap().key;
        prop_assert_eq!(key, PublicKey::Ec { curve: oid::P256, point: &[4; 65] });
    }
}

#[test]
fn values_that_are_not_written_in_the_one_right_way_are_refused() {
    let value = |bytes: &'static [u8]| Reader::new(bytes).value().map(|value| value.content);
    assert_eq!(value(&[4, 1, 7]), Ok(&[7][..]));
    for (bytes, why) in [
        (&[][..], "a value is cut off"),
        (&[4], "a value is cut off"),
        (&[4, 2, 0], "a value is cut off"),
        (&[4, 0x82, 1], "a value is cut off"),
        (&[4, 0x84, 0xff, 0xff, 0xff, 0xff, 0], "a value is cut off"),
        (&[4, 0x80, 0, 0], "a length is indefinite"),
        (&[4, 0x81, 1, 7], "a length is not written in the shortest way"),
        (&[4, 0x82, 0, 0x80], "a length is not written in the shortest way"),
        (&[4, 0x85, 0, 0, 0, 0, 1, 7], "a value is longer than anything can be"),
        (&[0x1f, 1, 7], "a tag has more than one byte"),
    ] {
        assert_eq!(value(bytes).unwrap_err().to_string(), why, "{bytes:?}");
    }
    let number = |bytes: &'static [u8]| Reader::new(bytes).value().unwrap().unsigned().is_ok();
    assert!(number(&[2, 1, 0]) && number(&[2, 2, 0, 0x80]) && number(&[2, 1, 0x7f]));
    assert!(!number(&[2, 0]) && !number(&[2, 1, 0x80]) && !number(&[2, 2, 0, 0x7f]));
    let id = |bytes: &'static [u8]| Reader::new(bytes).value().unwrap().object_id().is_ok();
    assert!(id(&[6, 3, 0x55, 4, 3]) && !id(&[6, 0]) && !id(&[6, 1, 0x80]) && !id(&[6, 2, 0x55, 0x84]));
}

/// Names as somebody could write them who wants to be taken for somebody else.
#[test]
fn texts_are_read_as_go_reads_them() {
    let read = |tag: u8, bytes: &[u8]| {
        let attribute = der::sequence(&[&der::object_id(oid::ORGANIZATION), &der::tagged(tag, bytes)]);
        let subject = der::sequence(&[&der::tagged(der::SET, &attribute)]);
        let key = PublicKeyInfo::write_ec(oid::P256, &[4; 65]);
        let attributes = der::tagged(der::explicit(0), &[]);
        let signed = der::sequence(&[&der::unsigned(&[]), &subject, &key, &attributes]);
        let algorithm = der::sequence(&[&der::object_id(oid::ECDSA_WITH_SHA256)]);
        let request = der::sequence(&[&signed, &algorithm, &der::bits(0, &[])]);
        let read =
            CertificateRequest::read(&request).map(|request| request.subject.attributes[0].value.clone());
        read.map_err(|_| ())
    };
    let text = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(read(0x0c, "ä".as_bytes()), text("ä"));
    assert_eq!(read(0x0c, &[0xe4]), Err(()), "not UTF-8");
    assert_eq!(read(0x13, b"system:masters"), text("system:masters"));
    assert_eq!(read(0x13, b"a@b"), Err(()), "not printable");
    assert_eq!(read(0x12, b"17 4"), text("17 4"));
    assert_eq!(read(0x12, b"x"), Err(()), "no digit");
    assert_eq!(read(0x16, b"a@b"), text("a@b"));
    assert_eq!(read(0x16, "ä".as_bytes()), Err(()), "not ASCII");
    assert_eq!(read(0x14, &[0xe4]), text("ä"));
    assert_eq!(read(0x1e, &[0, b'o', 0, b'p', 0, b's']), text("ops"));
    assert_eq!(read(0x1e, &[0, b'o', 0, 0]), text("o"), "it may end with a zero");
    assert_eq!(read(0x1e, &[0, b'o', 0]), Err(()), "half a character");
    assert_eq!(read(0x1e, &[0xd8, 0, 0xdc, 0]), Err(()), "surrogates");
    assert_eq!(read(0x02, &[7]), Ok(None), "no text at all");
}

#[test]
fn times_that_do_not_exist_are_refused() {
    let read = |tag: u8, text: &str| {
        let good = time::write(UNIX_EPOCH);
        let whole = certificate(&[], (UNIX_EPOCH, UNIX_EPOCH), &[], false);
        // Both have the same length, so that nothing around them changes.
        let at = whole.windows(good.len()).position(|window| window == good).unwrap();
        let mut changed = whole;
        changed.splice(at..at + good.len(), der::tagged(tag, text.as_bytes()));
        Certificate::read(&changed).map(|read| read.validity.not_before)
    };
    assert_eq!(read(0x17, "700101000000Z"), Ok(UNIX_EPOCH));
    assert_eq!(read(0x17, "690101000000Z"), Ok(UNIX_EPOCH - Duration::from_secs(365 * 86_400)), "1969");
    assert_eq!(read(0x17, "000229000000Z"), Ok(UNIX_EPOCH + Duration::from_secs(951_782_400)));
    for wrong in [
        "010229000000Z",
        "701301000000Z",
        "700100000000Z",
        "700101240000Z",
        "700101006000Z",
        "700101000060Z",
        "70010100000 Z",
        "7001010000000",
        "70010100+100Z",
    ] {
        assert!(read(0x17, wrong).is_err(), "{wrong}");
    }
    assert!(read(0x18, "700101000000Z").is_err(), "two digits of a year where four should be");
}
