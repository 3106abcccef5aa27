//! What runs: the Deployment, and what belongs to it.

use serde_json::{Value, json};

use crate::operator::{Operator, REPLICAS, USER};

/// The namespace, which admits only pods that need no privileges.
pub(crate) fn namespace(operator: &Operator<'_>) -> Value {
    let mut labels = operator.labels();
    labels["pod-security.kubernetes.io/enforce"] = json!("restricted");
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace(), "labels": labels}})
}

/// The Deployment, the Service of its metrics, and what limits it.
pub(crate) fn objects(operator: &Operator<'_>) -> Vec<Value> {
    let mut objects = vec![deployment(operator), disruption_budget(operator), network_policy(operator)];
    objects.extend(service(operator));
    objects
}

fn metadata(operator: &Operator<'_>, name: &str) -> Value {
    json!({"name": name, "namespace": operator.namespace(), "labels": operator.labels()})
}

fn deployment(operator: &Operator<'_>) -> Value {
    let selector = json!({"matchLabels": operator.selector()});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(operator, operator.name()),
        "spec": {
            "replicas": REPLICAS,
            "selector": selector,
            "template": {
                "metadata": {
                    "labels": operator.labels(),
                    "annotations": {"kubectl.kubernetes.io/default-container": "operator"},
                },
                "spec": {
                    "serviceAccountName": operator.name(),
                    "terminationGracePeriodSeconds": operator.grace(),
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "affinity": affinity(operator),
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": selector,
                    }],
                    "containers": [container(operator)],
                },
            },
        },
    })
}

/// Replicas prefer nodes of their own.
pub(crate) fn affinity(operator: &Operator<'_>) -> Value {
    let term = json!({
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": operator.selector()},
        },
    });
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})
}

fn container(operator: &Operator<'_>) -> Value {
    let mut container = json!({
        "name": "operator",
        "image": operator.image(),
        "imagePullPolicy": "Always",
        "args": operator.arguments(),
        "resources": resources(),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
        },
    });
    if let Some(port) = operator.port() {
        let probe = |path: &str, period: u64| json!({"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": period, "failureThreshold": 3});
        container["ports"] = json!([{"name": "metrics", "containerPort": port, "protocol": "TCP"}]);
        container["livenessProbe"] = probe("/healthz", 20);
        container["livenessProbe"]["initialDelaySeconds"] = json!(15);
        container["readinessProbe"] = probe("/readyz", 10);
    }
    container
}

/// A limit of memory, none of CPU: who is throttled renews its lease too late.
pub(crate) fn resources() -> Value {
    json!({
        "requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "16Mi"},
        "limits": {"memory": "256Mi", "ephemeral-storage": "64Mi"},
    })
}

fn disruption_budget(operator: &Operator<'_>) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(operator, operator.name()),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": operator.selector()}},
    })
}

/// What may reach it: the port of its metrics and probes. What it may reach is left open: where API servers are differs from cluster to
/// cluster.
fn network_policy(operator: &Operator<'_>) -> Value {
    let ingress: Vec<Value> = operator
        .port()
        .map(|port| json!({"ports": [{"port": port, "protocol": "TCP"}]}))
        .into_iter()
        .collect();
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(operator, operator.name()),
        "spec": {
            "podSelector": {"matchLabels": operator.selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": [{}],
        },
    })
}

fn service(operator: &Operator<'_>) -> Option<Value> {
    let port = operator.port()?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(operator, &format!("{}-metrics", operator.name())),
        "spec": {
            "selector": operator.selector(),
            "ports": [{"name": "metrics", "port": port, "targetPort": "metrics", "protocol": "TCP"}],
        },
    }))
}
