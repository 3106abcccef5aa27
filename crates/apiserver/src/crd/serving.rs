//! What the server reads from a definition, and how a definition goes away.

use super::compiled::Conversion;
use super::deletion::{self, Cleanup};
use super::{Definition, ScalePaths, conditions, prepare_create, scale};
use serde_json::{Value, json};

fn definition() -> Value {
    let mut definition = json!({
        "metadata": {"name": "widgets.example.com", "uid": "u"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"], "categories": ["all"]},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1beta1", "served": true, "deprecated": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v1", "served": true, "deprecated": true, "deprecationWarning": "use v2!"},
                {
                    "name": "v2", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ""},
                    },
                    "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                },
                {"name": "v3", "served": false, "schema": {"openAPIV3Schema": {"type": 5}}},
                {"name": "v11alpha1", "served": true, "deprecated": true},
            ],
        },
    });
    prepare_create(&mut definition);
    conditions(&mut definition, [], "2026-01-01T00:00:00Z");
    definition
}

#[test]
fn a_definition_is_read_into_what_is_served() {
    let read = Definition::read(&definition()).unwrap();
    assert_eq!((read.group.as_str(), read.uid.as_str(), read.namespaced), ("example.com", "u", true));
    assert_eq!((read.names.singular.as_str(), read.names.list_kind.as_str()), ("widget", "WidgetList"));
    assert_eq!(read.names.short_names, ["w"]);
    assert!(read.names_accepted && read.established && !read.terminating);
    assert_eq!(read.conversion, Conversion::None);
    let order: Vec<&str> = read.versions.iter().map(|version| version.name.as_str()).collect();
    assert_eq!(order, ["v3", "v2", "v1", "v1beta1", "v11alpha1"]);

    let v2 = read.version("v2").unwrap();
    assert_eq!(read.api_version(v2), "example.com/v2");
    assert_eq!(read.storage().map(|version| version.name.as_str()), Some("v2"));
    let paths = ScalePaths { spec: ".spec.n".into(), status: ".status.n".into(), selector: None };
    assert_eq!((v2.status, v2.scale.as_ref()), (true, Some(&paths)));
    assert_eq!((v2.columns.len(), v2.selectable.as_slice()), (1, &[".spec.color".to_string()][..]));
    assert!(v2.schema.has_property("spec"));
    assert_eq!(v2.openapi["type"], "object");
}

#[test]
fn a_version_that_is_not_served_is_not_found() {
    let read = Definition::read(&definition()).unwrap();
    assert!(read.version("v3").is_none() && read.version("v9").is_none());
}

#[test]
fn a_deprecated_version_names_the_best_one_to_use_instead() {
    let read = Definition::read(&definition()).unwrap();
    let warning = |name| read.version(name).unwrap().warning.clone();
    assert_eq!(warning("v2"), None);
    assert_eq!(warning("v1").as_deref(), Some("use v2!"));
    let expected = "example.com/v1beta1 Widget is deprecated; use example.com/v2 Widget";
    assert_eq!(warning("v1beta1").as_deref(), Some(expected));
    let mut alone = definition();
    alone["spec"]["versions"][2]["served"] = json!(false);
    let read = Definition::read(&alone).unwrap();
    let warning = read.version("v1beta1").unwrap().warning.as_deref();
    assert_eq!(warning, Some("example.com/v1beta1 Widget is deprecated"));
}

#[test]
fn a_version_without_a_readable_schema_allows_everything() {
    let read = Definition::read(&definition()).unwrap();
    for name in ["v1", "v3"] {
        let version = read.versions.iter().find(|version| version.name == name).unwrap();
        let mut object = json!({"spec": {"any": ["thing"]}});
        assert!(version.schema.prune(&mut object).is_empty());
        assert_eq!(object, json!({"spec": {"any": ["thing"]}}));
    }
}

#[test]
fn fingerprints_tell_schemas_apart_and_never_change() {
    let read = Definition::read(&definition()).unwrap();
    let print = |name| read.versions.iter().find(|version| version.name == name).unwrap().fingerprint;
    // FNV-1a of {"type":"object"}.
    assert_eq!(print("v1beta1"), 0x9cdd_4c92_9f35_7a54);
    assert_ne!(print("v1beta1"), print("v2"));
    assert_eq!(print("v1"), 0);
}

#[test]
fn a_definition_without_a_group_is_none() {
    assert!(Definition::read(&json!({})).is_err());
    let error = Definition::read(&json!({"spec": {"names": {"plural": "x"}}})).unwrap_err();
    assert_eq!(error.to_string(), "not a CustomResourceDefinition: spec.group is missing");
}

#[test]
fn deletion_adds_the_finalizer_and_takes_it_away_when_nothing_is_left() {
    let mut definition = definition();
    definition["status"]["conditions"].as_array_mut().unwrap().truncate(2);
    definition["metadata"]["finalizers"] = json!(["mine"]);
    assert!(!deletion::is_pending(&definition));
    assert!(deletion::begin(&mut definition, "t1"));
    assert!(!deletion::begin(&mut definition, "t2"));
    assert!(deletion::is_pending(&definition));
    assert_eq!(definition["metadata"]["deletionTimestamp"], "t1");
    assert_eq!(definition["metadata"]["finalizers"], json!(["mine", deletion::FINALIZER]));
    let read = Definition::read(&definition).unwrap();
    assert!(read.terminating && !read.verbs().contains(&"create"));
    let last = |definition: &Value| definition["status"]["conditions"][2].clone();
    assert_eq!(
        last(&definition),
        json!({
            "type": "Terminating", "status": "True", "lastTransitionTime": "t1", "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        })
    );
    for (cleanup, status, time, reason, message) in [
        (
            Cleanup::InProgress,
            "True",
            "t1",
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        ),
        (
            Cleanup::Failed("could not list instances: x".into()),
            "True",
            "t1",
            "InstanceDeletionFailed",
            "could not list instances: x",
        ),
        (
            Cleanup::Waiting("timed out waiting for the condition".into()),
            "True",
            "t1",
            "InstanceDeletionCheck",
            "could not confirm zero CustomResources remaining: timed out waiting for the condition",
        ),
        (Cleanup::Done, "False", "t3", "InstanceDeletionCompleted", "removed all instances"),
    ] {
        deletion::progress(&mut definition, &cleanup, "t3");
        assert_eq!(deletion::is_pending(&definition), cleanup != Cleanup::Done);
        let expected = json!({
            "type": "Terminating", "status": status, "lastTransitionTime": time, "reason": reason, "message": message,
        });
        assert_eq!(last(&definition), expected);
    }
    assert_eq!(definition["metadata"]["finalizers"], json!(["mine"]));
}

#[test]
fn a_definition_that_never_was_established_has_nothing_to_clean_up() {
    let mut definition = json!({"metadata": {}, "spec": {}});
    deletion::begin(&mut definition, "t1");
    deletion::progress(&mut definition, &Cleanup::Done, "t2");
    assert_eq!(definition["status"]["conditions"][0]["reason"], "NeverEstablished");
    assert!(definition["metadata"].get("finalizers").is_none());
}

#[test]
fn a_scale_is_written_back_into_its_object() {
    let paths = ScalePaths { spec: ".spec.deep.n".into(), status: ".status.n".into(), selector: None };
    let object = json!({"metadata": {"name": "a", "resourceVersion": "5"}, "spec": {"x": 1}});
    let mut scale = scale::read_to_write(&paths, &object).unwrap();
    assert_eq!(scale["spec"]["replicas"], i32::MIN);
    let error = scale::write(&paths, &object, &scale).unwrap_err();
    assert_eq!(error.to_string(), "the spec replicas field \".spec.deep.n\" cannot be empty");

    scale["spec"]["replicas"] = json!(4);
    scale["metadata"]["resourceVersion"] = json!("3");
    let written = scale::write(&paths, &object, &scale).unwrap();
    assert_eq!(
        written,
        json!({"metadata": {"name": "a", "resourceVersion": "3"}, "spec": {"x": 1, "deep": {"n": 4}}})
    );
    let bare = json!({"spec": {}});
    let written = scale::write(&paths, &object, &bare).unwrap();
    assert_eq!(written["spec"]["deep"]["n"], 0);
    assert_eq!(written["metadata"]["resourceVersion"], "5");

    let error = scale::write(&paths, &json!({"spec": {"deep": 1}}), &scale).unwrap_err();
    assert_eq!(error.to_string(), "value cannot be set because .spec.deep is not a map[string]interface{}");
}
