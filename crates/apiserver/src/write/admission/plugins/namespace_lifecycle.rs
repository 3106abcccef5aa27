//! Objects and their subresources are created in existing namespaces only, and some namespaces cannot be deleted.

use serde_json::Value;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::status_error::{StatusError, Subject};
use crate::write::{Draft, NamespaceState};

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("NamespaceLifecycle", |_| Box::new(NamespaceLifecycle));

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        match scope.verb {
            Verb::Create => scope.resource.namespaced,
            Verb::Delete => scope.is_of("", "namespaces"),
            _ => false,
        }
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        done(check(attributes, &draft.object))
    }
}

fn check(attributes: &Attributes<'_>, draft: &Value) -> Result<(), StatusError> {
    let target = attributes.target;
    if attributes.verb == Verb::Delete {
        return match IMMORTAL.contains(&target.name.as_str()) {
            true => Err(attributes.forbidden("this namespace may not be deleted")),
            false => Ok(()),
        };
    }
    let namespace = target.namespace.as_deref().unwrap_or_default();
    match attributes.namespace {
        NamespaceState::Active | NamespaceState::Irrelevant => Ok(()),
        NamespaceState::Missing => {
            Err(StatusError::not_found(Subject { group: "", name: "namespaces" }, namespace))
        }
        NamespaceState::Terminating => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = format!("namespace {namespace} is being terminated");
            Err(attributes.forbidden_draft(draft, &why).cause(
                "NamespaceTerminating",
                cause,
                "metadata.namespace",
            ))
        }
    }
}
