//! Whether an object keeps the rules of its kind.

mod batch;
mod config;
mod containers;
mod cron;
mod difference;
mod endpoints;
mod field;
mod limits;
mod network;
mod pod;
mod rbac;
mod rules;
mod selector;
mod service;
mod status;
mod storage;
mod update;
mod volumes;
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
            "Pod" => pod::spec(&object.get("spec"), &mut errors),
            "PodTemplate" => pod::template(&object.get("template"), &mut errors),
            "Deployment" => workloads::deployment(&object.get("spec"), &mut errors),
            "ReplicaSet" => workloads::replica_set(&object.get("spec"), &mut errors),
            "DaemonSet" => workloads::daemon_set(&object.get("spec"), &mut errors),
            "StatefulSet" => workloads::stateful_set(&object.get("spec"), &mut errors),
            "ReplicationController" => workloads::replication_controller(&object.get("spec"), &mut errors),
            "ControllerRevision" => workloads::controller_revision(&object, &mut errors),
            "Job" => batch::job(&object, &mut errors),
            "CronJob" => batch::cron_job(&object, &mut errors),
            "Service" => service::service(&object.get("spec"), &mut errors),
            "ConfigMap" => config::config_map(&object, &mut errors),
            "Secret" => config::secret(&object, &mut errors),
            "Role" | "ClusterRole" => rbac::role(&object, self.namespaced, &mut errors),
            "RoleBinding" | "ClusterRoleBinding" => rbac::binding(&object, self.namespaced, &mut errors),
            "PersistentVolumeClaim" => storage::claim(&object.get("spec"), &mut errors),
            "PersistentVolume" => storage::volume(&object.get("spec"), &mut errors),
            "StorageClass" => storage::class(&object, &mut errors),
            "Ingress" => network::ingress(&object.get("spec"), &mut errors),
            "IngressClass" => network::ingress_class(&object.get("spec"), &mut errors),
            "NetworkPolicy" => network::policy(&object.get("spec"), &mut errors),
            "EndpointSlice" => endpoints::slice(&object, before.as_ref(), &mut errors),
            "ResourceQuota" => limits::quota(&object, before.as_ref(), &mut errors),
            "LimitRange" => limits::range(&object, &mut errors),
            "Node" => limits::node(&object, &mut errors),
            "Namespace" => rules::namespace(&object, &mut errors),
            "HorizontalPodAutoscaler" => rules::autoscaler(&object.get("spec"), &mut errors),
            "PodDisruptionBudget" => rules::budget(&object.get("spec"), &mut errors),
            "PriorityClass" => rules::priority_class(&object, &mut errors),
            "Lease" => rules::lease(&object.get("spec"), &mut errors),
            "Event" => rules::event(&object, self.group == "events.k8s.io", &mut errors),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                rules::webhooks(&object.get("webhooks"), &mut errors);
            }
            _ => {}
        }
        if let Some(old) = before.as_ref().filter(|_| !CHANGES_FIRST.contains(&self.kind)) {
            update::update(self.kind, &object, old, &mut errors);
        }
        errors
    }

    /// What is wrong with an object whose part other than the main one replaces that of `old`: its status, or what holds a
    /// namespace. Under the same conditions as [`validate`](Self::validate).
    pub fn validate_part(&self, part: crate::Write, new: &Value) -> Vec<FieldError> {
        let (object, mut errors) = (Field::root(new), Vec::new());
        match part {
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
            | "MutatingWebhookConfiguration"
            | "ValidatingWebhookConfiguration" => (0, 1),
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
            | "PriorityClass" => (1, 0),
            _ => (1, 1),
        }
    }
}

/// Kinds of which what changed is looked at before what is there.
const CHANGES_FIRST: [&str; 4] = ["ConfigMap", "Secret", "Service", "PersistentVolumeClaim"];

fn name(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let name = Field::root(object).get("metadata").get("name");
    if name.text().is_empty() {
        errors.push(FieldError::required(&name.at, "name or generateName is required"));
        return;
    }
    for problem in kind.name_rule.problems(name.text()) {
        name.invalid(problem, errors);
    }
}
