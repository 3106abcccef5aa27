//! The objects: custom resources as operators have them, and Pods as they run in a cluster.

use std::fmt::Write;

use fastrand::Rng;
use serde_json::{Value, json};

/// How large a custom resource is, as the server sends it without managed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// About 1.1 kB.
    Light,
    /// About 5 kB.
    Heavy,
}

impl Weight {
    /// What its kind is called.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Light => "Widget",
            Self::Heavy => "Panel",
        }
    }

    /// The plural of that.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Light => "widgets",
            Self::Heavy => "panels",
        }
    }

    fn variables(self) -> usize {
        match self {
            Self::Light => 4,
            Self::Heavy => 90,
        }
    }

    /// The definition of the kind. The status is no subresource, so that objects can be created with it.
    pub(crate) fn definition(self) -> String {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.bench.example.com", self.plural())},
            "spec": {
                "group": "bench.example.com", "scope": "Namespaced",
                "names": {"plural": self.plural(), "kind": self.kind()},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }}}],
            },
        })
        .to_string()
    }

    /// Where those of a namespace are.
    pub(crate) fn path(self, namespace: &str) -> String {
        format!("/apis/bench.example.com/v1/namespaces/{namespace}/{}", self.plural())
    }

    /// One of them.
    pub(crate) fn object(self, number: usize) -> String {
        let mut random = Rng::with_seed(number as u64);
        let variable = |n| json!({"name": format!("SETTING_{n:02}"), "value": hex(&mut random, 12)});
        let env: Vec<Value> = (0..self.variables()).map(variable).collect();
        let condition = |kind, reason, message| {
            json!({"type": kind, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": "2026-10-11T12:13:14Z", "observedGeneration": 1})
        };
        json!({
            "apiVersion": "bench.example.com/v1", "kind": self.kind(),
            "metadata": {
                "name": name(number),
                "labels": {"app.kubernetes.io/name": format!("shop-{}", number % 200), "tier": "web", "team": format!("team-{}", number % 50)},
                "annotations": {"bench.example.com/contact": format!("team-{}@example.com", number % 50)},
            },
            "spec": {
                "image": format!("registry.example.com/shop/web:1.{}.{}", number % 30, number % 7),
                "replicas": 1, "port": 8080, "env": env, "limits": {"cpu": "500m", "memory": "256Mi"},
            },
            "status": {"observedGeneration": 1, "ready": 1, "conditions": [
                condition("Ready", "AllReplicasReady", "1 of 1 replicas are ready"),
                condition("Progressing", "Complete", "The rollout is complete"),
            ]},
        })
        .to_string()
    }
}

/// What an object is called.
pub(crate) fn name(number: usize) -> String {
    format!("object-{number:07}")
}

/// A Pod with two containers, to be created.
pub(crate) fn pod(number: usize) -> String {
    let container = |name: &str, port: u16| {
        let variable =
            |n: usize| json!({"name": format!("SETTING_{n:02}"), "value": format!("value {n} of {name}")});
        json!({
            "name": name, "image": format!("registry.example.com/shop/{name}:1.{}.3", number % 30),
            "ports": [{"containerPort": port, "name": "http"}],
            "env": (0..6).map(variable).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
            "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 10},
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings", "readOnly": true}, {"name": "scratch", "mountPath": "/scratch"}],
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name(number), "generateName": "object-",
            "labels": {"app.kubernetes.io/name": format!("shop-{}", number % 200), "pod-template-hash": "7c5ddbdf54", "tier": "web"},
            "annotations": {"bench.example.com/config-hash": hex(&mut Rng::with_seed(number as u64), 40)},
        },
        "spec": {
            "containers": [container("web", 8080), container("proxy", 15_000)],
            "volumes": [{"name": "settings", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}}],
            "nodeName": format!("node-{}", number % 100),
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        },
    })
    .to_string()
}

/// The status that its kubelet would give it, as a merge patch.
pub(crate) fn pod_status(number: usize) -> String {
    let mut random = Rng::with_seed(number as u64);
    let at = "2026-10-11T12:13:14Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": at});
    let mut container = |name: &str| {
        json!({
            "name": name, "ready": true, "started": true, "restartCount": 0,
            "image": format!("registry.example.com/shop/{name}:1.{}.3", number % 30),
            "imageID": format!("registry.example.com/shop/{name}@sha256:{}", hex(&mut random, 64)),
            "containerID": format!("containerd://{}", hex(&mut random, 64)),
            "state": {"running": {"startedAt": at}}, "lastState": {},
        })
    };
    let containers = [container("web"), container("proxy")];
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(condition);
    let address = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
    json!({"status": {
        "phase": "Running", "conditions": conditions, "containerStatuses": containers, "startTime": at, "qosClass": "Burstable",
        "hostIP": "10.0.0.7", "hostIPs": [{"ip": "10.0.0.7"}], "podIP": address, "podIPs": [{"ip": address}],
    }})
    .to_string()
}

fn hex(random: &mut Rng, digits: usize) -> String {
    (0..digits).fold(String::new(), |mut text, _| {
        let _ = write!(text, "{:x}", random.u8(0..16));
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_resources_have_the_size_that_rows_say() {
        // The server adds uid, version, time, generation and namespace: 190 bytes.
        let size = |weight: Weight| weight.object(123).len() + 190;
        assert!((1_050..1_250).contains(&size(Weight::Light)), "{}", size(Weight::Light));
        assert!((4_800..5_400).contains(&size(Weight::Heavy)), "{}", size(Weight::Heavy));
    }

    #[test]
    fn the_same_number_gives_the_same_object() {
        assert_eq!(Weight::Light.object(7), Weight::Light.object(7));
        assert_ne!(Weight::Light.object(7), Weight::Light.object(8));
        assert_eq!(pod_status(7), pod_status(7));
    }
}
