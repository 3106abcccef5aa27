//! What holds for every sequence of updates and applies.

use super::arbitrary::{VERSION, fields_v1, object};
use super::element::PathElement;
use super::typed::Typed;
use super::*;
use crate::Shape;
use proptest::prelude::*;
use serde_json::{Value, json};

static NOTHING: FieldSet = FieldSet::new();

fn shape() -> Shape {
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "value": {"type": "integer"},
        "inner": {"type": "object", "properties": {"p": {"type": "integer"}, "q": {"type": "integer"}}},
    }});
    Shape::of_custom_resource(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "text": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "nested": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
        "list": {"type": "array", "items": {"type": "integer"}},
    }}}}))
    .unwrap()
}

fn request<'a>(shape: &'a Shape, manager: &'a str, now: &'a str) -> Request<'a> {
    Request {
        versions: shape,
        api_version: VERSION,
        kind: "Thing",
        subresource: "",
        manager,
        now,
        reset: &NOTHING,
    }
}

const ALL: &[&str] = &["size", "text", "map", "nested", "whole", "set", "items", "list"];
const SHARED: &[&str] = &["map", "set", "items"];
const NAMES: &[&str] = &["a", "b", "c"];

#[derive(Clone, Debug)]
struct Step {
    manager: &'static str,
    applies: bool,
    force: bool,
    object: Value,
}

fn step() -> impl Strategy<Value = Step> {
    let manager = prop::sample::select(vec!["one", "two", "kubectl"]);
    (manager, any::<bool>(), any::<bool>(), object(ALL, NAMES))
        .prop_map(|(manager, applies, force, object)| Step { manager, applies, force, object })
}

/// Does a step; a conflict changes nothing.
fn run(shape: &Shape, live: Option<&Value>, step: &Step, now: &str) -> Option<Value> {
    let request = request(shape, step.manager, now);
    if step.applies {
        return match apply(&request, live, &step.object, step.force) {
            Ok(applied) => Some(applied.object),
            Err(ApplyError::Conflicts(_)) => live.cloned(),
            Err(error) => panic!("{error}"),
        };
    }
    let empty = json!({"apiVersion": VERSION, "kind": "Thing"});
    Some(update(&request, live.unwrap_or(&empty), step.object.clone()).unwrap())
}

fn all_steps(shape: &Shape, steps: &[Step]) -> Option<Value> {
    steps.iter().enumerate().fold(None, |live, (index, step)| {
        run(shape, live.as_ref(), step, &format!("2020-01-01T00:00:{index:02}Z"))
    })
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    entries::clear(&mut object);
    object
}

fn owned(object: &Value) -> FieldSet {
    let managed = ManagedFields::read(object).unwrap();
    managed.entries().fold(FieldSet::new(), |all, entry| all.union(entry.fields.clone()))
}

/// Lists in the order of their text.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases(500)))]

    #[test]
    fn applying_twice_changes_nothing(steps in prop::collection::vec(step(), 0..5), mut last in step()) {
        let shape = shape();
        last.force = true;
        last.applies = true;
        let live = all_steps(&shape, &steps);
        let once = run(&shape, live.as_ref(), &last, "2020-01-01T00:01:00Z").unwrap();
        let twice = apply(&request(&shape, last.manager, "2020-01-01T00:02:00Z"), Some(&once), &last.object, false).unwrap();
        prop_assert!(!twice.changed);
        prop_assert!(same_but_times(&twice.object, &once));
        prop_assert_eq!(twice.object, once);
    }

    #[test]
    fn an_update_that_changes_nothing_changes_no_owner(steps in prop::collection::vec(step(), 1..5)) {
        let shape = shape();
        let live = all_steps(&shape, &steps).unwrap();
        let request = request(&shape, "other", "2020-01-01T00:01:00Z");
        prop_assert_eq!(&update(&request, &live, live.clone()).unwrap(), &live);
        prop_assert_eq!(&update(&request, &live, bare(&live)).unwrap(), &live);
    }

    #[test]
    fn managers_of_different_fields_commute(
        steps in prop::collection::vec(step(), 0..4),
        first in object(&["size", "map", "set", "items"], &["d", "e"]),
        second in object(&["text", "map", "set", "items", "list"], &["f", "g"]),
    ) {
        let shape = shape();
        let live = all_steps(&shape, &steps);
        let then = |live: Option<&Value>, manager: &'static str, object: &Value| {
            let step = Step { manager, applies: true, force: true, object: object.clone() };
            run(&shape, live, &step, "2020-01-01T00:01:00Z").unwrap()
        };
        let one_way = then(Some(&then(live.as_ref(), "left", &first)), "right", &second);
        let other_way = then(Some(&then(live.as_ref(), "right", &second)), "left", &first);
        prop_assert_eq!(sorted(&one_way), sorted(&other_way));
    }

    #[test]
    fn ownership_is_never_lost(first in step(), steps in prop::collection::vec(step(), 0..6)) {
        let shape = shape();
        let typed = Typed::new(&shape);
        let mut live = run(&shape, None, &first, "2020-01-01T00:00:00Z").unwrap();
        for step in &steps {
            let next = run(&shape, Some(&live), step, "2020-01-01T00:01:00Z").unwrap();
            // Whatever was owned and is still there has an owner.
            let still_there = owned(&live).intersection(&typed.fields(&bare(&next)));
            prop_assert!(still_there.is_subset(&owned(&next)), "{} {}", live, next);
            // And so has whatever is new, once anybody owns anything.
            if owned(&live).is_empty() && !step.applies {
                live = next;
                continue;
            }
            let new = typed.compare(&bare(&live), &bare(&next));
            let new = new.added.union(new.modified).intersection(&typed.fields(&bare(&next)));
            prop_assert!(new.is_subset(&owned(&next)), "{} {}", live, next);
            live = next;
        }
    }

    #[test]
    fn a_forced_apply_ends_as_sole_owner_of_what_it_changed(
        steps in prop::collection::vec(step(), 1..5),
        mut last in step(),
    ) {
        let shape = shape();
        let typed = Typed::new(&shape);
        last.force = true;
        last.applies = true;
        let live = all_steps(&shape, &steps).unwrap();
        let next = run(&shape, Some(&live), &last, "2020-01-01T00:01:00Z").unwrap();
        let changes = typed.compare(&bare(&live), &bare(&next));
        let managed = ManagedFields::read(&next).unwrap();
        for entry in managed.entries() {
            if entry.manager == last.manager && entry.operation == Operation::Apply {
                let named = typed.fields(&last.object).without(&FieldSet::from_iter([
                    FieldPath::of(["apiVersion"]),
                    FieldPath::of(["kind"]),
                    FieldPath::of(["metadata", "name"]),
                    FieldPath::of(["metadata", "uid"]),
                ]));
                prop_assert_eq!(&entry.fields, &named);
            } else {
                prop_assert!(entry.fields.intersection(&changes.modified).is_empty());
                prop_assert!(entry.fields.intersection(&changes.added).is_empty());
            }
        }
    }

    #[test]
    fn what_was_applied_is_there_and_what_is_applied_no_more_is_gone(
        first in object(SHARED, NAMES),
        second in object(SHARED, NAMES),
    ) {
        let shape = shape();
        let typed = Typed::new(&shape);
        let one = request(&shape, "one", "2020-01-01T00:00:00Z");
        let created = apply(&one, None, &first, false).unwrap();
        let next = apply(&one, Some(&created.object), &second, false).unwrap();
        let mut there = bare(&next.object);
        prop_assert_eq!(typed.fields(&there), typed.fields(&second));
        typed.merge(&mut there, &second);
        prop_assert_eq!(there, bare(&next.object));
    }

    #[test]
    fn sets_are_sets(left in object(ALL, NAMES), right in object(ALL, NAMES)) {
        let shape = shape();
        let (left, right) = (Typed::new(&shape).fields(&left), Typed::new(&shape).fields(&right));
        let both = left.clone().union(right.clone());
        prop_assert_eq!(&both, &right.clone().union(left.clone()));
        prop_assert!(left.is_subset(&both) && right.is_subset(&both));
        let common = left.intersection(&right);
        prop_assert_eq!(&common, &right.intersection(&left));
        let rest = left.clone().difference(&right);
        prop_assert!(rest.intersection(&right).is_empty());
        prop_assert_eq!(&rest.union(common), &left);
        prop_assert_eq!(left.is_subset(&right), left.difference(&right).is_empty());
        prop_assert_eq!(&FieldSet::from_json(&both.to_json()).unwrap(), &both);
        prop_assert_eq!(&both.paths().into_iter().collect::<FieldSet>(), &both);
        prop_assert!(both.paths().iter().all(|path| both.contains(path)));
    }

    /// Shapes, objects and owners that make no sense together.
    #[test]
    fn nothing_panics(
        schema in crate::arbitrary::schema(),
        live in crate::arbitrary::object(),
        new in crate::arbitrary::object(),
        owners in prop::collection::vec((crate::arbitrary::value(), fields_v1()), 0..3),
        force in any::<bool>(),
    ) {
        let Ok(shape) = Shape::of_custom_resource(&schema) else { return Ok(()) };
        let with_head = |object: &Value| {
            let mut object = object.clone();
            object["apiVersion"] = VERSION.into();
            object["kind"] = "Thing".into();
            object
        };
        let (mut live, mut new) = (with_head(&live), with_head(&new));
        if !live["metadata"].is_object() {
            live["metadata"] = json!({});
        }
        let owners = owners.into_iter().map(|(odd, fields)| match odd {
            Value::Object(odd) => Value::Object(odd),
            _ => json!({"manager": "m", "operation": "Apply", "apiVersion": VERSION, "fieldsType": "FieldsV1", "fieldsV1": fields}),
        });
        live["metadata"]["managedFields"] = owners.collect();
        let request = request(&shape, "m", "2020-01-01T00:00:00Z");
        let _ = update(&request, &live, new.clone());
        entries::clear(&mut new);
        if let Ok(applied) = apply(&request, Some(&live), &new, force) {
            let _ = apply(&request, Some(&applied.object), &live, force);
        }
    }
}

#[test]
fn broken_sets_are_refused_and_unknown_elements_ignored() {
    for bad in [
        json!({"": {}}),
        json!({"f": {}}),
        json!({"fx": {}}),
        json!({"k:x": {}}),
        json!({"k:1": {}}),
        json!({"v:": {}}),
        json!({"i:x": {}}),
        json!({"f:a": 1}),
        json!([]),
    ] {
        assert!(FieldSet::from_json(&bad).is_err(), "{bad}");
    }
    let known = json!({"f:a": {}, "f:b": {".": {}, "f:c": {}}, "i:1": {}, "k:{\"p\":80}": {".": {}, "f:x": {}}, "v:1.5": {}});
    let mut odd = known.clone();
    odd["q:later"] = json!({"f:z": {}});
    let set = FieldSet::from_json(&odd).unwrap();
    assert_eq!(set.to_json(), known);
    assert!(set.contains(&FieldPath(vec![PathElement::Value(json!(1.5))])));
    let by_port = |port: Value| FieldPath(vec![PathElement::Key(vec![("p".into(), port)])]);
    assert!(set.contains(&by_port(json!(80))) && set.contains(&by_port(json!(80.0))));
    assert!(!set.contains(&by_port(json!(81))));
    assert_eq!(FieldSet::from_json(&json!({"f:a": null})).unwrap().to_json(), json!({"f:a": {}}));
}
