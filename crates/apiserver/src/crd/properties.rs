//! What holds for every input.

use super::deletion::{self, Cleanup};
use super::{
    Definition, Names, compare_versions, conditions, object, prepare_create, prepare_status_update,
    prepare_update, scale, validate, validate_status,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that mean something somewhere in a definition, and some that do not.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "",
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "generation",
        "deletionTimestamp",
        "resourceVersion",
        "spec",
        "status",
        "group",
        "names",
        "plural",
        "singular",
        "listKind",
        "shortNames",
        "categories",
        "scope",
        "versions",
        "served",
        "storage",
        "schema",
        "openAPIV3Schema",
        "type",
        "object",
        "properties",
        "items",
        "default",
        "additionalProperties",
        "subresources",
        "scale",
        "specReplicasPath",
        ".spec.replicas",
        "statusReplicasPath",
        ".status.replicas",
        "labelSelectorPath",
        "additionalPrinterColumns",
        "jsonPath",
        ".spec.x",
        "selectableFields",
        "conversion",
        "strategy",
        "Webhook",
        "webhook",
        "clientConfig",
        "url",
        "https://a/b",
        "service",
        "path",
        "/a/b",
        "port",
        "caBundle",
        "LS0tLS1CRUdJTiA=",
        "conversionReviewVersions",
        "v1",
        "v1beta1",
        "preserveUnknownFields",
        "conditions",
        "acceptedNames",
        "storedVersions",
        "lastTransitionTime",
        "Established",
        "True",
        "replicas",
        "widgets",
        "Widget",
        "example.com",
        "x.k8s.io",
        "api-approved.kubernetes.io",
        "deprecated",
        "deprecationWarning",
        "Namespaced",
        "enum",
        "required",
        "x-kubernetes-validations",
        "rule",
    ];
    prop_oneof![8 => prop::sample::select(known.to_vec()).prop_map(String::from), 1 => ".{0,12}"]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A good definition with some of its parts replaced by anything.
fn definition() -> impl Strategy<Value = Value> {
    let good = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "resourceVersion": "1"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.x", "statusReplicasPath": ".status.x"}},
                    "additionalPrinterColumns": [{"name": "X", "type": "string", "jsonPath": ".spec.x"}],
                    "selectableFields": [{"jsonPath": ".spec.x"}],
                },
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]}},
        },
        "status": {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    });
    let places = places(&good);
    let changes = prop::collection::vec((prop::sample::select(places), anything()), 0..4);
    let changed = changes.prop_map(move |changes| {
        let mut definition = good.clone();
        for (place, value) in changes {
            if let Some(target) = definition.pointer_mut(&place) {
                *target = value;
            }
        }
        definition
    });
    prop_oneof![4 => changed, 1 => anything()]
}

fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (step, child) in children {
        found.extend(places(child).into_iter().map(|place| format!("/{step}{place}")));
    }
    found
}

proptest! {
    #[test]
    fn nothing_panics_and_preparing_twice_changes_nothing(new in definition(), old in definition()) {
        let mut created = new.clone();
        prepare_create(&mut created);
        let mut again = created.clone();
        prepare_create(&mut again);
        prop_assert_eq!(&again, &created);
        validate(&created, None);
        validate(&new, Some(&old));
        validate_status(&new, &old);

        let mut updated = new.clone();
        prepare_update(&mut updated, &old);
        let mut status = new.clone();
        prepare_status_update(&mut status, &old);

        let others = [Names::accepted(&old)];
        let mut settled = new.clone();
        conditions(&mut settled, &others, "now");
        let mut later = settled.clone();
        prop_assert!(!conditions(&mut later, &others, "later"));
        prop_assert_eq!(later, settled);

        let mut deleted = new;
        deletion::begin(&mut deleted, "now");
        prop_assert!(!deletion::begin(&mut deleted, "later"));
        deletion::progress(&mut deleted, &Cleanup::Done, "now");
        prop_assert!(!deletion::is_pending(&deleted));
    }

    #[test]
    fn objects_of_any_definition_can_be_handled(definition in definition(), new in anything(), old in anything()) {
        let Ok(definition) = Definition::read(&definition) else {
            return Ok(());
        };
        for version in &definition.versions {
            object::check_type(&definition, version, &new);
            object::check_scale(version, &new, false);
            object::prepare_create(version, &mut new.clone());
            object::prepare_update(version, &mut new.clone(), &old);
            object::prepare_status_update(&mut new.clone(), &old);
            if let Some(paths) = &version.scale {
                let _ = scale::read(paths, &new);
                if let Ok(scale) = scale::read_to_write(paths, &new) {
                    let _ = scale::write(paths, &new, &scale);
                }
                let _ = scale::write(paths, &new, &old);
            }
        }
    }

    #[test]
    fn versions_have_one_order(a in "v?[0-9a-z]{0,8}", b in "v[0-9]{1,2}(beta|alpha)?[0-9]{0,2}", c in "v[0-9]{1,2}(beta|alpha)[0-9]{1,2}") {
        let mut versions = [&a, &b, &c];
        versions.sort_by(|one, other| compare_versions(one, other));
        for pair in versions.windows(2) {
            prop_assert!(compare_versions(pair[0], pair[1]).is_le());
            prop_assert_eq!(compare_versions(pair[1], pair[0]), compare_versions(pair[0], pair[1]).reverse());
        }
    }
}
