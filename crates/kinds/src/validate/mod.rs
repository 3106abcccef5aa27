//! Whether an object keeps the rules of its kind.

mod addresses;
mod api_service;
mod autoscaler;
mod batch;
mod certificate;
mod config;
mod containers;
mod cron;
mod devices;
mod difference;
mod drivers;
mod endpoints;
mod field;
mod job_policies;
mod limits;
mod mounts;
mod names;
mod network;
mod pod;
mod policies;
mod rbac;
mod rules;
mod selector;
mod service;
mod stateful_set;
mod status;
mod storage;
mod update;
mod volumes;
mod webhooks;
mod workloads;

use crate::Kind;
use field::Field;
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path, metadata};

impl Kind {
    /// What is wrong with an object that is created, or that replaces `old`; nothing if the list is empty.
    ///
    /// The words are those of kube-apiserver. The rules are the ones users run into first, not all there are. Both objects
    /// must have been coerced, defaulted and prepared. That an update leaves name, namespace and uid alone is for the
    /// server to see to, as it does for every kind.
    ///
    /// ```
    /// use serde_json::json;
    /// let kind = watchkeeper_kinds::find("", "v1", "configmaps").unwrap();
    /// let errors = kind.validate(&json!({"metadata": {"name": "a"}, "data": {"..": "x"}}), None);
    /// assert_eq!(errors[0].to_string(), r#"data[..]: Invalid value: "..": must not be '..'"#);
    /// ```
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.verbs == crate::Verbs::CreateOnly {
            return errors;
        }
        if old.is_none() {
            name(self, new, &mut errors);
        } else if self.kind == "APIService" {
            api_service::name(&Field::root(new), &mut errors);
        }
        let times = match old {
            Some(_) => self.metadata_checks().1,
            None => 1,
        };
        for _ in 0..times {
            errors.extend(metadata::validate(&new["metadata"], &Path::root().child("metadata")));
        }
        let object = Field::root(new);
        let before = old.map(Field::root);
        if let Some(old) = before.as_ref().filter(|_| CHANGES_FIRST.contains(&self.kind)) {
            update::update(self.kind, &object, old, &mut errors);
        }
        match self.kind {
            "Pod" => pod::pod(&object.get("spec"), old.is_none(), &mut errors),
            "PodTemplate" => pod::template(&object.get("template"), &mut errors),
            "Deployment" => workloads::deployment(&object.get("spec"), &mut errors),
            "ReplicaSet" => workloads::replica_set(&object.get("spec"), &mut errors),
            "DaemonSet" => workloads::daemon_set(&object.get("spec"), &mut errors),
            "StatefulSet" => stateful_set::stateful_set(&object, before.as_ref(), &mut errors),
            "ReplicationController" => workloads::replication_controller(&object.get("spec"), &mut errors),
            "ControllerRevision" => workloads::controller_revision(&object, &mut errors),
            "Job" => batch::job(&object, &mut errors),
            "CronJob" => batch::cron_job(&object, &mut errors),
            "Service" => service::service(&object.get("spec"), before.as_ref(), &mut errors),
            "ConfigMap" => config::config_map(&object, &mut errors),
            "Secret" => config::secret(&object, &mut errors),
            "Role" | "ClusterRole" => rbac::role(&object, self.namespaced, &mut errors),
            "RoleBinding" | "ClusterRoleBinding" => rbac::binding(&object, self.namespaced, &mut errors),
            "PersistentVolumeClaim" => storage::claim(&object.get("spec"), &mut errors),
            "PersistentVolume" => storage::volume(&object.get("spec"), &mut errors),
            "StorageClass" => storage::class(&object, &mut errors),
            "Ingress" => network::ingress(&object, old.is_none(), &mut errors),
            "IngressClass" => network::ingress_class(&object.get("spec"), &mut errors),
            "NetworkPolicy" => network::policy(&object.get("spec"), &mut errors),
            "Endpoints" => endpoints::endpoints(&object, before.as_ref(), &mut errors),
            "EndpointSlice" => endpoints::slice(&object, before.as_ref(), &mut errors),
            "ResourceQuota" => limits::quota(&object, before.as_ref(), &mut errors),
            "LimitRange" => limits::range(&object, &mut errors),
            "Node" => limits::node(&object, &mut errors),
            "Namespace" => rules::namespace(&object, &mut errors),
            "HorizontalPodAutoscaler" => autoscaler::autoscaler(&object.get("spec"), &mut errors),
            "PodDisruptionBudget" => rules::budget(&object.get("spec"), &mut errors),
            "PriorityClass" => rules::priority_class(&object, &mut errors),
            "Lease" => rules::lease(&object.get("spec"), &mut errors),
            "Event" => rules::event(&object, self.group == "events.k8s.io", &mut errors),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                let is_mutating = self.kind.starts_with("Mutating");
                webhooks::webhooks(&object.get("webhooks"), is_mutating, &mut errors);
            }
            "ValidatingAdmissionPolicy" => policies::validating(&object, &mut errors),
            "MutatingAdmissionPolicy" => policies::mutating(&object, &mut errors),
            "ValidatingAdmissionPolicyBinding" => policies::binding(&object.get("spec"), false, &mut errors),
            "MutatingAdmissionPolicyBinding" => policies::binding(&object.get("spec"), true, &mut errors),
            "CertificateSigningRequest" => certificate::request(&object, &mut errors),
            "IPAddress" => addresses::address(&object.get("spec"), &mut errors),
            "ServiceCIDR" if old.is_none() => addresses::blocks(&object.get("spec"), &mut errors),
            "RuntimeClass" => rules::runtime_class(&object, &mut errors),
            "DeviceClass" => devices::class(&object.get("spec"), &mut errors),
            "ResourceClaim" if old.is_none() => devices::claim(&object.get("spec"), &mut errors),
            "ResourceClaimTemplate" => devices::claim(&object.get("spec").get("spec"), &mut errors),
            "ResourceSlice" => {
                let before = before.as_ref().map(|old| old.get("spec"));
                devices::slice(&object.get("spec"), before.as_ref(), &mut errors);
            }
            "CSIDriver" => drivers::csi_driver(&object.get("spec"), &mut errors),
            "CSINode" => drivers::csi_node(&object.get("spec"), &mut errors),
            "CSIStorageCapacity" => drivers::capacity(&object, &mut errors),
            "VolumeAttachment" => drivers::attachment(&object, &mut errors),
            "VolumeAttributesClass" => drivers::attributes_class(&object, &mut errors),
            "APIService" => api_service::spec(&object.get("spec"), &mut errors),
            _ => {}
        }
        if let Some(old) = before.as_ref().filter(|_| !CHANGES_FIRST.contains(&self.kind)) {
            update::update(self.kind, &object, old, &mut errors);
        }
        errors
    }

    /// What is wrong with an object whose part other than the main one replaces that of `old`: its status, what holds a
    /// namespace, or a decision. Under the same conditions as [`validate`](Self::validate).
    pub fn validate_part(&self, part: crate::Write, new: &Value, old: &Value) -> Vec<FieldError> {
        let (object, mut errors) = (Field::root(new), Vec::new());
        match part {
            crate::Write::Status | crate::Write::Approval if self.kind == "CertificateSigningRequest" => {
                certificate::request(&object, &mut errors);
                certificate::update(part, &object, &Field::root(old), &mut errors);
            }
            crate::Write::Status if self.kind == "VolumeAttachment" => {
                drivers::attachment(&object, &mut errors);
            }
            crate::Write::Status if self.kind == "ValidatingAdmissionPolicy" => {
                policies::status(&object.get("status"), &mut errors);
            }
            crate::Write::Status if self.kind == "APIService" => {
                api_service::status(&object.get("status"), &mut errors);
            }
            crate::Write::Status => status::status(self.kind, &object, &mut errors),
            crate::Write::Finalize if self.kind == "Namespace" => rules::finalizers(&object, &mut errors),
            _ => {}
        }
        errors
    }
}

impl Kind {
    /// How often kube-apiserver says of an update of this kind what is wrong with its metadata, besides what it says of
    /// every kind: how often as a change, and how often as metadata. Clients see it as causes that are repeated.
    pub fn metadata_checks(&self) -> (usize, usize) {
        match self.kind {
            "Event" | "PodDisruptionBudget" => (0, 0),
            "LimitRange"
            | "EndpointSlice"
            | "CSINode"
            | "VolumeAttachment"
            | "MutatingWebhookConfiguration"
            | "ValidatingWebhookConfiguration"
            | "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding" => (0, 1),
            "PersistentVolume" => (0, 2),
            "PodTemplate"
            | "ReplicationController"
            | "ResourceQuota"
            | "Service"
            | "DaemonSet"
            | "Deployment"
            | "ReplicaSet"
            | "StatefulSet"
            | "HorizontalPodAutoscaler"
            | "CronJob"
            | "Lease"
            | "NetworkPolicy"
            | "PriorityClass"
            | "CSIDriver"
            | "ResourceSlice"
            | "ServiceCIDR" => (1, 0),
            _ => (1, 1),
        }
    }
}

/// Kinds of which what changed is looked at before what is there.
const CHANGES_FIRST: [&str; 5] =
    ["ConfigMap", "Secret", "Service", "PersistentVolumeClaim", "VolumeAttributesClass"];

fn name(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let name = Field::root(object).get("metadata").get("name");
    if name.text().is_empty() {
        errors.push(FieldError::required(&name.at, "name or generateName is required"));
        return;
    }
    if kind.kind == "APIService" {
        return api_service::name(&Field::root(object), errors);
    }
    for problem in kind.name_rule.problems(name.text()) {
        name.invalid(problem, errors);
    }
}
