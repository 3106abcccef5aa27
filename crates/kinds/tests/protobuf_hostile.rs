//! Bytes that nobody should send: nothing panics, and nothing grows out of proportion.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use std::sync::OnceLock;
use watchkeeper_go::base64;
use watchkeeper_kinds::{Error, protobuf};

fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let lines = include_str!("data/protobuf/objects.txt").lines();
        lines.map(|line| base64::decode(line.split_once(' ').unwrap().0).unwrap()).collect()
    })
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn delimited(field: usize, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(bytes.len()), bytes.to_vec()].concat()
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [delimited(1, api_version.as_bytes()), delimited(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), delimited(1, &type_meta), delimited(2, raw)].concat()
}

/// A resource definition whose schema is this message.
fn definition(schema: &[u8]) -> Vec<u8> {
    let version = delimited(7, &delimited(4, &delimited(1, schema)));
    envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &delimited(2, &version))
}

fn check(bytes: &[u8]) {
    let Ok(object) = protobuf::decode(bytes) else { return };
    let text = object.to_string();
    assert_eq!(serde_json::from_str::<Value>(&text).expect("what was read can be read again"), object);
    let again = protobuf::encode(&object).expect("what was read can be written");
    let read = protobuf::decode(&again).unwrap();
    assert_eq!(protobuf::encode(&read).unwrap(), again, "{text}");
}

#[test]
fn a_schema_as_deep_as_the_limit_is_read_and_a_deeper_one_is_not() {
    let deep = |levels| definition(&(0..levels).fold(Vec::new(), |inner, _| delimited(28, &inner)));
    check(&deep(100));
    assert!(protobuf::decode(&deep(100)).is_ok());
    assert_eq!(protobuf::decode(&deep(20_000)), Err(Error::Decode("proto: exceeded max depth".into())));
    let json = |levels: usize| {
        delimited(8, &delimited(1, ["[".repeat(levels), "]".repeat(levels)].concat().as_bytes()))
    };
    assert!(protobuf::decode(&definition(&json(100))).is_ok());
    assert!(protobuf::decode(&definition(&json(120))).is_err());
}

#[test]
fn many_empty_objects_are_too_many_and_a_million_take_too_much_memory() {
    for kind in ["PodList", "NodeList"] {
        let empty =
            |count| protobuf::decode(&envelope("v1", kind, &delimited(2, b"").repeat(count))).unwrap_err();
        assert_eq!(empty(3_000), Error::Decode("proto: too many empty values".into()));
        assert_eq!(empty(1_000_000), Error::TooLarge);
    }
    let few = envelope("v1", "ConfigMapList", &delimited(2, b"").repeat(500));
    assert_eq!(protobuf::decode(&few).unwrap()["items"].as_array().unwrap().len(), 500);
}

#[test]
fn what_would_take_too_much_memory_is_refused_wherever_it_is() {
    let list = format!("[{}0]", r#"{"":0},"#.repeat(100_000));
    let json = delimited(8, &delimited(1, list.as_bytes()));
    assert_eq!(protobuf::decode(&definition(&json)), Err(Error::TooLarge));
    let groups = delimited(2, &delimited(14, &delimited(4, &[1; 3_000_000])));
    assert_eq!(protobuf::decode(&envelope("v1", "Pod", &groups)), Err(Error::TooLarge));
    let keys: Vec<u8> = (0..600_000)
        .flat_map(|key: u32| delimited(2, &delimited(1, &key.to_le_bytes().map(|b| b % 128))))
        .collect();
    assert_eq!(protobuf::decode(&envelope("v1", "ConfigMap", &keys)), Err(Error::TooLarge));
}

#[test]
fn groups_are_refused() {
    let group = [varint(99 << 3 | 3), varint(99 << 3 | 4)].concat();
    assert!(protobuf::decode(&envelope("v1", "ConfigMap", &group)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_make_no_panic(
        which: Index,
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<Index>()),
    ) {
        let mut bytes = which.get(corpus()).clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&bytes);
    }

    #[test]
    fn random_messages_make_no_panic(raw in prop::collection::vec(any::<u8>(), 0..64), which: Index) {
        let kinds = watchkeeper_kinds::all();
        let kind = which.get(kinds);
        check(&envelope(&kind.api_version(), kind.kind, &raw));
    }

    /// Random fields of the right form, so that more of them are read to the end.
    #[test]
    fn random_fields_make_no_panic(fields in fields(), which: Index) {
        let kind = which.get(watchkeeper_kinds::all());
        check(&envelope(&kind.api_version(), kind.kind, &fields));
    }
}

fn fields() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        (1_usize..20, any::<u64>())
            .prop_map(|(field, number)| [varint(field << 3), varint(number as usize)].concat()),
        (1_usize..20, "[a-z0-9:.-]{0,6}").prop_map(|(field, text)| delimited(field, text.as_bytes())),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        (1_usize..30, prop::collection::vec(inner, 0..6))
            .prop_map(|(field, parts)| delimited(field, &parts.concat()))
    })
}
