//! Owners of fields and server-side apply, case by case.
//!
//! A case in `cases/managed.jsonl` is a sequence of updates and applies to one object, and after each step the object, the
//! conflict or the error is what the code of Kubernetes 1.36.3 answered, times included. The schemas are in
//! `cases/managed-schemas.json`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use watchkeeper_schema::managed::{
    ApplyError, Converted, FieldPath, FieldSet, ManagedFields, Request, Versions, apply, check_name,
    same_but_times, scale, update,
};
use watchkeeper_schema::{Error, Path, Shape};

const GROUP: &str = "t.example.com";

/// The shapes of a kind by version.
struct Kind(BTreeMap<String, Shape>);

impl Versions for Kind {
    fn shape(&self, api_version: &str) -> Option<&Shape> {
        self.0.get(api_version)
    }
}

fn kinds() -> BTreeMap<String, Kind> {
    let kinds: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(include_str!("cases/managed-schemas.json")).unwrap();
    let shape = |schema: &Value| match schema {
        Value::Null => Shape::deduced(),
        schema => Shape::of_custom_resource(schema).unwrap(),
    };
    let kind = |versions: BTreeMap<String, Value>| {
        Kind(versions.iter().map(|(version, schema)| (format!("{GROUP}/{version}"), shape(schema))).collect())
    };
    kinds.into_iter().map(|(name, versions)| (name, kind(versions))).collect()
}

fn text<'v>(step: &'v Value, name: &str) -> &'v str {
    step[name].as_str().unwrap_or_default()
}

fn run(kind: &Kind, step: &Value, live: &Value) -> Value {
    let api_version = format!("{GROUP}/{}", text(step, "version"));
    let mut live = live.clone();
    live["apiVersion"] = api_version.clone().into();
    let reset = step["reset"].as_array().into_iter().flatten();
    let reset: FieldSet = reset.map(|name| FieldPath::of(name.as_str())).collect();
    let request = Request {
        versions: kind,
        api_version: &api_version,
        kind: "Thing",
        subresource: text(step, "subresource"),
        manager: text(step, "manager"),
        now: text(step, "now"),
        reset: &reset,
    };
    if step["op"] == "update" {
        return match update(&request, &live, step["object"].clone()) {
            Ok(object) => json!({"result": object}),
            Err(error) => json!({"error": error.to_string()}),
        };
    }
    match apply(&request, Some(&live), &step["object"], step["force"] == true) {
        Ok(applied) => json!({"result": applied.object}),
        Err(ApplyError::Conflicts(conflicts)) => {
            let causes = conflicts.causes();
            let mut causes: Vec<String> = causes
                .iter()
                .map(|cause| format!("FieldManagerConflict|{}|{}", cause.message, cause.field))
                .collect();
            causes.sort();
            json!({"conflict": conflicts.to_string(), "causes": causes})
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

#[test]
fn owners_change_hands_as_in_kube_apiserver() {
    let kinds = kinds();
    let mut failures = Vec::new();
    let mut count = 0;
    for line in include_str!("cases/managed.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let kind = &kinds[text(&case, "schema")];
        let mut live = json!({"kind": "Thing"});
        for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let ours = run(kind, step, &live);
            for what in ["result", "conflict", "causes", "error"] {
                if ours[what] != step[what] {
                    let name = text(&case, "case");
                    failures.push(format!(
                        "{name}, step {index}, {what}:\n  ours   {}\n  theirs {}",
                        ours[what], step[what]
                    ));
                }
            }
            if step["result"].is_object() {
                live = step["result"].clone();
            }
            if step["stored"] == true {
                live["metadata"]["uid"] = "u1".into();
            }
            count += 1;
        }
    }
    assert!(failures.is_empty(), "{} of {count}\n{}", failures.len(), failures.join("\n"));
    assert!(count >= 300, "only {count} steps");
}

/// Who owns what, without times and with entries of one owner as one.
fn owners(managed: &Value) -> BTreeMap<String, FieldSet> {
    let mut owners: BTreeMap<String, FieldSet> = BTreeMap::new();
    for entry in managed.as_array().into_iter().flatten() {
        let id =
            ["manager", "operation", "apiVersion", "subresource"].map(|name| text(entry, name)).join("|");
        let fields = FieldSet::from_json(&entry["fieldsV1"]).unwrap();
        let known = owners.entry(id).or_default();
        *known = std::mem::take(known).union(fields);
    }
    owners
}

/// Kubernetes splits an entry whose owner also owns the scale in two of the same identity, of which it later forgets one.
/// Here it stays one, so what is compared is what each owner owns.
#[test]
fn owners_of_a_scale_are_those_of_the_replicas() {
    let path = |version: &str| match version {
        "apps/v1" => Some(FieldPath::of(["spec", "replicas"])),
        "apps/v1beta1" => Some(FieldPath::of(["spec", "count"])),
        _ => None,
    };
    let read =
        |entries: &Value| ManagedFields::read(&json!({"metadata": {"managedFields": entries}})).unwrap();
    let written = |managed: &ManagedFields| {
        let mut object = json!({"metadata": {}});
        managed.write(&mut object);
        object["metadata"]["managedFields"].clone()
    };
    let mut count = 0;
    for line in include_str!("cases/scale.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let parent = read(&case["parent"]);
        let seen = scale::from_parent(&parent, path);
        assert_eq!(owners(&written(&seen)), owners(&case["scale"]), "{}", case["case"]);
        let back = scale::to_parent(&parent, &read(&case["changed"]), "apps/v1", path);
        assert_eq!(owners(&written(&back)), owners(&case["result"]), "{}", case["case"]);
        count += 1;
    }
    assert!(count >= 25, "only {count} cases");
}

fn request<'a>(versions: &'a dyn Versions, api_version: &'a str, manager: &'a str) -> Request<'a> {
    static NOTHING: FieldSet = FieldSet::new();
    Request {
        versions,
        api_version,
        kind: "Thing",
        subresource: "",
        manager,
        now: "2020-01-01T00:00:00Z",
        reset: &NOTHING,
    }
}

fn thing(spec: Value) -> Value {
    json!({"apiVersion": "t.example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

#[test]
fn conflicts_are_told_in_the_words_of_kube_apiserver() {
    let kinds = kinds();
    let kind = &kinds["small"];
    let version = "t.example.com/v1";
    let empty = json!({"apiVersion": version, "kind": "Thing"});
    let live =
        update(&request(kind, version, "curl"), &empty, thing(json!({"size": 1, "list": [1]}))).unwrap();
    let conflict =
        |spec: Value| match apply(&request(kind, version, "other"), Some(&live), &thing(spec), false) {
            Err(ApplyError::Conflicts(conflicts)) => conflicts,
            other => panic!("{other:?}"),
        };
    let one = conflict(json!({"size": 2}));
    assert_eq!(
        one.to_string(),
        "Apply failed with 1 conflict: conflict with \"curl\" using t.example.com/v1: .spec.size"
    );
    assert_eq!(one.causes()[0].message, "conflict with \"curl\" using t.example.com/v1");
    assert_eq!(one.causes()[0].field, ".spec.size");
    assert_eq!(
        conflict(json!({"size": 2, "list": [2]})).to_string(),
        "Apply failed with 2 conflicts: conflicts with \"curl\" using t.example.com/v1:\n- .spec.list\n- .spec.size"
    );
}

#[test]
fn an_apply_that_only_shares_fields_changes_owners_and_nothing_else() {
    let kinds = kinds();
    let kind = &kinds["small"];
    let version = "t.example.com/v1";
    let created = apply(&request(kind, version, "one"), None, &thing(json!({"size": 1})), false).unwrap();
    assert!(created.changed);
    let shared =
        apply(&request(kind, version, "two"), Some(&created.object), &thing(json!({"size": 1})), false)
            .unwrap();
    assert!(!shared.changed);
    assert!(!same_but_times(&shared.object, &created.object));
    let mut later = shared.object.clone();
    later["metadata"]["managedFields"][0]["time"] = "2021-01-01T00:00:00Z".into();
    assert!(same_but_times(&shared.object, &later));
    later["spec"]["size"] = 2.into();
    assert!(!same_but_times(&shared.object, &later));
}

/// `size` of the first version is `count` in the second; there is no third any more.
struct Renaming(Shape, Shape);

impl Versions for Renaming {
    fn shape(&self, api_version: &str) -> Option<&Shape> {
        match api_version {
            "t.example.com/v1" => Some(&self.0),
            "t.example.com/v2" => Some(&self.1),
            _ => None,
        }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Converted, Error> {
        let (from, to) = match api_version {
            "t.example.com/v1" => ("count", "size"),
            "t.example.com/v2" => ("size", "count"),
            _ => return Ok(Converted::NoSuchVersion),
        };
        let mut object = object.clone();
        object["apiVersion"] = api_version.into();
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.into(), value);
        }
        Ok(Converted::Object(object))
    }
}

#[test]
fn owners_are_found_across_versions() {
    let shape = |field: &str| {
        Shape::of_custom_resource(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                (field): {"type": "integer"}, "name": {"type": "string"},
            }}}}),
        )
        .unwrap()
    };
    let kind = Renaming(shape("size"), shape("count"));
    let second = |spec: Value| {
        let mut object = thing(spec);
        object["apiVersion"] = "t.example.com/v2".into();
        object
    };
    let convert = |object: &Value, version: &str| match kind.convert(object, version).unwrap() {
        Converted::Object(object) => object,
        Converted::NoSuchVersion => panic!(),
    };
    let one = request(&kind, "t.example.com/v1", "one");
    let created = apply(&one, None, &thing(json!({"size": 1, "name": "a"})), false).unwrap().object;
    let live = convert(&created, "t.example.com/v2");
    let two = request(&kind, "t.example.com/v2", "two");
    let Err(ApplyError::Conflicts(conflicts)) = apply(&two, Some(&live), &second(json!({"count": 2})), false)
    else {
        panic!("no conflict");
    };
    assert_eq!(conflicts.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.size");
    let forced = apply(&two, Some(&live), &second(json!({"count": 2})), true).unwrap().object;
    let entries = &forced["metadata"]["managedFields"];
    assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {"f:name": {}}}));
    assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {"f:count": {}}}));
    // Applying in the new version what was applied in the old one takes away what is missing.
    let one = request(&kind, "t.example.com/v2", "one");
    let next = apply(&one, Some(&live), &second(json!({"name": "b"})), false).unwrap().object;
    assert_eq!(next["spec"], json!({"name": "b"}));
    // Whoever owns something in a version that is gone is forgotten.
    let mut old = created;
    old["metadata"]["managedFields"][0]["apiVersion"] = "t.example.com/v0".into();
    let one = request(&kind, "t.example.com/v1", "one");
    let next = update(&one, &old, thing(json!({"size": 3, "name": "a"}))).unwrap();
    let entries = next["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {"f:size": {}}}));
}

#[test]
fn names_of_managers_are_short_and_printable() {
    let at = Path::root().child("fieldManager");
    assert!(check_name("kubectl-é 1", &at).is_empty());
    assert!(check_name(&"x".repeat(128), &at).is_empty());
    let long: Vec<String> = check_name(&"x".repeat(129), &at).iter().map(ToString::to_string).collect();
    assert_eq!(long, ["fieldManager: Too long: may not be more than 128 bytes"]);
    let odd: Vec<String> = check_name("a\n", &at).iter().map(ToString::to_string).collect();
    assert_eq!(odd, ["fieldManager: Invalid value: \"a\\n\": invalid character U+000A (at position 1)"]);
}

/// Lists of built-in kinds are told by their merge keys; whether an object is taken as a whole can be said where it is
/// referred to.
#[test]
fn built_in_kinds_are_described_by_definitions_that_refer_to_each_other() {
    let definitions = json!({
        "Port": {"type": "object", "properties": {"port": {"type": "integer"}, "at": {"$ref": "#/definitions/Place"}}},
        "Place": {"type": "object", "properties": {"x": {"type": "integer"}, "inside": {"$ref": "#/definitions/Place"}}},
        "Thing": {"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "ports": {"type": "array", "items": {"$ref": "#/definitions/Port"},
                    "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "port"},
                "words": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
                "whole": {"allOf": [{"$ref": "#/definitions/Place"}], "x-kubernetes-map-type": "atomic"},
            }},
        }},
    });
    let shape = Shape::read_with(&json!({"$ref": "#/definitions/Thing"}), &definitions).unwrap();
    let spec =
        json!({"ports": [{"port": 80, "at": {"inside": {"x": 1}}}], "words": ["a"], "whole": {"x": 1}});
    let version = "t.example.com/v1";
    let created = apply(&request(&shape, version, "one"), None, &thing(spec), false).unwrap().object;
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"];
    let port = json!({".": {}, "f:at": {"f:inside": {"f:x": {}}}, "f:port": {}});
    assert_eq!(
        owned,
        &json!({"f:spec": {"f:ports": {"k:{\"port\":80}": port}, "f:whole": {}, "f:words": {"v:\"a\"": {}}}})
    );
    assert!(Shape::read_with(&json!({"$ref": "#/definitions/Other"}), &definitions).is_err());
}
