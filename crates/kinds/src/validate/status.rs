//! What controllers may say of the things they look after.

use super::field::{Errors, Field};
use watchkeeper_schema::FieldError;

/// Numbers in a status that are not below zero, in the order in which they are looked at, by kind.
const NUMBERS: [(&str, &[&str]); 5] = [
    (
        "Deployment",
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    ),
    ("ReplicaSet", REPLICAS),
    ("ReplicationController", REPLICAS),
    (
        "StatefulSet",
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    ),
    (
        "DaemonSet",
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    ),
];

const REPLICAS: &[&str] = &[
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];

/// Of which there are not more than there are replicas, by kind.
const PARTS: [(&str, &[&str]); 4] = [
    ("Deployment", &["updatedReplicas", "readyReplicas", "availableReplicas"]),
    ("ReplicaSet", &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]),
    ("ReplicationController", &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]),
    ("StatefulSet", &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"]),
];

/// What is wrong with the status of an object.
pub(super) fn status(kind: &str, object: &Field<'_>, errors: &mut Errors) {
    let status = object.get("status");
    if kind == "Service" {
        let (ingress, spec) = (status.get("loadBalancer").get("ingress"), object.get("spec"));
        if !ingress.is_empty() && spec.get("type").text() != "LoadBalancer" {
            let detail = "may only be used when `spec.type` is 'LoadBalancer'";
            errors.push(FieldError::forbidden(&ingress.at, detail));
        }
        return;
    }
    for name in listed(&NUMBERS, kind) {
        status.get(name).not_negative(errors);
    }
    let number = |name: &str| status.get(name).number().unwrap_or_default();
    let mut compare = |name: &str, limit: &str, called: &str| {
        if number(name) > number(limit) {
            let detail = format!("cannot be greater than {called}");
            errors.push(FieldError::invalid(&status.get(name).at, number(name), detail));
        }
    };
    let parts = listed(&PARTS, kind);
    parts.iter().for_each(|name| compare(name, "replicas", "status.replicas"));
    if !parts.is_empty() {
        let called = if kind == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        compare("availableReplicas", "readyReplicas", called);
    }
}

fn listed<'a>(table: &[(&str, &'a [&'a str])], kind: &str) -> &'a [&'a str] {
    table.iter().find(|(of, _)| *of == kind).map_or(&[], |(_, names)| names)
}
