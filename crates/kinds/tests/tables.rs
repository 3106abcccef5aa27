//! The tables of the built-in kinds, as Kubernetes 1.36.3 shows them.
//!
//! Every expectation in `data/tables.jsonl` is what the code of Kubernetes answered when it was given the case. A case is one
//! line of JSON. Ages are counted up to the beginning of 2026.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../table/tests/cases/mod.rs"]
mod cases;

use cases::{now, run, same};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use watchkeeper_kinds::printer;
use watchkeeper_table::{Include, Row, Table};

#[test]
fn built_in_kinds_show_what_they_show_in_kubernetes() {
    let mut kinds = BTreeMap::new();
    run(include_str!("data/tables.jsonl"), 240, |case| {
        let (group, kind) = (case["group"].as_str().unwrap(), case["kind"].as_str().unwrap());
        *kinds.entry(format!("{kind}.{group}")).or_insert(0) += 1;
        let printer = printer(group, kind).ok_or_else(|| format!("no printer of {kind}"))?;
        let columns: Vec<Value> = printer.columns();
        let columns =
            columns.iter().map(|c| json!([c["name"], c["type"], c["format"], c["priority"]])).collect();
        same(&kind, &columns, &case["columns"])?;
        let object = &case["object"];
        let table = Table {
            printer: &printer,
            objects: std::slice::from_ref(object),
            metadata: &Value::Null,
            include: Include::None,
            headers: true,
            now: now(),
        };
        let row = &serde_json::to_value(table).unwrap()["rows"][0];
        same(&object, &row["cells"], &case["cells"])?;
        same(&object, &row["conditions"][0]["reason"], &case["completed"])
    });
    assert!(kinds.len() >= 45, "only {} kinds", kinds.len());
}

#[test]
fn pods_that_are_over_have_a_completed_row() {
    let pods = printer("", "Pod").unwrap();
    let pod = |phase: &str| json!({"metadata": {"name": "p"}, "status": {"phase": phase}});
    let row = |phase: &str| {
        let row = Row { printer: &pods, include: Include::None, object: &pod(phase), now: now() };
        serde_json::to_value(row).unwrap()
    };
    assert_eq!(row("Running").get("conditions"), None);
    let condition = &row("Succeeded")["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Completed"), &json!("True")));
}

#[test]
fn kinds_without_a_table_of_their_own_show_when_they_were_created() {
    for (group, kind) in [
        ("", "LimitRange"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ] {
        let printer = printer(group, kind).unwrap();
        let columns = printer.columns();
        assert_eq!((&columns[1]["name"], &columns[1]["type"]), (&json!("Created At"), &json!("date")));
        let shifted = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T01:00:00+02:00"}});
        assert_eq!(printer.cells(&shifted, now()), [json!("x"), json!("2025-12-31T23:00:00Z")]);
        assert_eq!(printer.cells(&json!({}), now()), [json!(""), json!("0001-01-01T00:00:00Z")]);
    }
    assert!(printer("demo.dev", "Pod").is_none());
}

#[test]
fn api_services_say_who_serves_them_and_whether_they_are_reached() {
    let printer = printer("apiregistration.k8s.io", "APIService").unwrap();
    let cells = |spec: Value, conditions: Value| {
        let object = json!({"metadata": {"name": "v1."}, "spec": spec, "status": {"conditions": conditions}});
        printer.cells(&object, now())[1..3].to_vec()
    };
    assert_eq!(cells(json!({}), json!([])), ["Local", "Unknown"]);
    assert_eq!(
        cells(json!({}), json!([{"type": "Available", "status": "True", "reason": "Local"}])),
        ["Local", "True"]
    );
    let service = json!({"service": {"namespace": "n", "name": "s"}});
    let missing = json!([{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]);
    assert_eq!(cells(service, missing), ["n/s", "False (ServiceNotFound)"]);
}
