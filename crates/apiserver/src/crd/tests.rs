//! What kube-apiserver 1.36 answers to the same definitions and objects.
//!
//! `cases.json` holds objects (`bases`) and cases. A case changes a base (`set`: a JSON pointer and a value, or a pointer
//! alone to remove a field) and says what comes of it: `errors` as printed, the `result`, or why it `failed`. `now` stands
//! for the time of the change.

use super::canonical::canonical;
use super::{
    Definition, Names, conditions, object, prepare_create, prepare_status_update, prepare_update, scale,
    validate, validate_status,
};
use serde_json::{Value, json};
use watchkeeper_schema::FieldError;

const CASES: &str = include_str!("cases.json");

struct Cases {
    bases: Value,
    cases: Vec<Value>,
}

impl Cases {
    fn read() -> Self {
        let mut all: Value = serde_json::from_str(CASES).expect("the cases are JSON");
        let cases = all["cases"].as_array().cloned().expect("a list of cases");
        Self { bases: all["bases"].take(), cases }
    }

    /// The cases of one operation; at least `least`, so that none get lost.
    fn of<'a>(&'a self, operation: &'a str, least: usize) -> impl Iterator<Item = &'a Value> {
        let found = move || self.cases.iter().filter(move |case| case["op"] == operation);
        assert!(found().count() >= least, "cases of {operation} are missing");
        found()
    }

    /// The object of a case.
    fn new_of(&self, case: &Value) -> Value {
        self.build(&case["base"], &case["set"])
    }

    /// The object that was there before.
    fn old_of(&self, case: &Value) -> Value {
        self.build(&case["old"], &case["old_set"])
    }

    fn build(&self, base: &Value, changes: &Value) -> Value {
        let mut object = self.bases[base.as_str().expect("a base")].clone();
        assert!(object.is_object(), "no base {base}");
        for change in changes.as_array().into_iter().flatten() {
            set(&mut object, change[0].as_str().expect("a pointer"), change.get(1));
        }
        object
    }
}

fn set(object: &mut Value, pointer: &str, value: Option<&Value>) {
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    let last = last.replace("~1", "/");
    let mut place = object;
    for step in parent.split('/').skip(1) {
        place = match place {
            Value::Array(items) => &mut items[step.parse::<usize>().expect("an index")],
            other => &mut other[step],
        };
    }
    match (place, value) {
        (Value::Array(items), Some(value)) if last == "-" => items.push(value.clone()),
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().expect("an index")] = value.clone(),
        (Value::Array(items), None) => drop(items.remove(last.parse().expect("an index"))),
        (place, Some(value)) => place[last] = value.clone(),
        (place, None) => drop(place.as_object_mut().expect("an object").remove(&last)),
    }
}

fn texts(errors: &[FieldError]) -> Value {
    errors.iter().map(FieldError::to_string).collect()
}

/// Collects what differs, so that one run shows all of it.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, case: &Value, what: &str, found: &Value, expected: &Value) {
        if found != expected {
            self.0.push(format!("{} ({what}):\n  found    {found}\n  expected {expected}", case["name"]));
        }
    }

    fn compare_result(&mut self, case: &Value, found: &Value) {
        if let Some(expected) = case.get("result") {
            for field in ["metadata", "status"] {
                self.compare(case, field, &found[field], &expected[field]);
            }
            self.compare(case, "spec", &canonical(&found["spec"]), &canonical(&expected["spec"]));
        }
    }

    fn finish(self) {
        assert!(self.0.is_empty(), "{} differences:\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn new_definitions_are_judged_as_by_kube_apiserver() {
    let cases = Cases::read();
    let mut differences = Differences::default();
    for case in cases.of("create", 150) {
        let mut new = cases.new_of(case);
        prepare_create(&mut new);
        differences.compare(case, "errors", &texts(&validate(&new, None)), &case["errors"]);
        differences.compare_result(case, &new);
    }
    differences.finish();
}

#[test]
fn changed_definitions_are_judged_as_by_kube_apiserver() {
    let cases = Cases::read();
    let mut differences = Differences::default();
    for case in cases.of("update", 35) {
        let (mut new, old) = (cases.new_of(case), cases.old_of(case));
        prepare_update(&mut new, &old);
        differences.compare(case, "errors", &texts(&validate(&new, Some(&old))), &case["errors"]);
        differences.compare_result(case, &new);
    }
    for case in cases.of("status", 6) {
        let (mut new, old) = (cases.new_of(case), cases.old_of(case));
        prepare_status_update(&mut new, &old);
        differences.compare(case, "errors", &texts(&validate_status(&new, &old)), &case["errors"]);
        differences.compare_result(case, &new);
    }
    differences.finish();
}

#[test]
fn the_status_ends_up_as_the_controllers_of_kube_apiserver_would_leave_it() {
    let cases = Cases::read();
    let mut differences = Differences::default();
    for case in cases.of("conditions", 28) {
        let mut definition = cases.new_of(case);
        let group = definition["spec"]["group"].clone();
        let others = case["others"].as_array().into_iter().flatten();
        let others: Vec<Names> =
            others.filter(|other| other["spec"]["group"] == group).map(Names::accepted).collect();
        let before = definition.clone();
        let changed = conditions(&mut definition, &others, "now");
        assert_eq!(changed, definition != before, "{}", case["name"]);
        let mut expected = case["result"].clone();
        if definition["status"].get("storedVersions").is_none() {
            // Not of this function's making.
            expected.as_object_mut().expect("a status").remove("storedVersions");
        }
        differences.compare(case, "status", &definition["status"], &expected);
        assert!(!conditions(&mut definition, &others, "later"), "{} is not at rest", case["name"]);
    }
    differences.finish();
}

#[test]
fn objects_are_prepared_as_by_kube_apiserver() {
    let cases = Cases::read();
    let mut differences = Differences::default();
    let definition_of = |case: &Value| {
        let mut definition = cases.build(&case["definition"], &Value::Null);
        prepare_create(&mut definition);
        conditions(&mut definition, [], "now");
        Definition::read(&definition).expect("a definition")
    };
    for operation in ["object-create", "object-update", "object-status"] {
        for case in cases.of(operation, 6) {
            let definition = definition_of(case);
            let version = definition.version("v1").expect("version v1");
            let mut new = cases.new_of(case);
            match operation {
                "object-create" => object::prepare_create(version, &mut new),
                "object-update" => object::prepare_update(version, &mut new, &cases.old_of(case)),
                _ => object::prepare_status_update(&mut new, &cases.old_of(case)),
            }
            differences.compare(case, "object", &new, &case["result"]);
            let mut errors = object::check_type(&definition, version, &new);
            if errors.is_empty() {
                errors = object::check_scale(version, &new, operation == "object-status");
            }
            // The errors of the schema are not of this module's making.
            let of_schema =
                |text: &Value| text.as_str().is_some_and(|text| text.contains("in body must be of type"));
            let expected = case["errors"].as_array().into_iter().flatten().filter(|text| !of_schema(text));
            differences.compare(case, "errors", &texts(&errors), &expected.cloned().collect());
        }
    }
    for case in cases.of("refuse", 15) {
        let definition = definition_of(case);
        let body = case["body"].as_str().expect("a body");
        let object: Value = serde_json::from_str(body).expect("JSON");
        let refused =
            object::refuse(&definition, definition.version("v1").expect("version v1"), &object, body);
        differences.compare(case, "refusal", &json!(refused), &case["failed"]);
    }
    for case in cases.of("scale", 12) {
        let definition = definition_of(case);
        let paths = definition.version("v1").and_then(|version| version.scale.as_ref()).expect("a scale");
        let object = cases.new_of(case);
        match scale::read(paths, &object) {
            Ok(scale) => {
                differences.compare(case, "scale", &json!({"scale": scale, "found": true}), &case["result"]);
            }
            Err(error) if case["result"]["found"] == false => {
                let expected =
                    "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
                assert_eq!(error.to_string(), expected);
                let scale = scale::read_written(paths, &object).expect("a scale");
                differences.compare(case, "written", &scale, &case["result"]["scale"]);
            }
            Err(error) => differences.compare(case, "failed", &json!(error.to_string()), &case["failed"]),
        }
    }
    differences.finish();
}
