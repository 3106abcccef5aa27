//! What kube-apiserver says, case by case.
//!
//! Every expectation in `cases/` is what the code of Kubernetes 1.36.3 answered when it was given the case, so all of them
//! are certain and none is derived from reading. The order of errors is not compared: there it is random.
//!
//! A case is one line of JSON. An error is its reason, a bar, and its text.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use watchkeeper_schema::{FieldError, Path, Schema, json};

/// Runs every case of a file and shows all that fail, not only the first.
fn run(cases: &str, at_least: usize, check: impl Fn(&Value, &Schema) -> Result<(), String>) {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in cases.lines() {
        let case = json::decode(line.as_bytes()).unwrap().value;
        let schema = Schema::read(&case["schema"]).unwrap();
        if let Err(failure) = check(&case, &schema) {
            failures.push(format!("{}: {failure}", case["case"]));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count >= at_least, "only {count} cases");
}

fn same_errors(case: &Value, errors: &[FieldError]) -> Result<(), String> {
    let mut ours: Vec<String> =
        errors.iter().map(|error| format!("{}|{error}", error.reason.cause())).collect();
    let mut theirs: Vec<String> = case["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|text| text.as_str().unwrap_or_default().to_owned())
        .collect();
    ours.sort();
    theirs.sort();
    if ours == theirs { Ok(()) } else { Err(format!("\n  ours   {ours:#?}\n  theirs {theirs:#?}")) }
}

#[test]
fn new_objects_are_judged_as_kube_apiserver_judges_them() {
    run(include_str!("cases/validate.jsonl"), 200, |case, schema| {
        same_errors(case, &schema.validate(&case["value"]))
    });
}

#[test]
fn updates_are_judged_as_kube_apiserver_judges_them() {
    run(include_str!("cases/update.jsonl"), 18, |case, schema| {
        same_errors(case, &schema.validate_update(&case["old"], &case["value"]))
    });
}

#[test]
fn schemas_are_judged_as_kube_apiserver_judges_them() {
    let at = Path::root().child("spec").child("validation").child("openAPIV3Schema");
    run(include_str!("cases/check.jsonl"), 80, |case, schema| {
        same_errors(case, &schema.check(&at, case["status"] == true))
    });
}

#[test]
fn objects_are_coerced_as_kube_apiserver_coerces_them() {
    run(include_str!("cases/coerce.jsonl"), 12, |case, schema| {
        let mut object = case["value"].clone();
        let (error, unknown, result) = match schema.coerce(&mut object) {
            Ok(unknown) => (Value::Null, Value::from(unknown), object),
            Err(error) => (error.to_string().into(), Value::Null, Value::Null),
        };
        for (what, ours) in [("error", error), ("unknown", unknown), ("result", result)] {
            if case[what] != ours {
                return Err(format!("{what}\n  ours   {ours}\n  theirs {}", case[what]));
            }
        }
        Ok(())
    });
}
