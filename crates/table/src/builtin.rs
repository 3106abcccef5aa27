//! The tables of the kinds that Kubernetes brings along, one file for each family of kinds.
//!
//! A row is a function from an object to cells; the columns stand beside it. Fields that Kubernetes fills in when they are
//! left out are read as if they had been filled in.

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod cluster;
mod config;
mod control;
mod device;
mod event;
mod network;
mod node;
mod pod;
mod rbac;
mod service;
mod storage;
mod volume;

use crate::column::{AGE, CREATED, NAME};
use crate::fields::Fields;
use crate::printer::{Printer, View};
use serde_json::Value;
use watchkeeper_go::Time;

pub(crate) use pod::POD;

/// Name and age.
pub(crate) static PLAIN: Printer = Printer::new(&[NAME, AGE], |view| vec![view.name(), view.age()]);

/// Name and moment of creation: what kinds without a table of their own have in Kubernetes.
static BARE: Printer = Printer::new(&[NAME, CREATED], |view| vec![view.name(), created(view)]);

/// The printer of a kind.
pub(crate) fn find(group: &str, kind: &str) -> Option<&'static Printer> {
    Some(match (group, kind) {
        ("", "Pod") => &pod::POD,
        ("", "PodTemplate") => &pod::POD_TEMPLATE,
        ("", "Namespace") => &config::NAMESPACE,
        ("", "ConfigMap") => &config::CONFIG_MAP,
        ("", "Secret") => &config::SECRET,
        ("", "ResourceQuota") => &config::RESOURCE_QUOTA,
        ("", "ComponentStatus") => &config::COMPONENT_STATUS,
        ("", "Service") => &service::SERVICE,
        ("", "Endpoints") => &service::ENDPOINTS,
        ("discovery.k8s.io", "EndpointSlice") => &service::ENDPOINT_SLICE,
        ("", "ReplicationController") => &apps::REPLICATION_CONTROLLER,
        ("apps", "ReplicaSet") => &apps::REPLICA_SET,
        ("apps", "Deployment") => &apps::DEPLOYMENT,
        ("apps", "StatefulSet") => &apps::STATEFUL_SET,
        ("apps", "DaemonSet") => &apps::DAEMON_SET,
        ("apps", "ControllerRevision") => &apps::CONTROLLER_REVISION,
        ("", "PersistentVolume") => &volume::PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => &volume::PERSISTENT_VOLUME_CLAIM,
        ("", "Node") => &node::NODE,
        ("", "Event") => &event::EVENT,
        ("events.k8s.io", "Event") => &event::EVENTS_EVENT,
        ("batch", "Job") => &batch::JOB,
        ("batch", "CronJob") => &batch::CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => &autoscaling::HORIZONTAL_POD_AUTOSCALER,
        ("autoscaling", "Scale") => &autoscaling::SCALE,
        ("networking.k8s.io", "Ingress") => &network::INGRESS,
        ("networking.k8s.io", "IngressClass") => &network::INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &network::NETWORK_POLICY,
        ("networking.k8s.io", "IPAddress") => &network::IP_ADDRESS,
        ("networking.k8s.io", "ServiceCIDR") => &network::SERVICE_CIDR,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &rbac::BINDING,
        ("policy", "PodDisruptionBudget") => &autoscaling::POD_DISRUPTION_BUDGET,
        ("coordination.k8s.io", "Lease") => &cluster::LEASE,
        ("coordination.k8s.io", "LeaseCandidate") => &cluster::LEASE_CANDIDATE,
        ("scheduling.k8s.io", "PriorityClass") => &cluster::PRIORITY_CLASS,
        ("node.k8s.io", "RuntimeClass") => &cluster::RUNTIME_CLASS,
        ("apiregistration.k8s.io", "APIService") => &cluster::API_SERVICE,
        ("certificates.k8s.io", "CertificateSigningRequest") => &cluster::CERTIFICATE_SIGNING_REQUEST,
        ("storage.k8s.io", "StorageClass") => &storage::STORAGE_CLASS,
        ("storage.k8s.io", "VolumeAttributesClass") => &storage::VOLUME_ATTRIBUTES_CLASS,
        ("storage.k8s.io", "VolumeAttachment") => &storage::VOLUME_ATTACHMENT,
        ("storage.k8s.io", "CSINode") => &storage::CSI_NODE,
        ("storage.k8s.io", "CSIDriver") => &storage::CSI_DRIVER,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => &admission::WEBHOOKS,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &admission::VALIDATING_POLICY,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => &admission::MUTATING_POLICY,
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => &admission::POLICY_BINDING,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &control::FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => &control::PRIORITY_LEVEL,
        ("resource.k8s.io", "ResourceClaim") => &device::RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => &device::RESOURCE_SLICE,
        ("", "ServiceAccount") | ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => &PLAIN,
        ("", "LimitRange")
        | ("rbac.authorization.k8s.io", "Role" | "ClusterRole")
        | ("storage.k8s.io", "CSIStorageCapacity")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => &BARE,
        _ => return None,
    })
}

fn created(view: &View<'_>) -> Value {
    view.object.time("metadata.creationTimestamp").unwrap_or(Time::ZERO).rfc3339().into()
}

/// The values of the text field `name` of all items, with commas between.
fn joined(items: &[Value], name: &str) -> String {
    let texts: Vec<&str> = items.iter().map(|item| item.text(name)).collect();
    texts.join(",")
}

/// The names and images of the containers in the pod spec at `path`.
fn containers(object: &Value, path: &str) -> [Value; 2] {
    let containers = object.at(path).list("containers");
    [joined(containers, "name").into(), joined(containers, "image").into()]
}

/// Up to `most` texts with commas between, and how many more there are.
fn at_most(most: usize, separator: &str, texts: &[String]) -> String {
    let shown = texts[..texts.len().min(most)].join(separator);
    match texts.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// `True` or `False`.
fn title(flag: bool) -> &'static str {
    if flag { "True" } else { "False" }
}
