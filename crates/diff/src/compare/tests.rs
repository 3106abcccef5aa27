use serde_json::json;

use super::*;

/// As `path: from -> to`, with JSON values.
fn told(old: &Value, new: &Value) -> Vec<String> {
    compare(old, new)
        .iter()
        .map(|Difference { path, from, to }| match (from, to) {
            (Some(from), Some(to)) => format!("{path}: {from} -> {to}"),
            (None, Some(to)) => format!("+ {path}: {to}"),
            (Some(from), None) => format!("- {path}: {from}"),
            (None, None) => panic!("{path} has no value"),
        })
        .collect()
}

#[test]
fn fields_that_differ_are_told_and_no_others() {
    for (old, new, expected) in [
        (json!({}), json!({}), &[][..]),
        (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), &["b: 2 -> 3"]),
        (json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 3}}), &["spec.replicas: 1 -> 3"]),
        // What comes and goes is told by its members.
        (json!({}), json!({"metadata": {"labels": {"x": "y"}}}), &["+ metadata.labels.x: \"y\""]),
        (
            json!({"metadata": {"labels": {"x": "y"}}}),
            json!({"metadata": {}}),
            &["- metadata.labels.x: \"y\""],
        ),
        // Empty is not absent, and null is not absent.
        (json!({}), json!({"emptyDir": {}}), &["+ emptyDir: {}"]),
        (json!({"a": []}), json!({}), &["- a: []"]),
        (json!({"a": null}), json!({}), &["- a: null"]),
        (json!({"a": null}), json!({"a": {}}), &["a: null -> {}"]),
        // Another type is one change.
        (json!({"a": {"b": 1}}), json!({"a": [1]}), &["a: {\"b\":1} -> [1]"]),
        (json!({"a": {"b": 1}}), json!({"a": "b"}), &["a: {\"b\":1} -> \"b\""]),
        (json!({"b": 1, "a": 1}), json!({"c": 1, "a": 2}), &["a: 1 -> 2", "- b: 1", "+ c: 1"]),
    ] {
        assert_eq!(told(&old, &new), expected, "{old} {new}");
    }
}

#[test]
fn items_of_lists_are_paired_by_the_key_that_tells_them_apart() {
    for (old, new, expected) in [
        (
            json!({"c": [{"name": "web", "image": "a"}, {"name": "log", "image": "l"}]}),
            json!({"c": [{"name": "web", "image": "b"}, {"name": "log", "image": "l"}]}),
            &["c[name=web].image: \"a\" -> \"b\""][..],
        ),
        (
            json!({"c": [{"type": "Ready", "status": "False"}]}),
            json!({"c": [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "True"}]}),
            &["c[type=Ready].status: \"False\" -> \"True\"", "+ c[type=Synced]: {\"status\":\"True\"}"],
        ),
        (
            json!({"c": [{"type": "Ready", "status": "False"}]}),
            json!({"c": []}),
            &["- c[type=Ready]: {\"status\":\"False\"}"],
        ),
        (
            json!({}),
            json!({"c": [{"type": "Ready", "status": "False"}]}),
            &["+ c[type=Ready]: {\"status\":\"False\"}"],
        ),
        // A name that occurs twice tells nothing apart; the next key may.
        (
            json!({"p": [{"name": "x", "port": 1}, {"name": "x", "port": 2}]}),
            json!({"p": [{"name": "x", "port": 1}, {"name": "y", "port": 2}]}),
            &["p[port=2].name: \"x\" -> \"y\""],
        ),
        (json!({"p": [{"a": 1}, {"a": 2}]}), json!({"p": [{"a": 1}, {"a": 3}]}), &["p[1].a: 2 -> 3"]),
        // Only their places changed.
        (
            json!({"c": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
            json!({"c": [{"name": "b"}, {"name": "a"}, {"name": "d"}]}),
            &["- c[name=c]: {}", "+ c[name=d]: {}", "c: [\"a\",\"b\"] -> [\"b\",\"a\"]"],
        ),
    ] {
        assert_eq!(told(&old, &new), expected, "{old} {new}");
    }
}

#[test]
fn items_without_a_key_are_paired_by_place_between_what_is_equal() {
    for (old, new, expected) in [
        (json!({"f": ["a", "b", "c"]}), json!({"f": ["a", "c"]}), &["- f[1]: \"b\""][..]),
        (json!({"f": ["a", "c"]}), json!({"f": ["a", "b", "c"]}), &["+ f[1]: \"b\""]),
        (json!({"f": ["a"]}), json!({"f": ["a", "b"]}), &["+ f[1]: \"b\""]),
        (json!({}), json!({"f": ["a", "b"]}), &["+ f[0]: \"a\"", "+ f[1]: \"b\""]),
        (json!({"f": ["a", "b"]}), json!({"f": ["x", "b"]}), &["f[0]: \"a\" -> \"x\""]),
        (json!({"f": ["a", "a"]}), json!({"f": ["a", "a", "a"]}), &["+ f[2]: \"a\""]),
        (json!({"f": [[1], [2]]}), json!({"f": [[1], [3]]}), &["f[1][0]: 2 -> 3"]),
    ] {
        assert_eq!(told(&old, &new), expected, "{old} {new}");
    }
}

/// Two trees of the same few names, so that they often meet.
fn random_value(random: &mut u64, depth: u32) -> Value {
    let mut next = |below: u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % below
    };
    match (next(6), depth) {
        (0 | 1, 1..) => {
            let count = next(4);
            let names = ["name", "type", "a", "b"];
            (0..count)
                .map(|at| (names[at as usize].to_owned(), random_value(random, depth - 1)))
                .collect::<Map<_, _>>()
                .into()
        }
        (2 | 3, 1..) => {
            let count = next(4);
            (0..count).map(|_| random_value(random, depth - 1)).collect::<Vec<_>>().into()
        }
        (4, _) => Value::Null,
        _ => json!(next(3)),
    }
}

#[test]
fn something_is_told_if_and_only_if_something_differs() {
    let mut random = 7;
    for _ in 0..20_000 {
        let (old, new) = (random_value(&mut random, 4), random_value(&mut random, 4));
        assert_eq!(compare(&old, &new).is_empty(), old == new, "{old} {new}");
        assert!(compare(&old, &old).is_empty());
        for difference in compare(&old, &new) {
            assert_ne!(difference.from, difference.to, "{old} {new}");
        }
    }
}
