//! Strategic merge patch, case by case.
//!
//! Every expectation in `cases/strategic.jsonl` is what the code of Kubernetes 1.36.3 made of the object and the patch. The
//! kinds are described in `cases/strategic-kinds.json` by the names, types, strategies and merge keys of their fields; `Thing`
//! is a made-up one with every combination.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use std::collections::HashMap;
use watchkeeper_schema::{Error, Shape, patch};

fn kinds() -> Value {
    serde_json::from_str(include_str!("cases/strategic-kinds.json")).unwrap()
}

#[test]
fn patches_are_merged_as_kube_apiserver_merges_them() {
    let kinds = kinds();
    let mut shapes = HashMap::new();
    let mut failures = Vec::new();
    let mut count = 0;
    for line in include_str!("cases/strategic.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let kind = case["kind"].as_str().unwrap().to_owned();
        let shape = shapes
            .entry(kind.clone())
            .or_insert_with(|| Shape::read_with(&json!({"$ref": kind}), &kinds).unwrap());
        let ours = match patch::strategic(case["object"].clone(), &case["patch"], shape) {
            Ok(object) => json!({"result": object}),
            Err(error) => json!({"error": error.to_string()}),
        };
        let theirs = ["result", "error"].map(|what| &case[what]);
        if ["result", "error"].map(|what| &ours[what]) != theirs {
            failures.push(format!("{}:\n  ours   {ours}\n  theirs {theirs:?}", case["case"]));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count >= 200, "only {count} cases");
}

#[test]
fn what_is_wrong_with_a_patch_is_told_apart_by_what_the_server_answers() {
    let shape = Shape::read_with(&json!({"$ref": "Thing"}), &kinds()).unwrap();
    let object =
        json!({"words": ["a"], "merge": [{"name": "a"}], "struct": {"name": "a"}, "retain": {"name": "a"}});
    let error = |patch: Value| patch::strategic(object.clone(), &patch, &shape).unwrap_err();
    for bad_request in [
        json!([]),
        json!({"$deleteFromPrimitiveListwords": ["a"]}),
        json!({"$setElementOrderwords": ["a"]}),
        json!({"retain": {"$retainKeys": ["value"], "name": "b"}}),
        json!({"retain": {"$retainKeys": "name"}}),
    ] {
        assert!(matches!(error(bad_request.clone()), Error::NotAPatch(_)), "{bad_request}");
    }
    // The list of the object comes first, so that only an empty one shows a list of lists.
    let nested = json!({"$deleteFromPrimitiveList/words": [["a"]]});
    let unprocessable = patch::strategic(json!({"words": []}), &nested, &shape).unwrap_err();
    assert_eq!(unprocessable, Error::PatchDoesNotApply("lists of lists are not supported".into()));
    for internal in [
        json!({"merge": [{"value": "b"}]}),
        json!({"merge": [{"name": "a", "$patch": "odd"}]}),
        json!({"struct": {"$patch": "merge"}}),
        json!({"noKey": 1, "words": [1]}),
    ] {
        assert!(matches!(error(internal.clone()), Error::Unmergeable(_)), "{internal}");
    }
}

#[test]
fn fields_that_the_kind_does_not_have_are_put_but_not_merged() {
    let shape = Shape::read_with(&json!({"$ref": "ConfigMap"}), &kinds()).unwrap();
    let patch = json!({"odd": {"a": {"b": null, "c": 1}}});
    let once = patch::strategic(json!({}), &patch, &shape).unwrap();
    assert_eq!(once, json!({"odd": {"a": {"c": 1}}}));
    let error = patch::strategic(once, &patch, &shape).unwrap_err();
    assert_eq!(error.to_string(), "unable to find api field \"odd\"");
}

#[test]
fn retained_keys_are_all_that_is_left() {
    let shape = Shape::read_with(&json!({"$ref": "Thing"}), &kinds()).unwrap();
    let object = json!({"name": "a", "retain": {"name": "a", "value": "a", "port": 1}});
    let patch = json!({"retain": {"$retainKeys": ["value", "port"], "value": "b"}});
    let next = patch::strategic(object, &patch, &shape).unwrap();
    assert_eq!(next, json!({"name": "a", "retain": {"value": "b", "port": 1}}));
}
