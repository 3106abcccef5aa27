//! What of an object is applied, and fingerprints of it.

use std::hash::{BuildHasher, Hash, Hasher};

use serde_json::{Map, Value};

use crate::kind::KindInfo;

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Main,
    Status,
}

/// What the server sets in `metadata`.
const SERVER_SET: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The document that an apply of this object sends: what the user wants, nothing that the server sets.
pub(crate) fn document(kind: &KindInfo, mut value: Value, part: Part) -> Value {
    drop_nulls(&mut value);
    value["apiVersion"] = kind.api_version.as_str().into();
    value["kind"] = kind.kind.as_str().into();
    let Some(members) = value.as_object_mut() else { return value };
    match part {
        Part::Main => {
            members.remove("status");
            if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                SERVER_SET.iter().for_each(|name| drop(metadata.remove(*name)));
            }
        }
        Part::Status => {
            members.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace"));
            }
        }
    }
    value
}

/// Removes members that are null: they say that a field is not wanted, which is what leaving it out says.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A fingerprint of a value. The order of members does not matter.
pub(crate) fn fingerprint(value: &Value, hasher: &impl BuildHasher) -> u64 {
    let mut hash = hasher.build_hasher();
    match value {
        Value::Null => 0_u8.hash(&mut hash),
        Value::Bool(value) => (1_u8, value).hash(&mut hash),
        Value::Number(value) => (2_u8, value).hash(&mut hash),
        Value::String(value) => (3_u8, value).hash(&mut hash),
        Value::Array(items) => {
            (4_u8, items.len()).hash(&mut hash);
            items.iter().for_each(|item| fingerprint(item, hasher).hash(&mut hash));
        }
        Value::Object(members) => {
            let sum = members.iter().map(|(name, value)| member(name, fingerprint(value, hasher), hasher));
            (5_u8, members.len(), sum.fold(0, u64::wrapping_add)).hash(&mut hash);
        }
    }
    hash.finish()
}

/// A fingerprint of what an object shows where a document says something: its values, and the whole of its lists. As long
/// as it stays the same, nothing that the document is about has changed.
pub(crate) fn fingerprint_of_shown(document: &Value, object: &Value, hasher: &impl BuildHasher) -> u64 {
    static NOTHING: Value = Value::Null;
    match (document, object) {
        (Value::Object(wanted), Value::Object(members)) => {
            let shown = |(name, wanted): (&String, &Value)| {
                let value = members.get(name).unwrap_or(&NOTHING);
                member(name, fingerprint_of_shown(wanted, value, hasher), hasher)
            };
            wanted.iter().map(shown).fold(6, u64::wrapping_add)
        }
        (_, object) => fingerprint(object, hasher),
    }
}

fn member(name: &str, value: u64, hasher: &impl BuildHasher) -> u64 {
    hasher.hash_one((name, value))
}

/// The members of a document that ownership of fields is about.
pub(crate) fn owned_members(document: &Value) -> Map<String, Value> {
    let mut members = document.as_object().cloned().unwrap_or_default();
    members.remove("apiVersion");
    members.remove("kind");
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        metadata.remove("name");
        metadata.remove("namespace");
        if metadata.is_empty() {
            members.remove("metadata");
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;
    use std::hash::RandomState;

    #[test]
    fn a_document_has_what_the_user_wants_and_nothing_else() {
        let object = json!({
            "metadata": {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"},
                "creationTimestamp": "2020-01-01T00:00:00Z", "managedFields": [{"manager": "m"}]},
            "data": {"k": "v"}, "immutable": null, "status": {"ready": true},
        });
        let kind = KindInfo::of::<ConfigMap>();
        assert_eq!(
            document(&kind, object.clone(), Part::Main),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
                "metadata": {"name": "a", "namespace": "b", "labels": {"x": "y"}}})
        );
        assert_eq!(
            document(&kind, object, Part::Status),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "status": {"ready": true},
                "metadata": {"name": "a", "namespace": "b"}})
        );
    }

    #[test]
    fn fingerprints_tell_values_apart() {
        let hasher = RandomState::new();
        let values = [
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 2}}),
            json!({"a": {"c": 1}}),
            json!({"a": [1, 2]}),
            json!({"a": [2, 1]}),
            json!({"a": "1"}),
            json!({"a": null}),
            json!({}),
            json!([]),
        ];
        for (at, left) in values.iter().enumerate() {
            for (other, right) in values.iter().enumerate() {
                let same = fingerprint(left, &hasher) == fingerprint(right, &hasher);
                assert_eq!(same, at == other, "{left} {right}");
            }
        }
    }

    #[test]
    fn what_is_shown_changes_only_with_what_the_document_is_about() {
        let hasher = RandomState::new();
        let wanted = json!({"spec": {"ports": [{"port": 80}], "name": "a", "gone": 1}});
        let shown = |object: Value| fingerprint_of_shown(&wanted, &object, &hasher);
        let now = shown(json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}], "name": "a"}}));
        let elsewhere =
            json!({"status": 1, "spec": {"x": 1, "ports": [{"port": 80, "protocol": "TCP"}], "name": "a"}});
        assert_eq!(shown(elsewhere), now);
        for other in [
            json!({"spec": {"ports": [{"port": 80, "protocol": "UDP"}], "name": "a"}}),
            json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}], "name": "b"}}),
            json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}], "name": "a", "gone": 1}}),
            json!({"spec": {"name": "a"}}),
            json!({}),
        ] {
            assert_ne!(shown(other.clone()), now, "{other}");
        }
    }
}
