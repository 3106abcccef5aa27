//! The table of kinds.

mod fields;
mod row;

use crate::kind::{Kind, NameRule, Verbs};
use fields::{CORE_EVENT_FIELDS, NEW_EVENT_FIELDS, POD_FIELDS, SLICE_FIELDS};
use row::{
    APPROVAL, BINDING, EPHEMERAL_CONTAINERS, EVICTION, FINALIZE, RESIZE, SCALE, STATUS, TOKEN, field,
    field_at, kind,
};

/// How many kinds there are.
pub(crate) const COUNT: usize = ALL.len();

pub(crate) fn all() -> &'static [Kind] {
    &ALL
}

/// The row of a kind.
pub(crate) fn place(kind: &Kind) -> usize {
    let is_it = |row: &Kind| (row.group, row.version, row.kind) == (kind.group, kind.version, kind.kind);
    ALL.iter().position(is_it).unwrap_or_default()
}

static ALL: [Kind; 65] = [
    kind("", "v1", "Binding", "bindings", "binding").verbs(Verbs::CreateOnly),
    kind("", "v1", "ConfigMap", "configmaps", "configmap").short(&["cm"]),
    kind("", "v1", "Endpoints", "endpoints", "endpoints").short(&["ep"]).created_on_update(),
    kind("", "v1", "Event", "events", "event")
        .short(&["ev"])
        .created_on_update()
        .selectable(CORE_EVENT_FIELDS),
    kind("", "v1", "LimitRange", "limitranges", "limitrange").short(&["limits"]).created_on_update(),
    kind("", "v1", "Namespace", "namespaces", "namespace")
        .short(&["ns"])
        .cluster_wide()
        .verbs(Verbs::NoDeleteCollection)
        .with(&[FINALIZE, STATUS])
        .named(NameRule::DnsLabel)
        .selectable(&[field("status.phase", "")]),
    kind("", "v1", "Node", "nodes", "node")
        .short(&["no"])
        .cluster_wide()
        .with(&[STATUS])
        .selectable(&[field("spec.unschedulable", "false")]),
    kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim")
        .short(&["pvc"])
        .with(&[STATUS]),
    kind("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume")
        .short(&["pv"])
        .cluster_wide()
        .with(&[STATUS]),
    kind("", "v1", "Pod", "pods", "pod")
        .short(&["po"])
        .in_all()
        .with(&[BINDING, EPHEMERAL_CONTAINERS, EVICTION, RESIZE, STATUS])
        .generation()
        .graceful()
        .selectable(POD_FIELDS),
    kind("", "v1", "PodTemplate", "podtemplates", "podtemplate").generation(),
    kind("", "v1", "ReplicationController", "replicationcontrollers", "replicationcontroller")
        .short(&["rc"])
        .in_all()
        .with(&[SCALE, STATUS])
        .scaled("spec.selector")
        .generation()
        .selectable(&[field("status.replicas", "0")]),
    kind("", "v1", "ResourceQuota", "resourcequotas", "resourcequota").short(&["quota"]).with(&[STATUS]),
    kind("", "v1", "Secret", "secrets", "secret").selectable(&[field("type", "")]),
    kind("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount").short(&["sa"]).with(&[TOKEN]),
    kind("", "v1", "Service", "services", "service")
        .short(&["svc"])
        .in_all()
        .with(&[STATUS])
        .named(NameRule::DnsLabel)
        .created_on_update()
        .selectable(&[field("spec.clusterIP", ""), field("spec.type", "")]),
    kind(ADMISSION, "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicy")
        .categories(&["api-extensions"])
        .cluster_wide()
        .generation()
        .conditional(),
    kind(
        ADMISSION,
        "v1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        "mutatingadmissionpolicybinding",
    )
    .categories(&["api-extensions"])
    .cluster_wide()
    .generation()
    .conditional(),
    kind(
        ADMISSION,
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfiguration",
    )
    .categories(&["api-extensions"])
    .cluster_wide()
    .generation()
    .conditional(),
    kind(
        ADMISSION,
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        "validatingadmissionpolicy",
    )
    .categories(&["api-extensions"])
    .cluster_wide()
    .with(&[STATUS])
    .generation()
    .conditional(),
    kind(
        ADMISSION,
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicybinding",
    )
    .categories(&["api-extensions"])
    .cluster_wide()
    .generation()
    .conditional(),
    kind(
        ADMISSION,
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
    )
    .categories(&["api-extensions"])
    .cluster_wide()
    .generation()
    .conditional(),
    kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
    )
    .short(&["crd", "crds"])
    .categories(&["api-extensions"])
    .cluster_wide()
    .with(&[STATUS])
    .generation()
    .conditional(),
    kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice")
        .categories(&["api-extensions"])
        .cluster_wide()
        .with(&[STATUS])
        .named(NameRule::PathSegment)
        .conditional(),
    kind("apps", "v1", "ControllerRevision", "controllerrevisions", "controllerrevision"),
    kind("apps", "v1", "DaemonSet", "daemonsets", "daemonset")
        .short(&["ds"])
        .in_all()
        .with(&[STATUS])
        .generation(),
    kind("apps", "v1", "Deployment", "deployments", "deployment")
        .short(&["deploy"])
        .in_all()
        .with(&[SCALE, STATUS])
        .scaled("spec.selector")
        .generation(),
    kind("apps", "v1", "ReplicaSet", "replicasets", "replicaset")
        .short(&["rs"])
        .in_all()
        .with(&[SCALE, STATUS])
        .scaled("spec.selector")
        .generation(),
    kind("apps", "v1", "StatefulSet", "statefulsets", "statefulset")
        .named(NameRule::DnsLabel)
        .short(&["sts"])
        .in_all()
        .with(&[SCALE, STATUS])
        .scaled("spec.selector")
        .generation(),
    kind(AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview")
        .cluster_wide()
        .verbs(Verbs::CreateOnly),
    kind(AUTHENTICATION, "v1", "TokenReview", "tokenreviews", "tokenreview")
        .cluster_wide()
        .verbs(Verbs::CreateOnly),
    kind(
        AUTHORIZATION,
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
    )
    .verbs(Verbs::CreateOnly),
    kind(
        AUTHORIZATION,
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
    )
    .cluster_wide()
    .verbs(Verbs::CreateOnly),
    kind(AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview")
        .cluster_wide()
        .verbs(Verbs::CreateOnly),
    kind(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview")
        .cluster_wide()
        .verbs(Verbs::CreateOnly),
    // The first version of a group is the one that clients are told to prefer.
    kind(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
    )
    .short(&["hpa"])
    .in_all()
    .with(&[STATUS]),
    kind(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
    )
    .short(&["hpa"])
    .in_all()
    .with(&[STATUS])
    .stored_as("autoscaling", "v2"),
    kind("batch", "v1", "CronJob", "cronjobs", "cronjob")
        .short(&["cj"])
        .in_all()
        .with(&[STATUS])
        .generation(),
    kind("batch", "v1", "Job", "jobs", "job").in_all().with(&[STATUS]).generation().selectable(&[field_at(
        "status.successful",
        "status.succeeded",
        "0",
    )]),
    kind(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "certificatesigningrequest",
    )
    .short(&["csr"])
    .cluster_wide()
    .with(&[APPROVAL, STATUS])
    .named(NameRule::Any)
    .selectable(&[field("spec.signerName", "")]),
    kind("coordination.k8s.io", "v1", "Lease", "leases", "lease").created_on_update().conditional(),
    kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice").generation(),
    kind("events.k8s.io", "v1", "Event", "events", "event")
        .short(&["ev"])
        .created_on_update()
        .stored_as("", "v1")
        .selectable(NEW_EVENT_FIELDS),
    kind(NETWORKING, "v1", "IngressClass", "ingressclasses", "ingressclass").cluster_wide().generation(),
    kind(NETWORKING, "v1", "Ingress", "ingresses", "ingress").short(&["ing"]).with(&[STATUS]).generation(),
    kind(NETWORKING, "v1", "IPAddress", "ipaddresses", "ipaddress")
        .short(&["ip"])
        .cluster_wide()
        .named(NameRule::Address),
    kind(NETWORKING, "v1", "NetworkPolicy", "networkpolicies", "networkpolicy")
        .short(&["netpol"])
        .generation(),
    kind(NETWORKING, "v1", "ServiceCIDR", "servicecidrs", "servicecidr").cluster_wide().with(&[STATUS]),
    kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass")
        .cluster_wide()
        .conditional()
        .created_on_update(),
    kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget")
        .short(&["pdb"])
        .with(&[STATUS])
        .generation()
        .conditional(),
    kind(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding")
        .cluster_wide()
        .named(NameRule::PathSegment)
        .created_on_update(),
    kind(RBAC, "v1", "ClusterRole", "clusterroles", "clusterrole")
        .cluster_wide()
        .named(NameRule::PathSegment)
        .created_on_update(),
    kind(RBAC, "v1", "RoleBinding", "rolebindings", "rolebinding")
        .named(NameRule::PathSegment)
        .created_on_update(),
    kind(RBAC, "v1", "Role", "roles", "role").named(NameRule::PathSegment).created_on_update(),
    kind(RESOURCE, "v1", "DeviceClass", "deviceclasses", "deviceclass").cluster_wide().generation(),
    kind(RESOURCE, "v1", "ResourceClaim", "resourceclaims", "resourceclaim").with(&[STATUS]),
    kind(RESOURCE, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate"),
    kind(RESOURCE, "v1", "ResourceSlice", "resourceslices", "resourceslice")
        .cluster_wide()
        .generation()
        .selectable(SLICE_FIELDS),
    kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass")
        .short(&["pc"])
        .cluster_wide()
        .generation(),
    kind(STORAGE, "v1", "CSIDriver", "csidrivers", "csidriver").cluster_wide().conditional(),
    kind(STORAGE, "v1", "CSINode", "csinodes", "csinode").cluster_wide().conditional(),
    kind(STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity").conditional(),
    kind(STORAGE, "v1", "StorageClass", "storageclasses", "storageclass").short(&["sc"]).cluster_wide(),
    kind(STORAGE, "v1", "VolumeAttachment", "volumeattachments", "volumeattachment")
        .cluster_wide()
        .with(&[STATUS])
        .conditional(),
    kind(STORAGE, "v1", "VolumeAttributesClass", "volumeattributesclasses", "volumeattributesclass")
        .short(&["vac"])
        .cluster_wide(),
];

const ADMISSION: &str = "admissionregistration.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";
