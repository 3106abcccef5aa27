//! The Pod Security Standards: namespaces say by labels what their Pods may do.
//!
//! A Pod that breaks what is enforced is refused, one that breaks what is to be warned of is accepted with a warning; so is
//! everything with a template of Pods. What would be recorded is not, since there is no audit log.

mod baseline;
mod checks;
mod policy;
mod restricted;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_storage::{Range, Storage};

use super::{Admitted, Attributes, Make, Plugin, PluginHandles, Scope, Verb, done};
use crate::object::meta;
use crate::registry::Registrar;
use crate::status_error::StatusError;
use crate::write::admission::listers::Listers;
use checks::{Pod, details, reasons, violations};
use policy::{Level, Policy, Standard};
pub use policy::{PodSecurityConfiguration, PodSecurityExemptions};

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("PodSecurity", |handles| Box::new(PodSecurity::new(handles)));

/// How many of the Pods in a namespace are looked at when its labels change.
const MOST_PODS: usize = 3000;

/// What has a template of Pods, by group and plural.
const TEMPLATES: [(&str, &str); 8] = [
    ("", "replicationcontrollers"),
    ("", "podtemplates"),
    ("apps", "replicasets"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
];

/// The subresources of Pods that cannot change what a Pod may do.
const HARMLESS: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

struct PodSecurity {
    configuration: PodSecurityConfiguration,
    listers: Arc<Listers>,
    registrar: Arc<Registrar>,
    storage: Arc<dyn Storage>,
}

impl Plugin for PodSecurity {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        if !matches!(scope.verb, Verb::Create | Verb::Update) {
            return false;
        }
        let is_pod = scope.is_below("", "pods") && !HARMLESS.contains(&scope.subresource);
        is_pod
            || scope.is_of("", "namespaces")
            || TEMPLATES.iter().any(|(group, plural)| scope.is_of(group, plural))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        warnings: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        let resource = &attributes.target.resource;
        if resource.is_core("namespaces") {
            return Box::pin(self.judge_namespace(attributes, object, warnings));
        }
        done(match resource.is_core("pods") {
            true => self.judge_pod(attributes, object, warnings),
            false => {
                self.judge_template(attributes, object, warnings);
                Ok(())
            }
        })
    }
}

impl PodSecurity {
    fn new(handles: &PluginHandles) -> Self {
        Self {
            configuration: handles.pod_security.clone(),
            listers: Arc::clone(&handles.listers),
            registrar: Arc::clone(&handles.registrar),
            storage: Arc::clone(&handles.storage),
        }
    }

    /// What the labels of a namespace say, and what is wrong with them.
    fn policy(&self, namespace: &Value) -> (Policy, Vec<watchkeeper_schema::FieldError>) {
        Policy::of(namespace, &self.configuration.defaults)
    }

    /// Whether nothing holds for the author of a write, or in its namespace.
    fn is_exempt(&self, attributes: &Attributes<'_>) -> bool {
        let exemptions = &self.configuration.exemptions;
        let author = attributes.context.author.client();
        exemptions.namespaces.contains(attributes.namespace_name())
            || author.is_some_and(|author| exemptions.usernames.contains(&author.user))
    }

    fn has_exempt_class(&self, spec: &Value) -> bool {
        let class = spec["runtimeClassName"].as_str();
        class.is_some_and(|class| self.configuration.exemptions.runtime_classes.contains(class))
    }

    fn judge_pod(
        &self,
        attributes: &Attributes<'_>,
        pod: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), StatusError> {
        if self.is_exempt(attributes) {
            return Ok(());
        }
        let name = attributes.namespace_name();
        let Some(namespace) = self.listers.namespaces.get(name) else {
            return Err(StatusError::internal(format!("failed to lookup namespace {name:?}")));
        };
        let (policy, errors) = self.policy(&namespace);
        if errors.is_empty() && policy.allows_everything() {
            return Ok(());
        }
        if attributes.old.is_some_and(|old| !matters(pod, old)) {
            return Ok(());
        }
        let judged = Pod { metadata: &pod["metadata"], spec: &pod["spec"] };
        if self.has_exempt_class(judged.spec) {
            return Ok(());
        }
        let broken = violations(&policy.enforce, judged);
        if !broken.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&broken));
            return Err(attributes.forbidden(&why));
        }
        warn(&policy.warn, judged, warnings);
        Ok(())
    }

    fn judge_template(&self, attributes: &Attributes<'_>, object: &Value, warnings: &mut Vec<String>) {
        if self.is_exempt(attributes) {
            return;
        }
        let Some(namespace) = self.listers.namespaces.get(attributes.namespace_name()) else { return };
        let (policy, errors) = self.policy(&namespace);
        if errors.is_empty() && policy.warn.level == Level::Privileged {
            return;
        }
        let template = match attributes.target.resource.plural.as_str() {
            "podtemplates" => &object["template"],
            "cronjobs" => &object["spec"]["jobTemplate"]["spec"]["template"],
            _ => &object["spec"]["template"],
        };
        let judged = Pod { metadata: &template["metadata"], spec: &template["spec"] };
        if template.is_object() && !self.has_exempt_class(judged.spec) {
            warn(&policy.warn, judged, warnings);
        }
    }

    /// Refuses labels that cannot be read, and warns of Pods that break what is enforced from now on.
    async fn judge_namespace(
        &self,
        attributes: &Attributes<'_>,
        namespace: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), StatusError> {
        let (policy, errors) = self.policy(namespace);
        let name = meta::name(namespace);
        let old = attributes.old.map(|old| self.policy(old));
        let is_new_problem = old.as_ref().is_none_or(|(_, before)| errors != *before);
        if !errors.is_empty() && is_new_problem {
            return Err(StatusError::invalid(attributes.target.resource.kind_subject(), name, &errors));
        }
        let is_exempt = self.configuration.exemptions.namespaces.contains(name);
        let ignored = || policy.ignored(namespace, &self.configuration.defaults).filter(|_| is_exempt);
        let Some((before, _)) = old else {
            warnings.extend(ignored());
            return Ok(());
        };
        let (enforce, before) = (policy.enforce, before.enforce);
        let is_relaxed = enforce.version == before.version && enforce.level <= before.level;
        if enforce == before || enforce.level == Level::Privileged || is_relaxed {
            return Ok(());
        }
        match is_exempt {
            true => warnings.extend(ignored()),
            false => warnings.extend(self.pods_that_break(name, &enforce).await?),
        }
        Ok(())
    }

    /// Warnings about the Pods of a namespace that break a standard.
    async fn pods_that_break(
        &self,
        namespace: &str,
        standard: &Standard,
    ) -> Result<Vec<String>, StatusError> {
        let Some(resource) = self.registrar.current().find("", "v1", "pods") else { return Ok(Vec::new()) };
        let page = self.storage.range(Range::prefix(&resource.prefix_in(Some(namespace)))).await?;
        let pods = page.entries.iter().filter_map(|entry| resource.read(entry).ok());
        let pods =
            first_of_each_controller(pods.filter(|pod| !self.has_exempt_class(&pod["spec"])).collect());
        let mut warnings = Vec::new();
        if pods.len() > MOST_PODS {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
                pods.len()
            ));
        }
        let mut broken: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pod in pods.iter().take(MOST_PODS) {
            let found = violations(standard, Pod { metadata: &pod["metadata"], spec: &pod["spec"] });
            if !found.is_empty() {
                broken.entry(reasons(&found)).or_default().push(meta::name(pod));
            }
        }
        if !broken.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
            ));
        }
        let mut named: Vec<String> = broken
            .iter()
            .map(|(reason, names)| {
                let first = names.iter().min().copied().unwrap_or_default();
                match names.len().saturating_sub(1) {
                    0 => format!("{first}: {reason}"),
                    1 => format!("{first} (and 1 other pod): {reason}"),
                    others => format!("{first} (and {others} other pods): {reason}"),
                }
            })
            .collect();
        named.sort_unstable();
        warnings.extend(named);
        Ok(warnings)
    }
}

/// Warns of a Pod that breaks a standard.
fn warn(standard: &Standard, pod: Pod<'_>, warnings: &mut Vec<String>) {
    let broken = violations(standard, pod);
    if !broken.is_empty() {
        warnings.push(format!("would violate PodSecurity \"{standard}\": {}", details(&broken)));
    }
}

/// Those Pods first that have no controller, or are the first of theirs.
fn first_of_each_controller(pods: Vec<Value>) -> Vec<Value> {
    let mut controllers = HashSet::new();
    let (mut first, others): (Vec<Value>, Vec<Value>) = pods.into_iter().partition(|pod| {
        let owners = meta::get(pod, "ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let controller = owners.into_iter().find(|owner| owner["controller"] == true);
        controller.is_none_or(|owner| controllers.insert(owner["uid"].to_string()))
    });
    first.extend(others);
    first
}

/// Whether a change to a Pod changes what it runs.
fn matters(pod: &Value, old: &Value) -> bool {
    let list = |pod: &Value, field: &str| pod["spec"][field].as_array().cloned().unwrap_or_default();
    for field in ["containers", "initContainers"] {
        let (new, old) = (list(pod, field), list(old, field));
        if new.len() != old.len() || new.iter().zip(&old).any(|(new, old)| new["image"] != old["image"]) {
            return true;
        }
    }
    let before = list(old, "ephemeralContainers");
    list(pod, "ephemeralContainers").iter().any(|container| {
        let known = before.iter().find(|known| known["name"] == container["name"]);
        known.is_none_or(|known| known["image"] != container["image"])
    })
}
