//! The protobuf encoding against what Go's serializer reads and writes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use std::collections::HashSet;
use watchkeeper_go::base64;
use watchkeeper_kinds::{Error, protobuf};

/// Objects of every kind that Go has encoded: each once with every field set and once with none.
fn objects() -> impl Iterator<Item = (Vec<u8>, Value)> {
    include_str!("data/protobuf/objects.txt").lines().map(|line| {
        let (bytes, object) = line.split_once(' ').unwrap();
        (base64::decode(bytes).unwrap(), serde_json::from_str(object).unwrap())
    })
}

fn name(object: &Value) -> (String, String) {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    (text("apiVersion"), text("kind"))
}

#[test]
fn objects_are_read_and_written_as_go_does() {
    for (bytes, object) in objects() {
        assert!(protobuf::is_envelope(&bytes));
        assert_eq!(protobuf::decode(&bytes).unwrap(), object, "{:?}", name(&object));
        assert!(protobuf::encode(&object).unwrap() == bytes, "{:?}", name(&object));
    }
}

#[test]
fn there_is_an_object_of_every_kind_and_of_its_list() {
    let known: HashSet<_> = objects().map(|(_, object)| name(&object)).collect();
    // Of these, no bytes of Go's have been recorded yet.
    let unrecorded = ["ComponentStatus", "FlowSchema", "PriorityLevelConfiguration"];
    for kind in watchkeeper_kinds::all().iter().filter(|kind| !unrecorded.contains(&kind.kind)) {
        assert!(known.contains(&(kind.api_version(), kind.kind.to_owned())), "{kind:?}");
        if kind.verbs.names().contains(&"list") {
            assert!(known.contains(&(kind.api_version(), kind.list_kind())), "{kind:?}");
        }
    }
    for kind in ["Status", "DeleteOptions", "List"] {
        assert!(known.contains(&("v1".to_owned(), kind.to_owned())), "{kind}");
    }
}

/// The objects that the other tests take through every step, by the checksum of what Go makes of them.
#[test]
fn real_objects_are_written_as_go_does() {
    let sums = include_str!("data/protobuf/real.txt").lines();
    let mut count = 0;
    for (line, sum) in include_str!("data/real.jsonl").lines().zip(sums).filter(|(_, sum)| *sum != "-") {
        let line: Value = serde_json::from_str(line).unwrap();
        let bytes = protobuf::encode(&line["defaulted"]).unwrap();
        assert_eq!(format!("{:016x}", checksum(&bytes)), sum, "{}", line["name"]);
        let read = protobuf::decode(&bytes).unwrap();
        assert_eq!(protobuf::encode(&read).unwrap(), bytes, "{}", line["name"]);
        count += 1;
    }
    assert_eq!(count, 268);
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn a_list_written_one_by_one_is_the_list_written_at_once() {
    let mut count = 0;
    for (bytes, list) in objects().filter(|(_, object)| object["kind"].as_str().unwrap().ends_with("List")) {
        let (api_version, kind) = name(&list);
        let (writer, mut items) = (protobuf::List::new(&api_version, &kind).unwrap(), Vec::new());
        for item in list["items"].as_array().into_iter().flatten() {
            // An object of its own names its kind, an object in a list does not.
            let mut item = item.clone();
            if kind != "List" {
                item["kind"] = "any".into();
            }
            assert!(writer.item(&item, &mut items));
            assert!(!writer.item(&json!({"metadata": 7}), &mut items) || kind == "List");
        }
        if kind != "List" {
            let mut whole = writer.begin(&list["metadata"], items.len()).unwrap();
            whole.extend(items);
            whole.extend(protobuf::List::END);
            assert!(whole == bytes, "{api_version} {kind}");
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
}

#[test]
fn events_are_framed_as_go_does() {
    for line in include_str!("data/protobuf/watch.txt").lines() {
        let mut words = line.splitn(3, ' ');
        let (event_type, bytes) = (words.next().unwrap(), base64::decode(words.next().unwrap()).unwrap());
        let object = serde_json::from_str(words.next().unwrap()).unwrap();
        assert_eq!(protobuf::watch_frame(event_type, &object).unwrap(), bytes, "{event_type}");
    }
    assert_eq!(
        protobuf::watch_frame("ADDED", &json!({"apiVersion": "example.com/v1", "kind": "Mine"})),
        None
    );
}

/// Bytes that Go would not write, with what it makes of them; `!` if it does not read them.
#[test]
fn odd_bytes_are_read_as_go_does() {
    for line in include_str!("data/protobuf/odd.txt").lines() {
        let mut words = line.splitn(3, ' ');
        let (name, bytes, wanted) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let hex = |at| u8::from_str_radix(&bytes[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..bytes.len()).step_by(2).map(hex).collect();
        match serde_json::from_str::<Value>(wanted) {
            Ok(object) => assert_eq!(protobuf::decode(&bytes), Ok(object), "{name}"),
            Err(_) => assert!(matches!(protobuf::decode(&bytes), Err(Error::Decode(_))), "{name}"),
        }
    }
}

#[test]
fn kinds_without_an_encoding_are_named() {
    let custom = json!({"apiVersion": "example.com/v1", "kind": "Mine", "metadata": {"name": "a"}});
    assert_eq!(protobuf::encode(&custom), None);
    assert!(protobuf::List::new("example.com/v1", "MineList").is_none());
    assert!(protobuf::List::new("v1", "Pod").is_none());
    let bytes = b"k8s\0\x0a\x16\x0a\x0eexample.com/v1\x12\x04Mine\x12\x00";
    let error = protobuf::decode(bytes).unwrap_err();
    assert_eq!(error.to_string(), r#"no kind "Mine" is registered for version "example.com/v1""#);
    assert!(matches!(error, Error::UnknownKind { .. }));
}

#[test]
fn values_of_another_type_are_not_written() {
    for object in [
        json!({"metadata": {"name": 7}}),
        json!({"metadata": 7}),
        json!({"data": []}),
        json!({"binaryData": {"a": "?"}}),
        json!({"immutable": "yes"}),
        json!({"metadata": {"generation": 1.5}}),
        json!({"metadata": {"creationTimestamp": "yesterday"}}),
    ] {
        let mut whole = object.clone();
        whole["apiVersion"] = "v1".into();
        whole["kind"] = "ConfigMap".into();
        assert_eq!(protobuf::encode(&whole), None, "{object}");
    }
    assert_eq!(protobuf::encode(&json!(["v1", "ConfigMap"])), None);
}
