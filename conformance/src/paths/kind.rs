//! The resources that the cases are about, and an object of each.

use serde_json::{Value, json};

/// The namespaces in which there is one of everything.
pub(super) const NAMESPACES: [&str; 2] = ["x", "y"];

/// The label of all that the fixture and the bodies of requests bring, by which answers and effects are told apart from
/// what a server makes for itself.
pub(super) const LABEL: &str = "paths";

/// The name of the objects that requests try to create.
pub(super) const NEW: &str = "fresh";

/// One resource.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
    /// The objects that are there, in each of [`NAMESPACES`] if they are in namespaces; none of what can only be created.
    pub(super) names: &'static [&'static str],
    pub(super) subresources: &'static [&'static str],
}

const fn kind(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
    names: &'static [&'static str],
    subresources: &'static [&'static str],
) -> Kind {
    Kind { group, version: "v1", plural, kind, namespaced, names, subresources }
}

const NS: bool = true;
const CLUSTER: bool = false;
const POD_PARTS: &[&str] = &[
    "status",
    "log",
    "exec",
    "attach",
    "portforward",
    "proxy",
    "eviction",
    "binding",
    "ephemeralcontainers",
    "resize",
];
const RBAC: &str = "rbac.authorization.k8s.io";
const REVIEWS: &str = "authorization.k8s.io";

/// All resources of the cases.
pub(super) const KINDS: &[Kind] = &[
    kind("", "namespaces", "Namespace", CLUSTER, &NAMESPACES, &["status", "finalize"]),
    kind(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        CLUSTER,
        &["widgets.example.com", "orbs.example.com"],
        &["status"],
    ),
    kind("", "pods", "Pod", NS, &["a", "b"], POD_PARTS),
    kind("", "configmaps", "ConfigMap", NS, &["a", "b"], &[]),
    kind("", "secrets", "Secret", NS, &["a", "b"], &[]),
    kind("", "services", "Service", NS, &["a"], &["status", "proxy"]),
    kind("", "serviceaccounts", "ServiceAccount", NS, &["a", "b"], &["token"]),
    kind("", "persistentvolumeclaims", "PersistentVolumeClaim", NS, &["a"], &["status"]),
    kind("", "replicationcontrollers", "ReplicationController", NS, &["a"], &["status", "scale"]),
    kind("", "endpoints", "Endpoints", NS, &["a"], &[]),
    kind("", "podtemplates", "PodTemplate", NS, &["a"], &[]),
    kind("", "limitranges", "LimitRange", NS, &["a"], &[]),
    kind("", "resourcequotas", "ResourceQuota", NS, &["a"], &["status"]),
    kind("", "bindings", "Binding", NS, &[], &[]),
    kind("", "nodes", "Node", CLUSTER, &["a", "b"], &["status", "proxy"]),
    kind("", "persistentvolumes", "PersistentVolume", CLUSTER, &["a"], &["status"]),
    kind("apps", "deployments", "Deployment", NS, &["a", "b"], &["status", "scale"]),
    kind("apps", "statefulsets", "StatefulSet", NS, &["a"], &["status", "scale"]),
    kind("apps", "replicasets", "ReplicaSet", NS, &["a"], &["status", "scale"]),
    kind("apps", "daemonsets", "DaemonSet", NS, &["a"], &["status"]),
    kind("apps", "controllerrevisions", "ControllerRevision", NS, &["a"], &[]),
    kind("batch", "jobs", "Job", NS, &["a"], &["status"]),
    kind("batch", "cronjobs", "CronJob", NS, &["a"], &["status"]),
    kind("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", NS, &["a"], &["status"]),
    kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", NS, &["a"], &["status"]),
    kind("coordination.k8s.io", "leases", "Lease", NS, &["a"], &[]),
    kind("networking.k8s.io", "ingresses", "Ingress", NS, &["a"], &["status"]),
    kind("networking.k8s.io", "networkpolicies", "NetworkPolicy", NS, &["a"], &[]),
    kind("discovery.k8s.io", "endpointslices", "EndpointSlice", NS, &["a"], &[]),
    kind("storage.k8s.io", "storageclasses", "StorageClass", CLUSTER, &["a"], &[]),
    kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", CLUSTER, &["a"], &[]),
    kind("node.k8s.io", "runtimeclasses", "RuntimeClass", CLUSTER, &["a"], &[]),
    kind(
        "certificates.k8s.io",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        CLUSTER,
        &["a"],
        &["status", "approval"],
    ),
    kind(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        CLUSTER,
        &["a"],
        &[],
    ),
    kind(RBAC, "roles", "Role", NS, &["a"], &[]),
    kind(RBAC, "rolebindings", "RoleBinding", NS, &["a"], &[]),
    kind(RBAC, "clusterroles", "ClusterRole", CLUSTER, &["a"], &[]),
    kind(RBAC, "clusterrolebindings", "ClusterRoleBinding", CLUSTER, &["a"], &[]),
    kind(REVIEWS, "subjectaccessreviews", "SubjectAccessReview", CLUSTER, &[], &[]),
    kind(REVIEWS, "selfsubjectaccessreviews", "SelfSubjectAccessReview", CLUSTER, &[], &[]),
    kind(REVIEWS, "selfsubjectrulesreviews", "SelfSubjectRulesReview", CLUSTER, &[], &[]),
    kind(REVIEWS, "localsubjectaccessreviews", "LocalSubjectAccessReview", NS, &[], &[]),
    kind("authentication.k8s.io", "tokenreviews", "TokenReview", CLUSTER, &[], &[]),
    kind("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", CLUSTER, &[], &[]),
    kind("example.com", "widgets", "Widget", NS, &["a", "b"], &["status", "scale"]),
    kind("example.com", "orbs", "Orb", CLUSTER, &["a", "b"], &[]),
];

impl Kind {
    /// The segments of the path in front of prefix, namespace and resource.
    pub(super) fn root(&self) -> Vec<String> {
        match self.group {
            "" => vec!["api".to_owned(), self.version.to_owned()],
            group => vec!["apis".to_owned(), group.to_owned(), self.version.to_owned()],
        }
    }

    fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// An object that may be created, or put in the place of the one of that name.
    pub(super) fn object(&self, name: &str, namespace: Option<&str>) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version(),
            "kind": self.kind,
            "metadata": {"name": name, "labels": {LABEL: "1"}},
        });
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            object["metadata"]["namespace"] = namespace.into();
        }
        if let (Some(object), Value::Object(content)) =
            (object.as_object_mut(), self.content(name, namespace))
        {
            object.extend(content);
        }
        object
    }

    /// What an object has besides its metadata.
    fn content(&self, name: &str, namespace: Option<&str>) -> Value {
        let container = json!([{"name": "c", "image": "i"}]);
        let selector = json!({"matchLabels": {"app": "a"}});
        let template = |restart: &str| {
            json!({
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": container, "restartPolicy": restart},
            })
        };
        let always = template("Always");
        let asked = json!({"verb": "get", "resource": "pods", "namespace": namespace.unwrap_or("x")});
        match self.plural {
            "pods" => json!({"spec": {"containers": container, "terminationGracePeriodSeconds": 0}}),
            "configmaps" => json!({"data": {"key": "value"}}),
            "secrets" => json!({"data": {"key": "dmFsdWU="}}),
            "services" => json!({"spec": {"ports": [{"port": 80}]}}),
            "persistentvolumeclaims" => json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "a", "resources": {"requests": {"storage": "1Gi"}},
            }}),
            "persistentvolumes" => json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"},
            }}),
            "podtemplates" => json!({"template": always}),
            "limitranges" => json!({"spec": {"limits": []}}),
            "resourcequotas" => json!({"spec": {}}),
            "bindings" => json!({"target": {"kind": "Node", "name": "a"}}),
            "replicationcontrollers" => {
                json!({"spec": {"replicas": 0, "selector": {"app": "a"}, "template": always}})
            }
            "deployments" | "replicasets" => {
                json!({"spec": {"replicas": 0, "selector": selector, "template": always}})
            }
            "statefulsets" => {
                json!({"spec": {"replicas": 0, "serviceName": "a", "selector": selector, "template": always}})
            }
            "daemonsets" => json!({"spec": {"selector": selector, "template": always}}),
            "controllerrevisions" => json!({"revision": 1, "data": {"a": 1}}),
            "jobs" => {
                json!({"spec": {"suspend": true, "template": {"spec": {"containers": container, "restartPolicy": "Never"}}}})
            }
            "cronjobs" => json!({"spec": {
                "schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": template("Never")}},
            }}),
            "horizontalpodautoscalers" => json!({"spec": {
                "maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            }}),
            // Of pods that are not there, so that it stands in nobody's way.
            "poddisruptionbudgets" => {
                json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "none"}}}})
            }
            "leases" => json!({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
            "ingresses" => {
                json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}})
            }
            "networkpolicies" => json!({"spec": {"podSelector": {}}}),
            "endpointslices" => json!({"addressType": "IPv4", "endpoints": []}),
            "storageclasses" => json!({"provisioner": "example.com/none"}),
            "priorityclasses" => json!({"value": 1}),
            "runtimeclasses" => json!({"handler": "a"}),
            "certificatesigningrequests" => json!({"spec": {
                "request": SIGNING_REQUEST, "signerName": "example.com/none", "usages": ["client auth"],
            }}),
            "roles" | "clusterroles" => json!({"rules": []}),
            "rolebindings" | "clusterrolebindings" => {
                let role = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": "a"});
                json!({"roleRef": role, "subjects": []})
            }
            "subjectaccessreviews" => json!({"spec": {"user": "nobody", "resourceAttributes": asked}}),
            "selfsubjectaccessreviews" => json!({"spec": {"resourceAttributes": asked}}),
            "localsubjectaccessreviews" => json!({"spec": {"user": "nobody", "resourceAttributes": asked}}),
            "selfsubjectrulesreviews" => json!({"spec": {"namespace": "x"}}),
            "tokenreviews" => json!({"spec": {"token": "none"}}),
            "customresourcedefinitions" => definition(name),
            "widgets" => json!({"spec": {"replicas": 1}}),
            _ => json!({}),
        }
    }
}

/// The rest of a CustomResourceDefinition called `PLURAL.GROUP`.
fn definition(name: &str) -> Value {
    let (plural, group) = name.split_once('.').unwrap_or((name, "example.com"));
    let known = KINDS.iter().find(|kind| (kind.plural, kind.group) == (plural, group));
    let subresources = match known.is_some_and(|kind| kind.subresources.contains(&"scale")) {
        true => json!({
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        }),
        false => json!({}),
    };
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    }});
    json!({"spec": {
        "group": group,
        "scope": if known.is_some_and(|kind| !kind.namespaced) { "Cluster" } else { "Namespaced" },
        "names": {"plural": plural, "kind": known.map_or("Fresh", |kind| kind.kind)},
        "versions": [{
            "name": "v1",
            "served": true,
            "storage": true,
            "subresources": subresources,
            "schema": {"openAPIV3Schema": schema},
        }],
    }})
}

/// A request for a certificate whose key nobody has.
const SIGNING_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIS01ISUNBUUF3RURFT01Bd0dBMVVFQXd3RmNHRjBhSE13V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQgpCd05DQUFRSm1jZE93UTk1ckl1UkJWWVVhRy9wMzBidVJUdGF5NFdOaUJJU0FtNGliRjQ0T05qZUVZTEVvV3JZCkZudUJYQXgvZXNpZlVjY2ZWZFI0WDB4R0FBQTFvQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnRjVST3laTHMKZEJ4T1AvSlpseGx4Q0xONUtoeTliUHFMTWtoajIwVEhJeG9DSVFDQmNyMTVhcThSdDhSZENvSVU4N3A1eElJRwpLUlVUSnc5NElYTkFsdHJQT2c9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
