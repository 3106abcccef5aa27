//! What Kubernetes 1.36.3 says, case by case.
//!
//! Every expectation in `data/` is what the code of Kubernetes answered when it was given the case. A case is one line of
//! JSON. Ages are counted up to the beginning of 2026.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod cases;

use cases::{now, run, same};
use serde_json::{Value, json};
use std::time::Duration;
use watchkeeper_table::{JsonPath, Printer, duration};

/// Numbers without the difference between `3` and `3.0`, which Go does not write.
fn plain_numbers(cells: &Value) -> Value {
    match cells {
        Value::Array(cells) => cells.iter().map(plain_numbers).collect(),
        Value::Number(number) => number.as_f64().into(),
        other => other.clone(),
    }
}

#[test]
fn paths_lead_where_they_lead_in_kubernetes() {
    let mut shared = Value::Null;
    run(include_str!("data/jsonpath.jsonl"), 250, |case| {
        let Some(path) = case["path"].as_str() else {
            shared = case["document"].clone();
            return Ok(());
        };
        let parsed = JsonPath::parse(path);
        if path.starts_with('{') {
            // Braces are part of the path only where a template is expected.
            assert!(parsed.is_ok());
            return Ok(());
        }
        if let Some(error) = case["error"].as_str() {
            return match parsed {
                Ok(parsed) => Err(format!("{path}: accepted as {parsed:?}, should be {error}")),
                Err(_) => Ok(()),
            };
        }
        let parsed = parsed.map_err(|error| format!("{path}: {error}"))?;
        let document = case.get("document").unwrap_or(&shared);
        let mut ours: Vec<&Value> = parsed.find(document);
        assert_eq!(parsed.first(document), ours.first().copied(), "{path}");
        let mut theirs: Vec<&Value> = case["found"].as_array().unwrap().iter().collect();
        if path.contains(".*") || path.contains("..") {
            // There the order is random.
            ours.sort_by_key(|value| value.to_string());
            theirs.sort_by_key(|value| value.to_string());
        }
        same(&path, &plain_numbers(&json!(ours)), &plain_numbers(&json!(theirs)))
    });
}

#[test]
fn durations_are_as_long_as_in_kubernetes() {
    run(include_str!("data/duration.jsonl"), 100, |case| {
        let Ok(seconds) = u64::try_from(case["seconds"].as_i64().unwrap()) else {
            return Ok(());
        };
        let length = Duration::from_secs(seconds);
        let ours = json!([duration::human(length), duration::human_short(length)]);
        same(&seconds, &ours, &json!([case["human"], case["short"]]))
    });
}

#[test]
fn custom_columns_show_what_they_show_in_kubernetes() {
    run(include_str!("data/custom.jsonl"), 11, |case| {
        let columns = case["columns"].as_array().unwrap();
        let printer = Printer::custom(columns);
        if case["error"] == true {
            return if printer.is_err() { Ok(()) } else { Err(format!("accepted {columns:?}")) };
        }
        let printer = printer.map_err(|error| error.to_string())?;
        if let Some(definitions) = case["definitions"].as_array() {
            same(&"definitions", &printer.columns()[1..].into(), &json!(definitions))?;
        }
        let ours = printer.cells(&case["object"], now());
        let theirs = case["cells"].as_array().unwrap();
        for ((ours, theirs), column) in ours.iter().zip(theirs).skip(1).zip(columns) {
            same(column, &plain_numbers(ours), &plain_numbers(theirs))?;
        }
        same(&"count", &ours.len().into(), &theirs.len().into())
    });
}
