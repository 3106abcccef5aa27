//! Random objects of one kind, and random owners.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The version all objects are in.
pub(super) const VERSION: &str = "t.example.com/v1";

/// A map from some of the names to values.
fn some(names: &'static [&'static str], value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let map = prop::collection::btree_map(prop::sample::select(names), value, 1..3);
    map.prop_map(|map| json!(map)).boxed()
}

fn items(names: &'static [&'static str]) -> BoxedStrategy<Value> {
    let numbers = || prop::option::of(0i64..3);
    let item = (numbers(), numbers(), numbers()).prop_map(|(value, p, q)| {
        let mut item = Map::new();
        item.extend(value.map(|value| ("value".to_owned(), value.into())));
        let inner: Map<String, Value> = [("p", p), ("q", q)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
            .collect();
        if !inner.is_empty() {
            item.insert("inner".into(), inner.into());
        }
        item
    });
    let items = prop::collection::btree_map(prop::sample::select(names), item, 1..3);
    items
        .prop_map(|items| {
            let items = items.into_iter().map(|(name, mut item)| {
                item.insert("name".into(), name.into());
                Value::Object(item)
            });
            items.collect::<Value>()
        })
        .boxed()
}

/// An object that says something about some of the fields. The names that maps, sets and lists have are those given.
pub(super) fn object(
    fields: &'static [&'static str],
    names: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    let number = || (0i64..3).prop_map(Value::from).boxed();
    let set = prop::collection::btree_set(prop::sample::select(names), 1..3);
    let labels = prop::option::of(some(names, "[xy]".prop_map(Value::from).boxed()));
    let values: Vec<(&'static str, BoxedStrategy<Value>)> = vec![
        ("size", number()),
        ("text", "[ab]".prop_map(Value::from).boxed()),
        ("map", some(names, number())),
        ("nested", some(&["a", "b"], number())),
        ("whole", some(names, number())),
        ("set", set.prop_map(|set| json!(set)).boxed()),
        ("items", items(names)),
        ("list", prop::collection::vec(0i64..3, 1..3).prop_map(|list| json!(list)).boxed()),
    ];
    let known = values.into_iter().filter(|(name, _)| fields.contains(name));
    let chosen: Vec<_> = known
        .map(|(name, value)| prop::option::of(value).prop_map(move |value| Some((name.to_owned(), value?))))
        .collect();
    (chosen, labels).prop_map(|(fields, labels)| {
        let spec: Map<String, Value> = fields.into_iter().flatten().collect();
        let mut object =
            json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "x", "uid": "u"}});
        // Saying that there is a spec with nothing in it is saying something that others can say too.
        if !spec.is_empty() {
            object["spec"] = spec.into();
        }
        if let Some(labels) = labels {
            object["metadata"]["labels"] = labels;
        }
        object
    })
}

/// Something that may or may not be the value of `fieldsV1`.
pub(super) fn fields_v1() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "f:a",
        "f:b",
        "f:metadata",
        "f:spec",
        ".",
        "k:{\"a\":1}",
        "k:{\"a\":\"b\"}",
        "v:1",
        "v:\"a\"",
        "i:0",
        "q:x",
        "f:",
    ]);
    let leaf = Just(json!({}));
    leaf.prop_recursive(4, 16, 3, move |inner| {
        prop::collection::btree_map(key.clone(), inner, 0..3).prop_map(|fields| json!(fields))
    })
}
