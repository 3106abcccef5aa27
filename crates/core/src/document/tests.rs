use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop",
    "uid":"0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10","resourceVersion":"512","generation":3,
    "deletionTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}],
    "ownerReferences":[{"kind":"ReplicaSet","name":"web","uid":"u-1"},{"uid":"u-2","controller":true}]},
    "spec":{"containers":[{"name":"a","env":[1]},{"env":[2],"name":"b"}]}}"#;

#[test]
fn the_header_is_read_and_managed_fields_are_gone() {
    let document = Document::read(POD.as_bytes(), &Projection::default()).unwrap();
    let header = &document.header;
    assert_eq!(header.key, Key::new(Some("shop"), "web-0"));
    assert_eq!(header.version, Version::from(512));
    assert_eq!(header.uid, Some(Uid::from("0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10")));
    assert_eq!((header.generation, header.deleting), (3, true));
    assert_eq!(*header.owners, [Uid::from("u-1"), Uid::from("u-2")]);

    let mut expected: Value = serde_json::from_str(POD).unwrap();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(serde_json::from_slice::<Value>(&document.body).unwrap(), expected);
    let span = document.metadata.start as usize..document.metadata.end as usize;
    assert_eq!(serde_json::from_slice::<Value>(&document.body[span]).unwrap(), expected["metadata"]);
}

#[test]
fn an_object_without_a_kind_is_given_one_if_asked() {
    let json = br#"{"metadata":{"name":"a"},"data":{}}"#;
    let document = Document::read(json, &Projection::default().complete_kind("v1", "ConfigMap")).unwrap();
    let value: Value = serde_json::from_slice(&document.body).unwrap();
    assert_eq!(
        value,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}})
    );
    let span = document.metadata.start as usize..document.metadata.end as usize;
    assert_eq!(&document.body[span], br#"{"name":"a"}"#);

    let json = br#"{"apiVersion":"v1","metadata":{"name":"a"}}"#;
    let document = Document::read(json, &Projection::default().complete_kind("v1", "ConfigMap")).unwrap();
    assert_eq!(&*document.body, br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#);
}

#[test]
fn an_object_of_another_kind_is_refused() {
    let projection = Projection::default().expect_kind("v1", "Secret");
    let unreadable = Document::read(POD.as_bytes(), &projection).unwrap_err();
    assert_eq!(unreadable.error, ReadError::WrongKind);
}

#[test]
fn what_is_known_of_a_broken_object_is_told() {
    let cut = POD.find("\"namespace\"").unwrap();
    let known = Document::peek(&POD.as_bytes()[..cut], &Projection::default());
    assert_eq!(known.key, None, "it may have a namespace yet");
    let cut = POD.find("generation").unwrap();
    let known = Document::peek(&POD.as_bytes()[..cut], &Projection::default());
    assert_eq!(known.key, Some(Key::new(Some("shop"), "web-0")));
    assert_eq!(known.version, Some(Version::from(512)));
    assert_eq!(Document::peek(b"{\"meta", &Projection::default()), Known::default());
}

#[test]
fn an_object_needs_a_name_and_has_to_be_an_object() {
    for (json, error) in [
        (&b"{\"metadata\":{\"name\":\"\"}}"[..], ReadError::Nameless),
        (b"{}", ReadError::Nameless),
        (b"{\"metadata\":[]}", ReadError::Nameless),
        (b"{\"metadata\":{\"name\":7}}", ReadError::Nameless),
        (b"{\"metadata\":{\"name\":\"\xff\"}}", ReadError::Encoding),
        (b"{\"metadata\":{\"name\":\"a\"},\"x\":\"\xc3\"}", ReadError::Encoding),
        (b"[]", SyntaxError::Unexpected { at: 0, expected: "an object" }.into()),
        (b"{\"metadata\":{\"name\":\"a\"}}x", SyntaxError::Unexpected { at: 25, expected: "the end" }.into()),
    ] {
        let unreadable = Document::read(json, &Projection::default()).unwrap_err();
        assert_eq!(unreadable.error, error, "{}", String::from_utf8_lossy(json));
    }
}

#[test]
fn depth_is_limited_on_the_way_to_a_dropped_field_too() {
    let json = format!(r#"{{"metadata":{{"name":"a"}},"a":{}"#, "[".repeat(1_000_000));
    let unreadable = Document::read(json.as_bytes(), &Projection::default().drop("/a/b")).unwrap_err();
    assert!(matches!(unreadable.error, ReadError::Syntax(SyntaxError::TooDeep { .. })));
}

#[test]
fn odd_types_in_metadata_are_passed_over() {
    let json =
        br#"{"metadata":{"name":"a","uid":null,"namespace":null,"generation":"x","ownerReferences":[1,{},
        {"uid":null}],"resourceVersion":null,"deletionTimestamp":null}}"#;
    let header = Document::read(json, &Projection::default()).unwrap().header;
    assert!(
        header.version.is_empty() && header.uid.is_none() && !header.deleting && header.owners.is_empty()
    );
}

/// The slow and obvious way to do what a projection does.
fn project(value: &mut Value, pointer: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| project(item, pointer)),
        Value::Object(members) => match pointer {
            [last] => drop(members.remove(*last)),
            [first, rest @ ..] => {
                if let Some(child) = members.get_mut(*first) {
                    project(child, rest);
                }
            }
            [] => {}
        },
        _ => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-d]", inner), 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn dropping_bytes_equals_dropping_fields(
        spec in any_value(),
        pointers in prop::collection::vec(prop::collection::vec("[a-d]", 1..4), 0..4),
        pretty in any::<bool>(),
    ) {
        let object = json!({"metadata": {"name": "x", "managedFields": spec}, "a": spec, "b": {"a": spec, "c": 1}});
        let mut projection = Projection::default();
        let mut expected = object.clone();
        project(&mut expected, &["metadata", "managedFields"]);
        for pointer in &pointers {
            projection = projection.drop(&format!("/{}", pointer.join("/")));
            project(&mut expected, &pointer.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let bytes = if pretty { serde_json::to_vec_pretty(&object) } else { serde_json::to_vec(&object) }.unwrap();
        let document = Document::read(&bytes, &projection).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&document.body).unwrap(), expected);
        let span = document.metadata.start as usize..document.metadata.end as usize;
        prop_assert_eq!(&document.body[span.start..span.start + 1], b"{");
        prop_assert_eq!(&document.body[span.end - 1..span.end], b"}");
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..200usize) {
        let _ = Document::read(&bytes, &Projection::default());
        let mut damaged = POD.as_bytes().to_vec();
        let end = (at + bytes.len()).min(damaged.len());
        damaged.splice(at..end, bytes);
        if let Ok(document) = Document::read(&damaged, &Projection::default()) {
            prop_assert!(serde_json::from_slice::<Value>(&document.body).is_ok());
        }
    }
}
