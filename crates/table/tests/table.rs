//! Tables and metadata as clients get them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use watchkeeper_table::{Error, FieldPath, Include, JsonPath, PartialList, Printer, Table};

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)
}

fn web() -> Value {
    json!({
        "apiVersion": "demo.dev/v1",
        "kind": "Web",
        "metadata": {"name": "blue", "uid": "u", "creationTimestamp": "2025-12-31T23:00:00Z", "labels": {"a": "b"}},
        "spec": {"weight": 3.0},
    })
}

fn table(printer: &Printer, objects: &[Value], metadata: Value, include: Include) -> Value {
    serde_json::to_value(Table { printer, objects, metadata: &metadata, include, headers: true, now: now() })
        .unwrap()
}

#[test]
fn a_list_becomes_a_table_with_the_metadata_of_the_list_and_of_its_items() {
    let printer = Printer::custom(&[]).unwrap();
    let list =
        json!({"resourceVersion": "12", "continue": "next", "remainingItemCount": 4, "selfLink": "/x"});
    let table = table(&printer, &[web()], list, Include::default());
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(
        table["metadata"],
        json!({"resourceVersion": "12", "continue": "next", "remainingItemCount": 4})
    );
    let columns: Vec<_> = printer.columns();
    assert_eq!(table["columnDefinitions"], json!(columns));
    assert_eq!((&columns[0]["name"], &columns[0]["format"]), (&json!("Name"), &json!("name")));
    assert_eq!((&columns[1]["name"], &columns[1]["type"]), (&json!("Age"), &json!("date")));
    let expected = json!([{
        "cells": ["blue", "60m"],
        "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": web()["metadata"]},
    }]);
    assert_eq!(table["rows"], expected);
}

#[test]
fn a_row_carries_what_the_client_asked_for() {
    let row = |object: Value, include| {
        table(Printer::plain(), &[object], Value::Null, include)["rows"][0]["object"].clone()
    };
    assert_eq!(row(web(), Include::None), Value::Null);
    assert_eq!(row(web(), Include::Object), web());
    let bookmark =
        json!({"metadata": {"resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}}});
    assert_eq!(row(bookmark.clone(), Include::None)["metadata"], bookmark["metadata"]);
    let read = ["", "None", "Metadata", "Object", "none"].map(Include::read);
    let metadata = Some(Include::Metadata);
    assert_eq!(read, [metadata, Some(Include::None), metadata, Some(Include::Object), None]);
}

#[test]
fn an_empty_list_is_a_table_without_rows() {
    let table =
        table(Printer::plain(), &[], json!({"resourceVersion": "", "continue": ""}), Include::default());
    assert_eq!(table["metadata"], json!({}));
    assert_eq!(table["rows"], json!([]));
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    let columns = [json!({"name": "Weight", "type": "number", "jsonPath": ".spec.weight"})];
    let cells = Printer::custom(&columns).unwrap().cells(&web(), now());
    assert_eq!(serde_json::to_string(&cells).unwrap(), r#"["blue",3]"#);
}

#[test]
fn a_column_that_cannot_be_served_is_named() {
    let good = json!({"name": "A", "type": "string", "jsonPath": ".a"});
    let bad = json!({"name": "B", "type": "string", "jsonPath": ".b["});
    let error = Printer::custom(&[good.clone(), bad]).unwrap_err();
    assert!(matches!(&error, Error::Column { index: 1, path, .. } if path == ".b["), "{error}");
    let error = Printer::custom(&[good, json!({"name": "B", "type": "string"})]).unwrap_err();
    assert!(error.to_string().contains("jsonPath must be a string"), "{error}");
}

#[test]
fn metadata_of_a_list_is_a_list_of_metadata() {
    let list = PartialList { objects: &[web()], metadata: &json!({"resourceVersion": "5"}) };
    let expected = json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "5"},
        "items": [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": web()["metadata"]}],
    });
    assert_eq!(serde_json::to_value(list).unwrap(), expected);
}

#[test]
fn braces_around_a_path_are_allowed_but_not_in_a_column() {
    assert_eq!(JsonPath::parse("{.metadata.name}").unwrap().find(&web()), [&json!("blue")]);
    let braced = json!({"name": "A", "type": "string", "jsonPath": "{.metadata.name}"});
    assert!(Printer::custom(&[braced]).is_err());
}

#[test]
fn field_paths_begin_with_a_dot_and_do_not_go_through_other_values() {
    assert_eq!(FieldPath::parse("").unwrap_err().to_string(), "must not be empty");
    assert_eq!(
        FieldPath::parse("spec.replicas").unwrap_err().to_string(),
        "must be a simple json path starting with ."
    );
    let path = FieldPath::parse(".spec.a.b").unwrap();
    assert_eq!(path.names().collect::<Vec<_>>(), ["spec", "a", "b"]);
    let mut object = json!({"spec": {"a": "text"}});
    assert!(!path.set(&mut object, json!(1)));
    assert_eq!(object, json!({"spec": {"a": "text"}}));
    assert_eq!(path.get(&json!({"spec": {"a": {"b": null}}})), Some(&Value::Null));
}

#[test]
fn a_kind_of_which_nothing_else_is_known_has_a_name_and_an_age() {
    assert_eq!(Printer::plain().cells(&web(), now()), [json!("blue"), json!("60m")]);
}
