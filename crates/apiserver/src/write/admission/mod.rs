//! Admission: plug-ins that complete a write or refuse it, before it is committed.
//!
//! A plug-in is a file in `plugins/` and a line in [`BUILT_IN`]. It says once for each resource whether it
//! [handles](Plugin::handles) its writes, so that writes that no plug-in handles pay nothing for admission. Plug-ins have
//! upstream's names, by which they are switched off and counted.

mod chain;
pub(crate) mod listers;
mod plugins;
mod pod_resources;
#[cfg(test)]
mod tests;
pub(crate) mod webhooks;

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use watchkeeper_storage::Storage;

pub(crate) use chain::{Chain, Chosen};
pub use plugins::pod_security::{PodSecurityConfiguration, PodSecurityExemptions};
pub(crate) use plugins::resource_quota;

use super::operation::Operation;
use super::request::{Current, Draft, NamespaceState};
use super::{WriteContext, WriteRequest, subresource_name};
use crate::access::Access;
use crate::object::meta;
use crate::registry::Registrar;
use crate::resource::{ObjectRef, Resource};
use crate::status_error::StatusError;
use listers::Listers;

/// What plug-ins are made of.
pub(crate) struct PluginHandles {
    pub(crate) access: Arc<Access>,
    pub(crate) listers: Arc<Listers>,
    pub(crate) registrar: Arc<Registrar>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) pod_security: PodSecurityConfiguration,
}

/// What makes a plug-in, of the handles that it needs.
type Make = fn(&PluginHandles) -> Box<dyn Plugin>;

/// The built-in plug-ins in upstream's order.
pub(crate) const BUILT_IN: &[(&str, Make)] = &[
    plugins::namespace_lifecycle::PLUGIN,
    plugins::limit_ranger::PLUGIN,
    plugins::service_account::PLUGIN,
    plugins::taint_nodes_by_condition::PLUGIN,
    plugins::pod_security::PLUGIN,
    plugins::priority::PLUGIN,
    plugins::default_toleration_seconds::PLUGIN,
    plugins::default_storage_class::PLUGIN,
    plugins::storage_object_in_use_protection::PLUGIN,
    plugins::owner_references_permission_enforcement::PLUGIN,
    plugins::persistent_volume_claim_resize::PLUGIN,
    plugins::runtime_class::PLUGIN,
    plugins::certificate_approval::PLUGIN,
    plugins::certificate_signing::PLUGIN,
    plugins::certificate_subject_restriction::PLUGIN,
    plugins::default_ingress_class::PLUGIN,
];

/// The plug-ins that ask webhooks. They act after the others.
pub(super) const WEBHOOKS: [&str; 2] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];

/// The plug-in that acts last: it is part of the commit.
pub(super) const QUOTA: &str = "ResourceQuota";

/// The built-in plug-ins that do not act unless they are switched on.
pub(super) const OFF_BY_DEFAULT: &[&str] = &["OwnerReferencesPermissionEnforcement"];

/// The names of the built-in admission plug-ins, in the order in which they act.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).chain(WEBHOOKS).chain([QUOTA])
}

/// Whether a built-in admission plug-in acts unless it is switched off.
pub fn is_on_by_default(name: &str) -> bool {
    !OFF_BY_DEFAULT.contains(&name)
}

/// What a plug-in does about one write.
type Admitted<'a> = BoxFuture<'a, Result<(), StatusError>>;

/// An admission plug-in.
pub(crate) trait Plugin: Send + Sync {
    /// Whether writes of this scope concern the plug-in. It is asked once for each scope and must always say the same.
    fn handles(&self, scope: &Scope<'_>) -> bool;

    /// Completes the object of a write, or refuses the write. No lock is held meanwhile.
    fn mutate<'a>(&'a self, _attributes: &'a Attributes<'a>, _draft: &'a mut Draft) -> Admitted<'a> {
        done(Ok(()))
    }

    /// Refuses a write whose object is complete and valid, or warns about it. The object is null if one is deleted.
    fn validate<'a>(
        &'a self,
        _attributes: &'a Attributes<'a>,
        _object: &'a Value,
        _warnings: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        done(Ok(()))
    }
}

/// The answer of a plug-in that waits for nothing.
fn done<'a>(result: Result<(), StatusError>) -> Admitted<'a> {
    Box::pin(ready(result))
}

/// What a request does, in the words of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
    Delete,
    Connect,
}

/// The writes that a plug-in may handle: a verb, a resource and a subresource, empty for the object itself.
pub(crate) struct Scope<'a> {
    pub(crate) verb: Verb,
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: &'a str,
}

impl Scope<'_> {
    /// Whether it is about the objects themselves of a built-in resource.
    fn is_of(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && self.is_below(group, plural)
    }

    /// Whether it is about a built-in resource or one of its subresources.
    fn is_below(&self, group: &str, plural: &str) -> bool {
        self.resource.builtin_kind().is_some()
            && self.resource.group == group
            && self.resource.plural == plural
    }
}

/// What plug-ins know about a write besides its object.
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Verb,
    pub(crate) target: &'a ObjectRef,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The stored object.
    pub(crate) old: Option<&'a Value>,
    /// The namespace of a new object or subresource.
    pub(crate) namespace: NamespaceState,
    pub(crate) context: &'a WriteContext,
    /// Whether the server made up the name of a new object.
    pub(crate) name_is_generated: bool,
}

impl<'a> Attributes<'a> {
    pub(super) fn of(request: &'a WriteRequest<'_>, current: &'a Current) -> Self {
        let (verb, subresource) = match (&request.operation, &current.object) {
            (Operation::Delete(_), _) => (Verb::Delete, ""),
            (Operation::Evict(_), _) => (Verb::Create, "eviction"),
            (Operation::Bind(_), _) => (Verb::Create, "binding"),
            (Operation::Scale(_), _) => (Verb::Update, "scale"),
            (_, None) => (Verb::Create, ""),
            (_, Some(_)) => (Verb::Update, subresource_name(request.subresource)),
        };
        Self {
            verb,
            target: &request.target,
            subresource,
            old: current.object.as_ref(),
            namespace: current.namespace,
            context: request.context,
            name_is_generated: request.operation.generates_name(),
        }
    }

    fn scope(&self) -> Scope<'_> {
        Scope { verb: self.verb, resource: &self.target.resource, subresource: self.subresource }
    }

    /// A refusal.
    pub(super) fn forbidden(&self, why: &str) -> StatusError {
        StatusError::forbidden(self.target.resource.subject(), &self.target.name, why)
    }

    /// A refusal of a draft, before the name is generated that it may get.
    fn forbidden_draft(&self, draft: &Value, why: &str) -> StatusError {
        let name = match self.name_is_generated {
            true => meta::text(draft, "generateName"),
            false => &self.target.name,
        };
        StatusError::forbidden(self.target.resource.subject(), name, why)
    }

    /// The namespace of the object; empty if it has none.
    fn namespace_name(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }
}
