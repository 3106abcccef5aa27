//! What runs: the Deployment, or the StatefulSet of what keeps something, and what belongs to it.

use serde_json::{Value, json};
use watchkeeper_description::ServedPort;

use crate::operator::{Operator, USER};

/// The namespace, which admits only pods that need no privileges.
pub(crate) fn namespace(operator: &Operator<'_>) -> Value {
    let mut labels = operator.labels();
    labels["pod-security.kubernetes.io/enforce"] = json!("restricted");
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace(), "labels": labels}})
}

/// The Deployment or StatefulSet, its Services, and what limits it.
pub(crate) fn objects(operator: &Operator<'_>) -> Vec<Value> {
    let mut objects = vec![controller(operator), disruption_budget(operator), network_policy(operator)];
    objects.extend(service(operator));
    objects.extend(webhook_service(operator));
    objects.extend(metrics_service(operator));
    objects
}

fn metadata(operator: &Operator<'_>, name: &str) -> Value {
    json!({"name": name, "namespace": operator.namespace(), "labels": operator.labels()})
}

fn controller(operator: &Operator<'_>) -> Value {
    let selector = json!({"matchLabels": operator.selector()});
    let mut controller = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(operator, operator.name()),
        "spec": {"replicas": operator.replicas(), "selector": selector, "template": pod(operator)},
    });
    if let Some(volume) = operator.volume() {
        controller["kind"] = json!("StatefulSet");
        controller["spec"]["serviceName"] = json!(metrics_name(operator));
        controller["spec"]["volumeClaimTemplates"] = json!([{
            "metadata": {"name": VOLUME},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": volume.size}},
            },
        }]);
    }
    controller
}

/// The name of the volume of what keeps something.
const VOLUME: &str = "data";
/// The name of what lives as long as its Pod.
const SCRATCH: &str = "scratch";

fn pod(operator: &Operator<'_>) -> Value {
    let selector = json!({"matchLabels": operator.selector()});
    let mut pod = json!({
        "metadata": {
            "labels": operator.labels(),
            "annotations": {"kubectl.kubernetes.io/default-container": operator.component()},
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
    });
    if operator.volume().is_some() {
        pod["spec"]["securityContext"]["fsGroup"] = json!(USER);
    }
    if let Some(scratch) = operator.scratch() {
        // In memory, as Secrets are: what is kept may hold some.
        let memory = json!({"medium": "Memory", "sizeLimit": scratch.size});
        pod["spec"]["volumes"] = json!([{"name": SCRATCH, "emptyDir": memory}]);
    }
    if !operator.has_rights() {
        pod["spec"]["automountServiceAccountToken"] = json!(false);
    }
    pod
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
        "name": operator.component(),
        "image": operator.image(),
        "imagePullPolicy": "Always",
        "args": operator.arguments(),
        "resources": resources(operator),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
        },
    });
    let mounts = [(VOLUME, operator.volume()), (SCRATCH, operator.scratch())];
    let mounts = mounts.into_iter().filter_map(|(name, volume)| Some((name, volume?)));
    let mounts: Vec<Value> =
        mounts.map(|(name, volume)| json!({"name": name, "mountPath": volume.path})).collect();
    if !mounts.is_empty() {
        container["volumeMounts"] = json!(mounts);
    }
    let served = operator.description.run.ports.iter();
    let mut ports: Vec<Value> = served
        .map(|port| json!({"name": port.name, "containerPort": port.target, "protocol": "TCP"}))
        .collect();
    if let Some(port) = operator.description.webhook_port {
        ports.push(json!({"name": WEBHOOK, "containerPort": port, "protocol": "TCP"}));
    }
    if let Some(port) = operator.port() {
        let probe = |path: &str, period: u64| json!({"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": period, "failureThreshold": 3});
        ports.push(json!({"name": "metrics", "containerPort": port, "protocol": "TCP"}));
        container["livenessProbe"] = probe("/healthz", 20);
        container["livenessProbe"]["initialDelaySeconds"] = json!(15);
        container["readinessProbe"] = probe("/readyz", 10);
    }
    if !ports.is_empty() {
        container["ports"] = json!(ports);
    }
    container
}

/// A limit of memory, none of CPU: who is throttled renews its lease too late.
fn resources(operator: &Operator<'_>) -> Value {
    json!({
        "requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "16Mi"},
        "limits": {"memory": operator.description.run.memory, "ephemeral-storage": "64Mi"},
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

/// What may reach it: the ports that it serves, that of webhooks, and that of its metrics and probes. What it may reach is left open: where API servers are differs from cluster to
/// cluster.
fn network_policy(operator: &Operator<'_>) -> Value {
    let served = operator.description.run.ports.iter().map(|port| port.target);
    let served = served.chain(operator.description.webhook_port);
    let ports: Vec<Value> =
        served.chain(operator.port()).map(|port| json!({"port": port, "protocol": "TCP"})).collect();
    let ingress = if ports.is_empty() { json!([]) } else { json!([{"ports": ports}]) };
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

/// What clients use.
fn service(operator: &Operator<'_>) -> Option<Value> {
    let ports = &operator.description.run.ports;
    let port = |port: &ServedPort| json!({"name": port.name, "port": port.port, "targetPort": port.name, "protocol": "TCP"});
    (!ports.is_empty()).then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(operator, operator.name()),
            "spec": {"selector": operator.selector(), "ports": ports.iter().map(port).collect::<Vec<_>>()},
        })
    })
}

/// The name of the port of webhooks. Pods of a version that has none are no endpoints of it.
const WEBHOOK: &str = "webhook";

/// What API servers ask webhooks through. The program looks for it under this name.
fn webhook_service(operator: &Operator<'_>) -> Option<Value> {
    operator.description.webhook_port.map(|_| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(operator, &operator.webhook_service()),
            "spec": {
                "selector": operator.selector(),
                "ports": [{"name": WEBHOOK, "port": 443, "targetPort": WEBHOOK, "protocol": "TCP"}],
            },
        })
    })
}

fn metrics_name(operator: &Operator<'_>) -> String {
    format!("{}-metrics", operator.name())
}

/// What scrapers use. It also names the pods of a StatefulSet, and has no address of its own then.
fn metrics_service(operator: &Operator<'_>) -> Option<Value> {
    let port = operator.port()?;
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(operator, &metrics_name(operator)),
        "spec": {
            "selector": operator.selector(),
            "ports": [{"name": "metrics", "port": port, "targetPort": "metrics", "protocol": "TCP"}],
        },
    });
    if operator.volume().is_some() {
        service["spec"]["clusterIP"] = json!("None");
    }
    Some(service)
}
