//! Objects that were sent through the code of the real API server, and what it made of them.
//!
//! Each line of `data/real.jsonl` is an object with what the real one answered: the error of its decoder (`decode`), the
//! complaint of its strict decoder (`strict`), the object with defaults (`defaulted`), and what became of it when it was
//! created or updated: the object (`result`) and the message of its validation (`error`). Times of the day of recording
//! are replaced by one time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};
use watchkeeper_kinds::{Kind, Subresource};

const NOW: &str = "2026-01-01T00:00:00Z";

fn lines() -> Vec<Value> {
    let lines = include_str!("data/real.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kind_of(object: &Value) -> &'static Kind {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    watchkeeper_kinds::find_kind(group, version, object["kind"].as_str().unwrap()).unwrap()
}

/// The object as it is after reading and defaulting, or the error of reading.
fn read(object: &Value) -> Result<(Value, Vec<String>), String> {
    let mut object = object.clone();
    let unknown = kind_of(&object).coerce(&mut object).map_err(|error| error.to_string())?;
    kind_of(&object).default(&mut object);
    Ok((object, unknown))
}

fn differences(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let (left, right) = (left.get(name), right.get(name));
                match (left, right) {
                    (Some(left), Some(right)) => differences(&format!("{at}.{name}"), left, right, found),
                    _ => found.push(format!("{at}.{name}: ours {left:?}, theirs {right:?}")),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{at}[{index}]"), left, right, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{at}: ours {ours}, theirs {theirs}")),
    }
}

fn check(run: impl Fn(&Value, &mut Vec<String>)) {
    let mut problems = Vec::new();
    for line in lines() {
        let mut found = Vec::new();
        run(&line, &mut found);
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", line["name"])));
    }
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn objects_are_read_as_the_real_server_reads_them() {
    check(|line, found| {
        let decoded = read(&line["object"]).map(|(_, unknown)| unknown);
        let theirs = line["decode"].as_str().map(str::to_owned);
        let ours = decoded.as_ref().err().cloned();
        if ours != theirs {
            found.push(format!("ours {ours:?}, theirs {theirs:?}"));
        }
        let strict = decoded.ok().and_then(|unknown| watchkeeper_schema::strict_message(&[], &unknown));
        let mut theirs: Vec<&str> = line["strict"].as_str().unwrap_or_default().split(", ").collect();
        let ours = strict.unwrap_or_default();
        let mut ours: Vec<&str> = ours.split(", ").collect();
        // Theirs come in the order of the request, ours by name.
        for texts in [&mut ours, &mut theirs] {
            texts.iter_mut().for_each(|text| *text = text.trim_start_matches("strict decoding error: "));
            texts.sort_unstable();
        }
        if ours != theirs {
            found.push(format!("ours {ours:?}, theirs {theirs:?}"));
        }
    });
}

#[test]
fn objects_are_defaulted_as_the_real_server_defaults_them() {
    check(|line, found| {
        if line.get("as").is_some() || line["defaulted"].is_null() {
            return;
        }
        if let Ok((ours, _)) = read(&line["object"]) {
            differences("", &ours, &line["defaulted"], found);
            let mut again = ours.clone();
            kind_of(&again).coerce(&mut again).unwrap();
            kind_of(&again).default(&mut again);
            differences("again", &again, &ours, found);
        }
    });
}

#[test]
fn events_are_converted_as_the_real_server_converts_them() {
    check(|line, found| {
        let Some(view) = line["as"].as_str() else { return };
        let (event, _) = read(&line["object"]).unwrap();
        let kind = watchkeeper_kinds::find("events.k8s.io", "v1", "events").unwrap();
        let to_new = view == "events.k8s.io/v1";
        let there = |event| if to_new { kind.from_stored(event) } else { kind.to_stored(event) };
        let back = |event| if to_new { kind.to_stored(event) } else { kind.from_stored(event) };
        let converted = there(event.clone());
        differences("", &converted, &line["defaulted"], found);
        let back = back(converted);
        differences("back", &back, &event, found);
    });
}

#[test]
fn objects_are_prepared_as_the_real_server_prepares_them() {
    check(|line, found| {
        let Ok((mut ours, _)) = read(&line["object"]) else { return };
        let kind = kind_of(&ours);
        let theirs = if line["unchanged"] == true { &line["defaulted"] } else { &line["result"] };
        match line["op"].as_str() {
            Some("create") => {
                ours["metadata"]["uid"] = json!("the-uid");
                ours["metadata"]["creationTimestamp"] = json!(NOW);
                kind.prepare_for_create(&mut ours);
                let metadata = ours["metadata"].as_object_mut().unwrap();
                metadata.remove("uid");
                metadata.remove("creationTimestamp");
            }
            Some("update" | "status") => {
                let (old, _) = read(&line["old"]).unwrap();
                let write = if line["op"] == "status" { Subresource::Status } else { Subresource::Main };
                kind.prepare_for_update(write, &mut ours, &old);
                ours["metadata"]["resourceVersion"] = json!("1");
            }
            _ => return,
        }
        differences("", &ours, theirs, found);
    });
}

#[test]
fn objects_are_judged_as_the_real_server_judges_them() {
    check(|line, found| {
        let Ok((mut ours, _)) = read(&line["object"]) else { return };
        let kind = kind_of(&ours);
        let errors = match line["op"].as_str() {
            Some("create") => {
                ours["metadata"]["uid"] = json!("the-uid");
                kind.prepare_for_create(&mut ours);
                kind.validate(&ours, None)
            }
            Some("update" | "status") => {
                let (old, _) = read(&line["old"]).unwrap();
                let write = if line["op"] == "status" { Subresource::Status } else { Subresource::Main };
                kind.prepare_for_update(write, &mut ours, &old);
                kind.validate(&ours, Some(&old))
            }
            _ => return,
        };
        let name = ours["metadata"]["name"].as_str().unwrap_or_default();
        let ours = (!errors.is_empty())
            .then(|| watchkeeper_schema::invalid_message(kind.group, kind.kind, name, &errors));
        // Behind the message for immutable specs theirs shows the difference of two Go structs; ours does not for pods.
        let shows_difference = ours.as_ref().is_some_and(|ours| ours.contains('\n'));
        let theirs = line["error"].as_str();
        let theirs = theirs.and_then(|text| if shows_difference { Some(text) } else { text.lines().next() });
        let theirs = theirs.map(str::to_owned);
        if ours != theirs {
            found.push(format!(
                "\n  ours   {}\n  theirs {}",
                ours.unwrap_or_default(),
                theirs.unwrap_or_default()
            ));
        }
    });
}
