//! Whether an object keeps the rules of its kind.

mod batch;
mod config;
mod containers;
mod cron;
mod field;
mod network;
mod pod;
mod rbac;
mod rules;
mod selector;
mod service;
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
        errors.extend(metadata::validate(&new["metadata"], &Path::root().child("metadata")));
        let object = Field::root(new);
        match self.kind {
            "Pod" => pod::spec(&object.get("spec"), &mut errors),
            "PodTemplate" => pod::template(&object.get("template"), &mut errors),
            "Deployment" => workloads::deployment(&object.get("spec"), &mut errors),
            "ReplicaSet" => workloads::replica_set(&object.get("spec"), &mut errors),
            "DaemonSet" => workloads::daemon_set(&object.get("spec"), &mut errors),
            "StatefulSet" => workloads::stateful_set(&object.get("spec"), &mut errors),
            "ReplicationController" => workloads::replication_controller(&object.get("spec"), &mut errors),
            "ControllerRevision" => workloads::controller_revision(&object, &mut errors),
            "Job" => batch::job(&object.get("spec"), &mut errors),
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
            "EndpointSlice" => network::endpoint_slice(&object, &mut errors),
            "Namespace" => rules::namespace(&object, &mut errors),
            "HorizontalPodAutoscaler" => rules::autoscaler(&object.get("spec"), &mut errors),
            "PodDisruptionBudget" => rules::budget(&object.get("spec"), &mut errors),
            "PriorityClass" => rules::priority_class(&object, &mut errors),
            "Lease" => rules::lease(&object.get("spec"), &mut errors),
            "Event" => rules::event(&object, &mut errors),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                rules::webhooks(&object.get("webhooks"), &mut errors);
            }
            _ => {}
        }
        if let Some(old) = old {
            update::update(self.kind, &object, &Field::root(old), &mut errors);
        }
        errors
    }
}

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
