//! Whether what a manager owns of an object, as `managedFields` says it, is exactly what a document says, with equal values.
//!
//! A set of fields is a tree: `f:name` is a member, `k:{"name":"a"}` an item of a list by its keys, `v:1` an item of a set
//! by its value, `i:0` an item by its place, and `.` the thing itself. A node without children stands for everything below.

use serde_json::{Map, Value};

use crate::state::desired::owned_members;

/// Whether applying `document` again would change neither the object nor what the manager owns of it. No schema is needed;
/// where the set does not tell, the answer is no.
pub(crate) fn is_applied(owned: &Value, document: &Value, object: &Value) -> bool {
    let Some(set) = owned.as_object() else { return false };
    members_match(set, &owned_members(document), object)
}

fn matches(set: &Value, document: &Value, object: &Value) -> bool {
    let Some(set) = set.as_object() else { return false };
    if set.keys().all(|name| name == ".") {
        return document == object;
    }
    match document {
        Value::Object(members) => members_match(set, members, object),
        Value::Array(items) => items_match(set, items, object),
        _ => false,
    }
}

fn members_match(set: &Map<String, Value>, members: &Map<String, Value>, object: &Value) -> bool {
    let owned = set.iter().filter(|(name, _)| *name != ".");
    let mut count = 0;
    for (name, below) in owned {
        count += 1;
        let Some(name) = name.strip_prefix("f:") else { return false };
        let (Some(wanted), Some(shown)) = (members.get(name), object.get(name)) else { return false };
        if !matches(below, wanted, shown) {
            return false;
        }
    }
    count == members.len()
}

fn items_match(set: &Map<String, Value>, items: &[Value], object: &Value) -> bool {
    let Some(shown) = object.as_array() else { return false };
    let mut left: Vec<&Value> = items.iter().collect();
    for (name, below) in set.iter().filter(|(name, _)| *name != ".") {
        let Some((kind, text)) = name.split_once(':') else { return false };
        let Ok(said) = serde_json::from_str::<Value>(text) else { return false };
        let fits = |item: &Value, may_lack: bool| match kind {
            "v" => *item == said,
            "k" => has_keys(item, &said, may_lack),
            _ => false,
        };
        let Some(at) = left.iter().position(|item| fits(item, true)) else { return false };
        let wanted = left.swap_remove(at);
        let Some(found) = shown.iter().find(|item| fits(item, false)) else { return false };
        if kind == "k" && !matches(below, wanted, found) {
            return false;
        }
    }
    left.is_empty()
}

/// Whether an item has these keys. In a document a key may be left out if it has a default.
fn has_keys(item: &Value, keys: &Value, may_lack: bool) -> bool {
    let Some(keys) = keys.as_object() else { return false };
    keys.iter().all(|(name, value)| match item.get(name) {
        Some(found) => found == value,
        None => may_lack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn owned() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"x\"": {}},
                "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}},
            },
        })
    }

    fn document() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "n", "namespace": "s", "labels": {"app": "a"}, "finalizers": ["x"],
                "ownerReferences": [{"uid": "u", "name": "o"}]},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [
                {"name": "a", "image": "i", "ports": [{"containerPort": 80}]}]}}},
        })
    }

    fn object() -> Value {
        json!({
            "metadata": {"name": "n", "namespace": "s", "uid": "1", "labels": {"app": "a", "foreign": "f"},
                "finalizers": ["y", "x"], "ownerReferences": [{"uid": "u", "name": "o"}]},
            "spec": {"replicas": 2, "paused": false, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"restartPolicy": "Always", "containers": [
                    {"name": "injected", "image": "z"},
                    {"name": "a", "image": "i", "tty": false, "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}},
            "status": {"replicas": 1},
        })
    }

    #[test]
    fn what_others_own_does_not_matter() {
        assert!(is_applied(&owned(), &document(), &object()));
    }

    #[test]
    fn every_difference_is_found() {
        let change = |mut value: Value, pointer: &str, to: Value| {
            *value.pointer_mut(pointer).unwrap() = to;
            value
        };
        let container = "/spec/template/spec/containers/1";
        for (pointer, to) in [
            ("/spec/replicas", json!(3)),
            ("/spec/selector/matchLabels", json!({"a": "b", "c": "d"})),
            ("/metadata/labels/app", json!("b")),
            ("/metadata/finalizers", json!(["y"])),
            ("/metadata/ownerReferences/0/name", json!("p")),
            (&format!("{container}/image"), json!("j")),
            (&format!("{container}/ports"), json!([])),
        ] {
            let changed = change(object(), pointer, to);
            assert!(!is_applied(&owned(), &document(), &changed), "object {pointer}");
        }
        let container = "/spec/template/spec/containers/0";
        for (pointer, to) in [
            ("/spec/replicas", json!(3)),
            ("/metadata/labels", json!({})),
            ("/metadata/labels", json!({"app": "a", "more": "m"})),
            ("/metadata/finalizers", json!(["x", "z"])),
            ("/metadata/finalizers", json!([])),
            ("/spec", json!({"replicas": 2})),
            (&format!("{container}/name"), json!("b")),
            (&format!("{container}/ports/0"), json!({"containerPort": 81})),
            (&format!("{container}/ports/0"), json!({"containerPort": 80, "name": "n"})),
        ] {
            let changed = change(document(), pointer, to);
            assert!(!is_applied(&owned(), &changed, &object()), "document {pointer}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_taken_for_applied() {
        assert!(!is_applied(&Value::Null, &document(), &object()));
        let by_place = json!({"f:list": {"i:0": {}}});
        assert!(!is_applied(&by_place, &json!({"list": [1]}), &json!({"list": [1]})));
    }
}
