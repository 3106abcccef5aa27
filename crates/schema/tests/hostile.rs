//! Input that was made to hurt: nothing panics, nothing takes long, nothing grows out of proportion.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use watchkeeper_schema::managed::{self, FieldSet, Request};
use watchkeeper_schema::patch::{self, JsonPatch};
use watchkeeper_schema::{Path, Schema, Shape, json, yaml};

/// Far above what is needed, far below what a quadratic algorithm takes.
const LIMIT: Duration = Duration::from_secs(20);

fn in_time<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < LIMIT, "took {:?}", start.elapsed());
    result
}

fn schema(value: Value) -> Schema {
    Schema::read(&value).unwrap()
}

fn everything(schema: &Schema, object: &Value) {
    in_time(|| {
        let mut next = object.clone();
        let _ = schema.coerce(&mut next);
        schema.default(&mut next);
        for errors in [schema.validate(&next), schema.validate_update(object, &next)] {
            let text: usize = errors.iter().map(|error| error.to_string().len()).sum();
            assert!(text < 64 << 20, "{text} bytes of errors");
        }
    });
}

#[test]
fn very_many_wrong_elements_make_a_bounded_list_of_errors() {
    let schema = schema(
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}}),
    );
    let object = json!({"l": vec![1; 300_000]});
    assert!(in_time(|| schema.validate(&object)).len() <= 10_000);
    everything(&schema, &object);
}

#[test]
fn a_long_key_above_many_errors_is_not_repeated_without_end() {
    let schema =
        schema(json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {
            "type": "array", "items": {"type": "string"},
        }}}}));
    everything(&schema, &json!({"m": {("k".repeat(1_000_000)): vec![1; 200_000]}}));
}

#[test]
fn a_long_name_above_many_findings_of_any_kind_is_not_repeated_without_end() {
    let long = "k".repeat(500_000);
    let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let many = |value: &dyn Fn(usize) -> Value| (0..20_000).map(value).collect::<Value>();
    let fields = |value: &dyn Fn(usize) -> Value| {
        Value::Object((0..20_000).map(|n| (format!("f{n}"), value(n))).collect())
    };
    for (entry, value) in [
        (set, many(&|n| format!("{}", n / 2).into())),
        (json!({"type": "object"}), fields(&|n| n.into())),
        (json!({"type": "array", "items": embedded}), many(&|_| json!({"metadata": {"bogus": 1}}))),
        (
            embedded,
            json!({"metadata": {"labels": fields(&|_| "?".into()), "finalizers": many(&|_| "?".into())}}),
        ),
    ] {
        let schema = schema(json!({"type": "object", "properties": {
            "m": {"type": "object", "additionalProperties": entry},
        }}));
        everything(&schema, &json!({"m": {(&long): value}}));
    }
    let duplicates = format!("{{\"{long}\":{{{}\"a\":1}}}}", "\"a\":1,".repeat(200_000));
    in_time(|| json::decode(duplicates.as_bytes())).unwrap();
}

#[test]
fn a_bad_schema_has_a_bounded_list_of_errors() {
    let properties: Value = (0..10_000).map(|n| (format!("p{n}"), json!({"pattern": "("}))).collect();
    let schema = schema(json!({"properties": {("k".repeat(500_000)): {"properties": properties}}}));
    let errors = in_time(|| schema.check(&Path::root().child("s"), false));
    assert!(errors.iter().map(|error| error.to_string().len()).sum::<usize>() < 64 << 20);
    in_time(|| schema.rules());
}

#[test]
fn large_lists_without_duplicates_are_checked_in_linear_time() {
    let unique = schema(json!({"type": "object", "properties": {
        "s": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set", "uniqueItems": true},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "string"}}}},
    }}));
    let items: Vec<Value> = (0..50_000).map(|n| json!({"k": n, "v": 1})).collect();
    everything(&unique, &json!({"s": (0..200_000).collect::<Vec<_>>(), "m": items}));
}

#[test]
fn branches_in_branches_do_not_explode() {
    let mut branch = json!({"minimum": 10, "properties": {"a": {"maxLength": 1}}});
    for _ in 0..25 {
        branch = json!({"anyOf": [branch, {"minLength": 1000}], "not": {"required": ["zzz"]}});
    }
    let value: Value = (0..200).map(|n| (format!("k{n}"), json!({"a": "long"}))).collect();
    let mut root = branch;
    root["type"] = "object".into();
    let schema = schema(
        json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": root}}}),
    );
    everything(&schema, &json!({"m": value}));
    in_time(|| schema.check(&Path::root(), true));
}

#[test]
fn patterns_do_not_backtrack() {
    let schema =
        schema(json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}));
    everything(&schema, &json!({"s": format!("{}b", "a".repeat(100_000))}));
}

#[test]
fn values_as_deep_as_allowed_pass_everywhere() {
    let deep = |open: &str, close: &str| {
        let text = format!("{}1{}", open.repeat(json::MAX_DEPTH - 1), close.repeat(json::MAX_DEPTH - 1));
        json!({"spec": json::decode(text.as_bytes()).unwrap().value})
    };
    let mut node = json!({"x-kubernetes-preserve-unknown-fields": true});
    for _ in 0..60 {
        node = json!({"type": "object", "properties": {"a": node}});
    }
    let schema = schema(json!({"type": "object", "properties": {"spec": node}}));
    for object in [deep("{\"a\":", "}"), deep("[", "]")] {
        everything(&schema, &object);
        let merged = patch::merge(object.clone(), &object).unwrap();
        assert_eq!(merged, object);
        assert_eq!(patch::difference(&object, &merged), json!({}));
    }
}

#[test]
fn numbers_at_the_edges_are_safe() {
    let limits =
        [json!(0), json!(-1), json!(1e308), json!(-1e308), json!(i64::MAX), json!(i64::MIN), json!(5e-324)];
    let numbers = limits.clone();
    for kind in ["integer", "number"] {
        for limit in &limits {
            for format in ["int32", "int64", "float", "double", ""] {
                let schema = schema(json!({"type": "object", "properties": {"n": {
                    "type": kind, "format": format, "maximum": limit, "minimum": limit, "multipleOf": limit,
                }}}));
                numbers.iter().for_each(|number| everything(&schema, &json!({"n": number})));
            }
        }
    }
}

#[test]
fn large_patches_end() {
    let operations = vec![json!({"op": "add", "path": "/l/0", "value": 1}); patch::MAX_OPERATIONS];
    let patch = JsonPatch::decode(&serde_json::to_vec(&operations).unwrap()).unwrap();
    let object = json!({"l": vec![0; 100_000]});
    assert_eq!(in_time(|| patch.apply(&object)).unwrap()["l"].as_array().unwrap().len(), 110_000);
    let back_and_forth: Vec<Value> = (0..patch::MAX_OPERATIONS)
        .map(|n| match n % 2 {
            0 => json!({"op": "move", "from": "/l", "path": "/a/b/l"}),
            _ => json!({"op": "move", "from": "/a/b/l", "path": "/l"}),
        })
        .collect();
    let patch = JsonPatch::decode(&serde_json::to_vec(&back_and_forth).unwrap()).unwrap();
    let _ = in_time(|| patch.apply(&json!({"a": {"b": {}}, "l": vec![0; 100_000]})));
}

#[test]
fn bytes_that_are_nothing_end_soon() {
    for text in
        ["[".repeat(3_000_000), "{\"a\":".repeat(500_000), "\"".repeat(3_000_000), "1".repeat(3_000_000)]
    {
        in_time(|| json::decode(text.as_bytes())).ok();
    }
    for text in ["- ".repeat(300_000), "a: &a\n".repeat(1_000), "? ".repeat(10_000), "{".repeat(100_000)] {
        in_time(|| yaml::decode(text.as_bytes())).ok();
    }
}

/// A kind whose lists are sets and maps, for objects with many elements.
fn listed() -> Shape {
    Shape::of_custom_resource(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "string"}},
        }},
    }}}}))
    .unwrap()
}

fn many(count: usize, value: &str, backwards: bool) -> Value {
    let place = |n: usize| if backwards { count - n } else { n };
    let items: Value = (0..count).map(|n| json!({"k": place(n), "v": value})).collect();
    let set: Value = (0..count).map(|n| format!("e{}", place(n))).collect();
    json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": {"m": items, "s": set}})
}

#[test]
fn owners_of_very_many_elements_are_worked_out_in_linear_time() {
    let shape = listed();
    let none = FieldSet::new();
    let request = |manager: &'static str| Request {
        versions: &shape,
        api_version: "a/v1",
        kind: "K",
        subresource: "",
        manager,
        now: "2020-01-01T00:00:00Z",
        reset: &none,
    };
    in_time(|| {
        let created = managed::apply(&request("one"), None, &many(50_000, "a", false), false).unwrap();
        let next = managed::update(&request("two"), &created.object, many(50_000, "b", true)).unwrap();
        assert!(managed::apply(&request("one"), Some(&next), &many(50_000, "c", false), false).is_err());
        let forced = managed::apply(&request("one"), Some(&next), &many(40_000, "c", true), true).unwrap();
        // What the first manager gave up is gone, although the other owned something inside of it.
        assert_eq!(forced.object["spec"]["m"].as_array().unwrap().len(), 40_001);
        let mut double = many(20_000, "a", false);
        for list in ["m", "s"] {
            let items = double["spec"][list].as_array().unwrap();
            double["spec"][list] = [items.as_slice(), items.as_slice()].concat().into();
        }
        let twice = managed::update(&request("two"), &forced.object, double.clone()).unwrap();
        assert!(managed::apply(&request("one"), Some(&twice), &double, true).is_err());
        managed::apply(&request("one"), Some(&twice), &many(20_000, "z", true), true).unwrap();
    });
}

#[test]
fn strategic_patches_of_very_many_elements_are_merged_in_linear_time() {
    let shape = Shape::read(&json!({"type": "object", "properties": {
        "s": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
        "m": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k", "items": {
            "type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "string"}},
        }},
    }}))
    .unwrap();
    let object = many(50_000, "a", false)["spec"].take();
    let mut changes = many(50_000, "b", true)["spec"].take();
    for item in changes["m"].as_array_mut().unwrap().iter_mut().step_by(3) {
        item["$patch"] = "delete".into();
    }
    changes["$setElementOrder/s"] = changes["s"].clone();
    changes["$deleteFromPrimitiveList/s"] = object["s"].clone();
    let next = in_time(|| patch::strategic(object, &changes, &shape)).unwrap();
    assert!(next["m"].as_array().unwrap().len() > 30_000);
}

/// Owners are written deeper than what they own. What would then be too deep to be read again has none.
#[test]
fn values_as_deep_as_allowed_can_be_owned_if_the_owners_are_not_too_deep() {
    let object = |depth: usize| {
        let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let spec = json::decode(text.as_bytes()).unwrap().value;
        json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec})
    };
    let shape = Shape::deduced();
    let none = FieldSet::new();
    let request = Request {
        versions: &shape,
        api_version: "a/v1",
        kind: "K",
        subresource: "",
        manager: "one",
        now: "2020-01-01T00:00:00Z",
        reset: &none,
    };
    let (deep, too_deep) = (object(json::MAX_DEPTH - 8), object(json::MAX_DEPTH - 1));
    let created = managed::apply(&request, None, &deep, false).unwrap();
    json::decode(&serde_json::to_vec(&created.object).unwrap()).unwrap();
    let again = managed::apply(&request, Some(&created.object), &deep, false).unwrap();
    assert_eq!(again.object, created.object);
    let mut shorter = deep;
    shorter["spec"] = json!({"b": 1});
    let next = managed::apply(&request, Some(&again.object), &shorter, false).unwrap();
    assert_eq!(next.object["spec"], json!({"b": 1}));

    assert!(managed::apply(&request, None, &too_deep, false).is_err());
    let empty = json!({"apiVersion": "a/v1", "kind": "K"});
    assert!(managed::update(&request, &empty, too_deep.clone()).is_err());
    assert_eq!(managed::update_or_clear(&request, &empty, too_deep.clone()), too_deep);
}
