//! What holds of every schema and every object.

use crate::arbitrary::{object, schema};
use crate::{Path, Reason, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(schema: &Value) -> Schema {
    Schema::read(schema).unwrap()
}

fn is_accepted(schema: &Schema) -> bool {
    schema.check(&Path::root().child("s"), false).is_empty()
}

fn defaulted(schema: &Schema, object: &Value) -> Value {
    let mut object = object.clone();
    schema.default(&mut object);
    object
}

fn pruned(schema: &Schema, object: &Value) -> Value {
    let mut object = object.clone();
    schema.prune(&mut object);
    object
}

/// A random schema without what the check refuses: branches, odd defaults and formats are rare in it, so most pass.
fn good_schema() -> impl Strategy<Value = Value> {
    schema().prop_map(|mut schema| {
        repair(&mut schema, true);
        schema
    })
}

/// Makes a schema structural by removing what is not.
fn repair(schema: &mut Value, is_root: bool) {
    let Value::Object(node) = schema else { return };
    for keyword in ["allOf", "anyOf", "oneOf", "not", "pattern", "x-kubernetes-embedded-resource"] {
        node.remove(keyword);
    }
    if node.get("type").and_then(Value::as_str) != Some("array") {
        node.remove("x-kubernetes-list-type");
        node.remove("x-kubernetes-list-map-keys");
    } else {
        node.entry("items").or_insert_with(|| json!({"type": "string"}));
    }
    let items_are_maps = node
        .get("items")
        .is_some_and(|items| items["properties"]["a"]["type"].is_string() && items["type"] == "object");
    if !items_are_maps && node.get("x-kubernetes-list-type") == Some(&json!("map")) {
        node.remove("x-kubernetes-list-type");
        node.remove("x-kubernetes-list-map-keys");
    }
    if node.contains_key("x-kubernetes-int-or-string") {
        node.remove("type");
        node.remove("properties");
        node.remove("items");
        node.remove("additionalProperties");
    } else if !node.contains_key("type") {
        node.insert("type".into(), "string".into());
    }
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        if is_root {
            properties.remove("metadata");
            properties.remove("kind");
        }
        properties.values_mut().for_each(|property| repair(property, false));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(keyword) {
            repair(inner, false);
        }
    }
}

/// Whether no list has an item that could not have keys, and nothing that could be a key is null.
fn has_keys_everywhere(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(|item| item.is_object() && has_keys_everywhere(item)),
        Value::Object(fields) => fields.values().all(has_keys_everywhere),
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 1_000_000, ..ProptestConfig::with_cases(crate::cases(2_000)) })]

    #[test]
    fn no_schema_and_object_make_a_panic(schema in schema(), old in object(), new in object()) {
        let schema = read(&schema);
        for errors in [
            schema.check(&Path::root(), true),
            schema.validate(&new),
            schema.validate_update(&old, &new),
            schema.validate_status_update(&old, &new),
        ] {
            for error in errors {
                prop_assert!(!error.to_string().is_empty());
            }
        }
        let mut new = new;
        let _ = schema.coerce(&mut new);
        schema.rules();
    }

    #[test]
    fn pruning_twice_is_pruning_once(schema in schema(), object in object()) {
        let schema = read(&schema);
        let once = pruned(&schema, &object);
        prop_assert_eq!(pruned(&schema, &once), once);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(schema in schema(), object in object()) {
        let schema = read(&schema);
        let once = defaulted(&schema, &object);
        prop_assert_eq!(defaulted(&schema, &once), once);
    }

    #[test]
    fn coercing_twice_is_coercing_once(schema in schema(), mut object in object()) {
        let schema = read(&schema);
        if schema.coerce(&mut object).is_ok() {
            let once = object.clone();
            prop_assert_eq!(schema.coerce(&mut object), Ok(Vec::new()));
            prop_assert_eq!(object, once);
        }
    }

    /// Defaults of an accepted schema are pruned, so it does not matter what comes first.
    #[test]
    fn under_an_accepted_schema_pruning_and_defaulting_commute(schema in good_schema(), object in object()) {
        let schema = read(&schema);
        prop_assume!(is_accepted(&schema));
        prop_assert_eq!(
            pruned(&schema, &defaulted(&schema, &object)),
            defaulted(&schema, &pruned(&schema, &object))
        );
    }

    /// What was valid and complete stays valid when nothing has to be pruned or filled in any more.
    #[test]
    fn a_valid_object_stays_valid_when_it_is_read_again(schema in good_schema(), mut object in object()) {
        let schema = read(&schema);
        prop_assume!(is_accepted(&schema));
        prop_assume!(schema.coerce(&mut object).is_ok());
        schema.default(&mut object);
        prop_assume!(schema.validate(&object).is_empty());
        let stored = object.clone();
        prop_assert_eq!(schema.coerce(&mut object), Ok(Vec::new()));
        schema.default(&mut object);
        prop_assert_eq!(&object, &stored);
        prop_assert!(schema.validate(&object).is_empty());
        prop_assert!(schema.validate_update(&stored, &object).is_empty());
    }

    /// Without branches, of which tolerance could make more than one true, an update is never judged more strictly than a
    /// creation.
    #[test]
    fn an_update_has_no_error_a_creation_has_not(schema in good_schema(), old in object(), new in object()) {
        let schema = read(&schema);
        let created = schema.validate(&new);
        for error in schema.validate_update(&old, &new) {
            prop_assert!(created.contains(&error), "{}", error);
        }
    }

    #[test]
    fn an_unchanged_object_has_no_error_but_of_its_type_and_embedded_objects(schema in good_schema(), object in object()) {
        let text = schema.to_string();
        let schema = read(&schema);
        // A field the schema does not know counts as a change, even if it may stay.
        prop_assume!(!text.contains("x-kubernetes-preserve-unknown-fields"));
        let known = pruned(&schema, &object);
        let without_type: Value = known
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !matches!(name.as_str(), "metadata" | "kind"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        // An item of a list map that is no object, or whose key is null, is not found again in the old list.
        prop_assume!(!text.contains("x-kubernetes-list-map-keys") || has_keys_everywhere(&without_type));
        let errors = schema.validate_update(&without_type, &without_type);
        prop_assert!(errors.iter().all(|error| error.reason == Reason::Duplicate), "{:?}", errors);
    }
}
