//! The table of kinds against what the real server says of itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::json;
use std::collections::HashSet;
use watchkeeper_kinds::{Kind, NameRule, Verbs, all, find, find_kind};

fn kind(group: &str, plural: &str) -> &'static Kind {
    find(group, "v1", plural).unwrap()
}

/// What the strategies of the real server answer, a line a kind.
#[test]
fn scope_and_ways_to_update_are_those_of_the_real_server() {
    for line in include_str!("data/strategies.txt").lines() {
        let (name, facts) = line.split_once(' ').unwrap();
        let (group, kind) = name.rsplit_once('/').unwrap();
        let version = if kind == "HorizontalPodAutoscaler" { "v2" } else { "v1" };
        let kind = find_kind(group, version, kind).unwrap();
        let ours = format!(
            "namespaced={} create_on_update={} unconditional_update={}",
            kind.namespaced, kind.create_on_update, kind.unconditional_update
        );
        assert_eq!(ours, facts, "{name}");
    }
}

#[test]
fn names_are_unique_and_found() {
    let mut seen = HashSet::new();
    for kind in all() {
        assert!(seen.insert((kind.group, kind.version, kind.plural)), "{kind:?}");
        assert!(std::ptr::eq(find(kind.group, kind.version, kind.plural).unwrap(), kind));
        assert!(std::ptr::eq(find_kind(kind.group, kind.version, kind.kind).unwrap(), kind));
        assert_eq!(kind.singular, kind.kind.to_lowercase());
        assert!(kind.subresources.is_sorted_by_key(|subresource| subresource.name), "{kind:?}");
        assert_eq!(kind.scale.is_some(), kind.subresource("scale").is_some());
    }
    assert!(find("apps", "v1", "pods").is_none());
}

#[test]
fn every_kind_has_a_schema_that_can_be_read() {
    for kind in all() {
        let definition = kind.definition();
        assert!(
            definition["properties"]["metadata"].is_object() || kind.kind.ends_with("Review"),
            "{kind:?}"
        );
        assert!(!definition.to_string().contains("\"#/definitions/"), "{kind:?}");
        assert!(!definition.to_string().contains("\"description\":\""), "{kind:?}");
        let is_list_merged = kind.schema().has_property("spec");
        assert_eq!(is_list_merged, definition["properties"]["spec"].is_object(), "{kind:?}");
    }
    let pod = kind("", "pods").definition();
    let containers = &pod["properties"]["spec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let volumes = &pod["properties"]["spec"]["properties"]["volumes"];
    assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
    let selector = &kind("apps", "deployments").definition()["properties"]["spec"]["properties"]["selector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    let port = &containers["items"]["properties"]["ports"]["items"]["properties"]["protocol"];
    assert_eq!(port["default"], "TCP");
}

#[test]
fn a_type_that_contains_itself_is_cut() {
    let definition = kind("apiextensions.k8s.io", "customresourcedefinitions").definition();
    let version = &definition["properties"]["spec"]["properties"]["versions"]["items"];
    let schema = &version["properties"]["schema"]["properties"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["type"]["type"], "string");
    assert_eq!(schema["properties"]["not"]["x-kubernetes-preserve-unknown-fields"], true);
}

#[test]
fn discovery_facts() {
    let pods = kind("", "pods");
    assert_eq!(pods.short_names, ["po"]);
    assert_eq!(pods.categories, ["all"]);
    assert_eq!(pods.subresource("eviction").unwrap().speaks.unwrap().group, "policy");
    assert_eq!(kind("apiextensions.k8s.io", "customresourcedefinitions").short_names, ["crd", "crds"]);
    assert_eq!(kind("", "namespaces").verbs, Verbs::NoDeleteCollection);
    assert!(!kind("", "namespaces").verbs.names().contains(&"deletecollection"));
    assert_eq!(kind("", "services").verbs, Verbs::All);
    assert_eq!(kind("", "services").name_rule, NameRule::DnsLabel);
    assert_eq!(kind("authorization.k8s.io", "subjectaccessreviews").verbs.names(), ["create"]);
    assert_eq!(kind("", "pods").api_version(), "v1");
    assert_eq!(kind("apps", "deployments").api_version(), "apps/v1");
}

#[test]
fn field_selectors_read_what_the_real_server_compares() {
    let pods = kind("", "pods");
    let pod =
        json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "n", "hostNetwork": true}});
    for (label, value) in [
        ("metadata.name", Some("a")),
        ("metadata.namespace", Some("b")),
        ("spec.nodeName", Some("n")),
        ("spec.host", Some("n")),
        ("spec.hostNetwork", Some("true")),
        ("status.phase", Some("")),
        ("spec.zip", None),
    ] {
        assert_eq!(pods.selected(&pod, label).as_deref(), value, "{label}");
    }
    let event = json!({"reportingComponent": "r", "involvedObject": {"kind": "Pod"}});
    assert_eq!(kind("", "events").selected(&event, "source").as_deref(), Some("r"));
    assert_eq!(kind("batch", "jobs").selected(&json!({}), "status.successful").as_deref(), Some("0"));
    assert_eq!(kind("", "nodes").selected(&json!({}), "metadata.namespace"), None);
    assert_eq!(pods.unsupported_field("spec.zip"), "field label not supported: spec.zip");
    assert_eq!(
        kind("", "configmaps").unsupported_field("x"),
        r#""x" is not a known field selector: only "metadata.name", "metadata.namespace""#
    );
}

#[test]
fn an_autoscaler_loses_nothing_in_the_old_version() {
    let v1 = kind("autoscaling", "horizontalpodautoscalers");
    let v2 = find("autoscaling", "v2", "horizontalpodautoscalers").unwrap();
    let mut stored = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3, "minReplicas": 2,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}},
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
        },
    });
    v2.coerce(&mut stored).unwrap();
    let shown = v1.from_stored(stored.clone());
    assert_eq!(shown["apiVersion"], "autoscaling/v1");
    assert_eq!(shown["spec"]["targetCPUUtilizationPercentage"], 50);
    assert_eq!(shown["spec"].get("metrics"), None);
    assert_eq!(v1.to_stored(shown), stored);
    assert_eq!(v2.from_stored(stored.clone()), stored);
}
