//! Objects as a cluster has them: alike in structure, different in what identifies them.

use std::fmt::Write;

use fastrand::Rng;
use serde_json::{Value, json};

/// Objects to measure with: how to make one, and what its kind is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// 5.9 kB, 1.9 kB of which are managed fields: two containers of a Deployment, running.
    Pod,
    /// 1.1 kB: a small configuration.
    ConfigMap,
}

impl Sample {
    /// The JSON of object number `n` in state `version`. The same arguments give the same bytes.
    pub fn json(self, n: usize, version: u64) -> Vec<u8> {
        let mut random = Rng::with_seed(n as u64);
        let value = match self {
            Self::Pod => pod(n, version, &mut random),
            Self::ConfigMap => config_map(n, version, &mut random),
        };
        value.to_string().into_bytes()
    }

    /// The path of all objects of the kind.
    pub fn path(self) -> &'static str {
        match self {
            Self::Pod => "/api/v1/pods",
            Self::ConfigMap => "/api/v1/configmaps",
        }
    }

    /// The kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// In how many namespaces the objects are.
pub const NAMESPACES: usize = 50;

fn hex(random: &mut Rng, digits: usize) -> String {
    (0..digits).fold(String::new(), |mut text, _| {
        let _ = write!(text, "{:x}", random.u8(0..16));
        text
    })
}

fn uid(random: &mut Rng) -> String {
    let [a, b, c, d, e] = [8, 4, 3, 3, 12].map(|digits| hex(random, digits));
    format!("{a}-{b}-4{c}-a{d}-{e}")
}

fn time(random: &mut Rng) -> String {
    let [day, hour, minute, second] = [28, 24, 60, 60].map(|range| random.u32(0..range));
    format!("2026-10-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

fn config_map(n: usize, version: u64, random: &mut Rng) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("settings-{n}"),
            "namespace": format!("team-{}", n % NAMESPACES),
            "uid": uid(random),
            "resourceVersion": version.to_string(),
            "creationTimestamp": time(random),
            "labels": {"app.kubernetes.io/name": format!("service-{}", n % 200), "app.kubernetes.io/managed-by": "helm"},
            "annotations": {"meta.helm.sh/release-name": format!("service-{}", n % 200), "meta.helm.sh/release-namespace": format!("team-{}", n % NAMESPACES)},
            "managedFields": [{
                "manager": "helm", "operation": "Update", "apiVersion": "v1", "time": time(random), "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {".": {}, "f:config.yaml": {}, "f:feature-flags": {}, "f:revision": {}},
                    "f:metadata": {"f:labels": {".": {}, "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/managed-by": {}}}},
            }],
        },
        "data": {
            "config.yaml": format!("listen: 0.0.0.0:8080\ndatabase: postgres://service-{}.db.internal:5432/main\npool: {}\ntimeout: 30s\nlog:\n  level: info\n  format: json\ncache:\n  size: {}MB\n", n % 200, random.u32(1..64), random.u32(1..512)),
            "feature-flags": "checkout-v2=true,new-search=false,dark-mode=true,gift-cards=true,express-delivery=false,price-alerts=true",
            "revision": hex(random, 40),
        },
    })
}

fn pod(n: usize, version: u64, random: &mut Rng) -> Value {
    let service = format!("service-{}", n % 200);
    let node = format!("node-{}", random.u32(0..100));
    let template = hex(random, 10);
    let (host_ip, pod_ip) = (ip(random), ip(random));
    let container = |random: &mut Rng, name: &str, port: u16| {
        json!({
            "name": name,
            "image": format!("registry.internal/team-{}/{name}@sha256:{}", n % NAMESPACES, hex(random, 64)),
            "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "SERVICE", "value": service},
                {"name": "REVISION", "value": hex(random, 12)},
            ],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/app", "readOnly": true},
                {"name": format!("kube-api-access-{}", hex(random, 5)), "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
            ],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": port, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3},
            "imagePullPolicy": "IfNotPresent",
        })
    };
    let status = |random: &mut Rng, name: &str| {
        let digest = hex(random, 64);
        json!({
            "name": name, "ready": true, "restartCount": random.u8(0..4), "started": true,
            "image": format!("registry.internal/team-{}/{name}:latest", n % NAMESPACES),
            "imageID": format!("registry.internal/team-{}/{name}@sha256:{digest}", n % NAMESPACES),
            "containerID": format!("containerd://{}", hex(random, 64)),
            "lastState": {}, "state": {"running": {"startedAt": time(random)}},
        })
    };
    let condition = |random: &mut Rng, kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": time(random)});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{service}-{template}-{n:05x}"),
            "generateName": format!("{service}-{template}-"),
            "namespace": format!("team-{}", n % NAMESPACES),
            "uid": uid(random),
            "resourceVersion": version.to_string(),
            "creationTimestamp": time(random),
            "labels": {"app": service, "pod-template-hash": template, "team": format!("team-{}", n % NAMESPACES)},
            "annotations": {"checksum/config": hex(random, 64)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{service}-{template}"), "uid": uid(random), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": managed_fields(random),
        },
        "spec": {
            "containers": [container(random, "web", 8080), container(random, "sidecar", 9090)],
            "volumes": [{"name": "config", "configMap": {"name": service, "defaultMode": 420}}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": service, "serviceAccount": service, "nodeName": node,
            "securityContext": {}, "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
        },
        "status": {
            "phase": "Running", "hostIP": host_ip, "podIP": pod_ip, "podIPs": [{"ip": pod_ip}],
            "startTime": time(random), "qosClass": "Burstable",
            "conditions": [condition(random, "Initialized"), condition(random, "Ready"), condition(random, "ContainersReady"), condition(random, "PodScheduled")],
            "containerStatuses": [status(random, "web"), status(random, "sidecar")],
        },
    })
}

fn ip(random: &mut Rng) -> String {
    format!("10.{}.{}.{}", random.u8(..), random.u8(..), random.u8(..))
}

fn managed_fields(random: &mut Rng) -> Value {
    let container = |name: &str, port: u16| {
        (
            format!("k:{{\"name\":\"{name}\"}}"),
            json!({".": {}, "f:args": {}, "f:env": {".": {}, "k:{\"name\":\"POD_NAME\"}": {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}}},
                "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:ports": {".": {}, format!("k:{{\"containerPort\":{port},\"protocol\":\"TCP\"}}"): {".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}}},
                "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}}}}),
        )
    };
    let containers: serde_json::Map<_, _> =
        [container("web", 8080), container("sidecar", 9090)].into_iter().collect();
    json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": time(random), "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:checksum/config": {}}, "f:generateName": {}, "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}},
                "f:ownerReferences": {".": {}}}, "f:spec": {"f:containers": containers, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {}, "f:serviceAccount": {}, "f:serviceAccountName": {}, "f:terminationGracePeriodSeconds": {}, "f:volumes": {".": {}}}}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": time(random), "fieldsType": "FieldsV1", "subresource": "status",
            "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"ContainersReady\"}": {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}},
                "k:{\"type\":\"Ready\"}": {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}}, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:startTime": {}}}},
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_as_large_as_they_are_said_to_be() {
        let average = |sample: Sample| (0..100).map(|n| sample.json(n, 123_456).len()).sum::<usize>() / 100;
        let pod: Value = serde_json::from_slice(&Sample::Pod.json(1, 1)).unwrap();
        let managed = pod["metadata"]["managedFields"].to_string().len();
        let (pod, map) = (average(Sample::Pod), average(Sample::ConfigMap));
        println!("a Pod has {pod} bytes, {managed} of them managed fields; a ConfigMap has {map}");
        assert!((5_850..6_000).contains(&pod));
        assert!((1_050..1_150).contains(&map));
        assert!((1_800..2_000).contains(&managed));
    }
}
