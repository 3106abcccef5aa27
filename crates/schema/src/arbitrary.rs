//! Random values and schemas for property tests.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A field name, from few, so that values and schemas meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d", "kind", "metadata", "spec"]).prop_map(String::from)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::from),
        4 => (-3i64..12).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        2 => prop::sample::select(vec![0.5, 1.0, -2.5, 1e10, 1e300, 0.1]).prop_map(Value::from),
        4 => "[a-c1]{0,4}".prop_map(Value::from),
        1 => prop::sample::select(vec!["2020-01-01", "1h", "é", "a\"b\n", "10.0.0.1", "a@b"]).prop_map(Value::from),
    ]
}

/// Any value, not too large.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            fields(inner).prop_map(Value::Object),
        ]
    })
}

/// Any object.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    fields(value()).prop_map(Value::Object)
}

fn fields(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(name(), inner, 0..5).prop_map(|fields| fields.into_iter().collect())
}

/// Keywords that restrict a value without giving it structure.
fn restriction() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        (-3i64..12).prop_map(|n| ("maximum", n.into())),
        (-3i64..12).prop_map(|n| ("minimum", n.into())),
        prop::sample::select(vec![0.5, 2.5, 1e15]).prop_map(|n| ("maximum", n.into())),
        any::<bool>().prop_map(|b| ("exclusiveMaximum", b.into())),
        any::<bool>().prop_map(|b| ("exclusiveMinimum", b.into())),
        prop::sample::select(vec![0.0, 0.1, 0.5, 1.0, 2.0, 3.0]).prop_map(|n| ("multipleOf", n.into())),
        (0i64..4).prop_map(|n| ("maxLength", n.into())),
        (0i64..4).prop_map(|n| ("minLength", n.into())),
        prop::sample::select(vec!["^a", "[0-9]+$", "(", "\\d", "b{2}"]).prop_map(|p| ("pattern", p.into())),
        (0i64..3).prop_map(|n| ("maxItems", n.into())),
        (0i64..3).prop_map(|n| ("minItems", n.into())),
        (0i64..3).prop_map(|n| ("maxProperties", n.into())),
        (0i64..3).prop_map(|n| ("minProperties", n.into())),
        prop::collection::vec(scalar(), 1..4).prop_map(|values| ("enum", values.into())),
        prop::collection::vec(name(), 0..3).prop_map(|names| ("required", names.into())),
        prop::sample::select(vec![
            "date",
            "int32",
            "ipv4",
            "duration",
            "float",
            "nonsense",
            "byte",
            "date-time"
        ])
        .prop_map(|f| ("format", f.into())),
    ]
}

fn restrictions() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(restriction(), 0..3)
        .prop_map(|keywords| keywords.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// A branch of `anyOf` and its like: restrictions, perhaps of fields.
fn branch() -> impl Strategy<Value = Value> {
    (restrictions(), prop::option::of((name(), restrictions()))).prop_map(|(mut keywords, field)| {
        if let Some((name, inner)) = field {
            keywords.insert("properties".into(), json!({name: inner}));
        }
        Value::Object(keywords)
    })
}

fn junctor() -> impl Strategy<Value = Map<String, Value>> {
    prop_oneof![
        6 => Just(Map::new()),
        1 => (prop::sample::select(vec!["allOf", "anyOf", "oneOf"]), prop::collection::vec(branch(), 1..3))
            .prop_map(|(name, branches)| Map::from_iter([(name.to_owned(), branches.into())])),
        1 => branch().prop_map(|branch| Map::from_iter([("not".to_owned(), branch)])),
    ]
}

fn extension() -> impl Strategy<Value = Map<String, Value>> {
    let one = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    prop_oneof![
        8 => Just(Map::new()),
        2 => Just(one("nullable", true.into())),
        1 => Just(one("x-kubernetes-preserve-unknown-fields", true.into())),
        1 => Just(one("x-kubernetes-int-or-string", true.into())),
        1 => Just(one("x-kubernetes-embedded-resource", true.into())),
        1 => Just(one("x-kubernetes-list-type", "set".into())),
        1 => Just(Map::from_iter([
            ("x-kubernetes-list-type".to_owned(), "map".into()),
            ("x-kubernetes-list-map-keys".to_owned(), json!(["a"])),
        ])),
        2 => value().prop_map(move |value| Map::from_iter([("default".to_owned(), value)])),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "object", "array", ""]);
    (kind, restrictions(), junctor(), extension()).prop_map(|(kind, restrictions, junctor, extension)| {
        let mut node = Map::new();
        if !kind.is_empty() {
            node.insert("type".into(), kind.into());
        }
        node.extend(restrictions);
        node.extend(junctor);
        node.extend(extension);
        Value::Object(node)
    })
}

/// Any schema, structural or not.
pub(crate) fn schema() -> impl Strategy<Value = Value> {
    let nested = leaf().prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            (leaf(), prop::collection::btree_map(name(), inner.clone(), 1..4)).prop_map(
                |(mut node, properties)| {
                    node["type"] = "object".into();
                    node["properties"] = json!(properties);
                    node
                }
            ),
            (leaf(), inner.clone()).prop_map(|(mut node, items)| {
                node["type"] = "array".into();
                node["items"] = items;
                node
            }),
            (leaf(), inner).prop_map(|(mut node, entry)| {
                node["type"] = "object".into();
                node["additionalProperties"] = entry;
                node
            }),
        ]
    });
    prop::collection::btree_map(name(), nested, 1..5)
        .prop_map(|properties| json!({"type": "object", "properties": properties}))
}
