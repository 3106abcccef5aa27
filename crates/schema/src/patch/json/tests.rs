use super::*;
use proptest::prelude::*;
use serde_json::json;

fn patch(operations: Value) -> JsonPatch {
    JsonPatch::decode(&serde_json::to_vec(&operations).unwrap()).unwrap()
}

fn apply(object: Value, operations: Value) -> Result<Value, Error> {
    patch(operations).apply(&object)
}

#[test]
fn the_examples_of_rfc_6902_hold() {
    for (example, object, operations, result) in [
        (
            "A.1",
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            json!({"baz": "qux", "foo": "bar"}),
        ),
        (
            "A.2",
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            json!({"foo": ["bar", "qux", "baz"]}),
        ),
        (
            "A.3",
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            json!({"foo": "bar"}),
        ),
        (
            "A.4",
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            json!({"foo": ["bar", "baz"]}),
        ),
        (
            "A.5",
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            json!({"baz": "boo", "foo": "bar"}),
        ),
        (
            "A.6",
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
        ),
        (
            "A.7",
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            json!({"foo": ["all", "cows", "eat", "grass"]}),
        ),
        (
            "A.8",
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
            json!([{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}]),
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
        ),
        (
            "A.10",
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]),
            json!({"foo": "bar", "child": {"grandchild": {}}}),
        ),
        (
            "A.11",
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]),
            json!({"foo": "bar", "baz": "qux"}),
        ),
        (
            "A.14",
            json!({"/": 9, "~1": 10}),
            json!([{"op": "test", "path": "/~01", "value": 10}]),
            json!({"/": 9, "~1": 10}),
        ),
        (
            "A.16",
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
            json!({"foo": ["bar", ["abc", "def"]]}),
        ),
    ] {
        assert_eq!(apply(object, operations), Ok(result), "{example}");
    }
}

#[test]
fn the_failures_of_rfc_6902_fail() {
    assert_eq!(
        apply(json!({"baz": "qux"}), json!([{"op": "test", "path": "/baz", "value": "bar"}])),
        Err(Error::TestFailed { path: "/baz".into() })
    );
    let missing = apply(json!({"foo": "bar"}), json!([{"op": "add", "path": "/baz/bat", "value": "qux"}]));
    assert_eq!(
        missing.unwrap_err().to_string(),
        r#"add operation does not apply: doc is missing path: "/baz/bat": missing value"#
    );
    assert_eq!(
        apply(json!({"/": 9, "~1": 10}), json!([{"op": "test", "path": "/~01", "value": "10"}])),
        Err(Error::TestFailed { path: "/~01".into() })
    );
}

#[test]
fn failures_are_worded_as_kube_apiserver_logs_them() {
    for (operations, text) in [
        (
            json!([{"op": "remove", "path": "/a/x"}]),
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!([{"op": "remove", "path": "/x/y"}]),
            r#"remove operation does not apply: doc is missing path: "/x/y": missing value"#,
        ),
        (
            json!([{"op": "add", "path": "/l/9", "value": 1}]),
            "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            json!([{"op": "add", "path": "/l/x", "value": 1}]),
            "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            json!([{"op": "replace", "path": "/l/9", "value": 1}]),
            "replace operation does not apply: doc is missing key: /l/9: missing value",
        ),
        (
            json!([{"op": "replace", "path": "/x/y", "value": 1}]),
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            json!([{"op": "move", "from": "/x/y", "path": "/z"}]),
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            json!([{"op": "copy", "from": "/l/9", "path": "/z"}]),
            "error in copy for from: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (json!([{"op": "spam", "path": "/a"}]), "Unexpected kind: spam"),
        (json!([{"path": "/a"}]), "Unexpected kind: unknown"),
        (json!([{"op": "add"}]), "add operation failed to decode path: missing value"),
        (
            json!([{"op": "test", "path": "/a/b/c", "value": 1}]),
            "test operation does not apply: is missing path: /a/b/c: missing value",
        ),
        (json!([{"op": "test", "path": "/a/b", "value": 2}]), "testing value /a/b failed: test failed"),
    ] {
        let error = apply(json!({"a": {"b": 1}, "l": [1]}), operations).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn laxities_of_the_original_are_kept() {
    assert_eq!(
        apply(json!({}), json!([{"op": "replace", "path": "/new", "value": 1}])),
        Ok(json!({"new": 1}))
    );
    assert_eq!(
        apply(json!({"l": [1, 2]}), json!([{"op": "remove", "path": "/l/-1"}])),
        Ok(json!({"l": [1]}))
    );
    assert!(apply(json!({}), json!([{"op": "test", "path": "/none", "value": null}])).is_ok());
    assert_eq!(
        apply(json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 2}}])),
        Ok(json!({"b": 2}))
    );
}

#[test]
fn what_is_no_patch_is_refused() {
    for bad in ["{}", "[1]", "x", "null", "\"a\""] {
        assert!(matches!(JsonPatch::decode(bad.as_bytes()), Err(Error::NotAPatch(_))), "{bad}");
    }
    let many = vec![json!({"op": "test", "path": ""}); MAX_OPERATIONS + 1];
    let error = JsonPatch::decode(&serde_json::to_vec(&many).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");
}

#[test]
fn strictness_names_unknown_and_duplicate_fields() {
    let patch = JsonPatch::decode(br#"[{"op":"test","path":"/a","path":"","foo":1}]"#).unwrap();
    assert_eq!(
        patch.strict_errors(),
        [r#"json patch duplicate field "[0].path""#, r#"json patch unknown field "[0].foo""#]
    );
}

#[test]
fn copies_cannot_grow_without_bound() {
    let double = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 100];
    let error = apply(json!({"a": ["x".repeat(1000)]}), double.into()).unwrap_err();
    assert!(error.to_string().starts_with("Unable to complete the copy"), "{error}");
}

#[test]
fn moves_and_copies_cannot_nest_without_bound() {
    let mut operations = Vec::new();
    for _ in 0..3_000 {
        operations.push(json!({"op": "add", "path": "/b", "value": {}}));
        operations.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
        operations.push(json!({"op": "move", "from": "/b", "path": "/a"}));
    }
    assert_eq!(apply(json!({"a": {}}), operations.into()), Err(Error::TooDeep));
    let nest = vec![json!({"op": "copy", "from": "/a", "path": "/a/b"}); 1_000];
    assert_eq!(apply(json!({"a": {}}), nest.into()), Err(Error::TooDeep));
    let long = format!("{}x", "/a".repeat(10_000));
    assert!(apply(json!({}), json!([{"op": "add", "path": long, "value": 1}])).is_err());
}

#[test]
fn a_failed_patch_changes_nothing() {
    let object = json!({"a": 1});
    let patch = patch(json!([{"op": "remove", "path": "/a"}, {"op": "test", "path": "/b", "value": 1}]));
    assert!(patch.apply(&object).is_err());
    assert_eq!(object, json!({"a": 1}));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases(2_000)))]

    #[test]
    fn random_operations_neither_panic_nor_nest_too_deep(
        object in crate::arbitrary::object(),
        operations in prop::collection::vec(
            (
                prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "x"]),
                "(/(a|b|c|0|1|-|-1|9|~0|~1)){0,4}",
                "(/(a|b|c|0|1|-|-1|9|~0|~1)){0,4}",
                crate::arbitrary::value(),
            ),
            0..12,
        ),
    ) {
        let operations: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        if let Ok(result) = apply(object, operations.into()) {
            prop_assert!(nests_within(&result, MAX_DEPTH, &mut usize::MAX.clone()));
        }
    }
}
