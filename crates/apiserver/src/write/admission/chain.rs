//! The plug-ins in their order.

use std::sync::Arc;

use serde_json::Value;

use super::resource_quota::ResourceQuota;
use super::webhooks::{Phase, Reinvocation, Webhooks};
use super::{Attributes, BUILT_IN, OFF_BY_DEFAULT, Plugin, PluginHandles, QUOTA, Scope, Verb, WEBHOOKS};
use crate::resource::{PluginSet, Slot};
use crate::status_error::StatusError;
use crate::write::operation::Operation;
use crate::write::ownership;
use crate::write::request::{Current, Planned};
use crate::write::{Draft, WriteRequest};

/// The admission plug-ins of a server, in upstream's order.
pub(crate) struct Chain {
    plugins: Vec<Box<dyn Plugin>>,
    pub(in crate::write) webhooks: Arc<Webhooks>,
    /// Whether webhooks are asked, by phase.
    mutating: bool,
    validating: bool,
    /// Quotas, unless nobody looks at them.
    pub(in crate::write) quota: Option<ResourceQuota>,
}

/// Which plug-ins act, by their names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chosen<'a> {
    pub(crate) disabled: &'a [String],
    pub(crate) enabled: &'a [String],
    /// Whether quotas get back what is deleted.
    pub(crate) replenishes: bool,
}

impl Chosen<'_> {
    fn is_on(&self, name: &str) -> bool {
        let listed = |names: &[String]| names.iter().any(|listed| listed == name);
        listed(self.enabled) || !OFF_BY_DEFAULT.contains(&name) && !listed(self.disabled)
    }
}

impl Chain {
    /// The built-in plug-ins that are on.
    pub(crate) fn new(handles: &PluginHandles, webhooks: Webhooks, chosen: Chosen<'_>) -> Self {
        let enabled = BUILT_IN.iter().filter(|(name, _)| chosen.is_on(name));
        let quota = || ResourceQuota::new(Arc::clone(&handles.listers), chosen.replenishes);
        Self {
            plugins: enabled.map(|(_, make)| make(handles)).take(PluginSet::CAPACITY).collect(),
            webhooks: Arc::new(webhooks),
            mutating: chosen.is_on(WEBHOOKS[0]),
            validating: chosen.is_on(WEBHOOKS[1]),
            quota: chosen.is_on(QUOTA).then(quota),
        }
    }

    /// These plug-ins instead.
    #[cfg(test)]
    pub(super) fn with(self, plugins: Vec<Box<dyn Plugin>>) -> Self {
        Self { plugins, ..self }
    }

    /// Whether anybody is asked by webhooks of a phase.
    fn asks(&self, phase: Phase) -> bool {
        let is_on = match phase {
            Phase::Mutating => self.mutating,
            Phase::Validating => self.validating,
        };
        is_on && self.webhooks.are_there(phase)
    }

    /// Has the plug-ins complete the object of a write, one after the other.
    pub(in crate::write) async fn mutate(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        draft: &mut Draft,
    ) -> Result<(), StatusError> {
        let attributes = Attributes::of(request, current);
        self.mutate_with(&attributes, draft).await
    }

    /// Has the plug-ins judge a write whose object is complete.
    pub(in crate::write) async fn validate(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        planned: &mut Planned,
    ) -> Result<(), StatusError> {
        let attributes = Attributes::of(request, current);
        let plugins = self.handling(&attributes.scope());
        if plugins.is_empty() && !self.asks(Phase::Validating) {
            return Ok(());
        }
        let Planned { object, asked, warnings, .. } = planned;
        let scale;
        let object = match &request.operation {
            Operation::Delete(_) => &Value::Null,
            Operation::Evict(_) | Operation::Bind(_) => asked,
            Operation::Scale(_) => {
                scale = request.target.resource.written_scale(object)?;
                &scale
            }
            _ => object,
        };
        self.judge(plugins, &attributes, object, warnings).await
    }

    /// Has the plug-ins judge a request that changes no stored object: CONNECT, a token, a review.
    pub(crate) async fn admit(
        &self,
        attributes: &Attributes<'_>,
        object: Value,
    ) -> Result<Draft, StatusError> {
        let mut draft = Draft::of(object);
        self.mutate_with(attributes, &mut draft).await?;
        let plugins = self.handling(&attributes.scope());
        self.judge(plugins, attributes, &draft.object, &mut draft.warnings).await?;
        Ok(draft)
    }

    async fn mutate_with(&self, attributes: &Attributes<'_>, draft: &mut Draft) -> Result<(), StatusError> {
        self.mutate_once(attributes, draft).await?;
        if !self.asks(Phase::Mutating) {
            return Ok(());
        }
        let mut rounds = Reinvocation::default();
        Box::pin(self.webhooks.mutate(attributes, draft, &mut rounds)).await?;
        if rounds.again() {
            self.mutate_once(attributes, draft).await?;
            Box::pin(self.webhooks.mutate(attributes, draft, &mut rounds)).await?;
        }
        if draft.is_hooked {
            ownership::restore(draft);
        }
        Ok(())
    }

    async fn mutate_once(&self, attributes: &Attributes<'_>, draft: &mut Draft) -> Result<(), StatusError> {
        for plugin in self.handling(&attributes.scope()).iter() {
            self.plugins[plugin].mutate(attributes, draft).await?;
        }
        Ok(())
    }

    async fn judge(
        &self,
        plugins: PluginSet,
        attributes: &Attributes<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), StatusError> {
        for plugin in plugins.iter() {
            let judged = self.plugins[plugin].validate(attributes, object, warnings).await;
            judged.map_err(|refusal| refusal.with_more_warnings(warnings))?;
        }
        if self.asks(Phase::Validating) {
            Box::pin(self.webhooks.validate(attributes, object, warnings)).await?;
        }
        Ok(())
    }

    /// The plug-ins that handle a write: known already, unless it is of a rare subresource.
    pub(super) fn handling(&self, scope: &Scope<'_>) -> PluginSet {
        let handling = || {
            let plugins = self.plugins.iter().enumerate();
            PluginSet::of(plugins.filter(|(_, plugin)| plugin.handles(scope)).map(|(place, _)| place))
        };
        scope.resource.admission.get(slot(scope), handling)
    }
}

/// Where what is known about a write is kept.
fn slot(scope: &Scope<'_>) -> Slot {
    match (scope.verb, scope.subresource) {
        (Verb::Create, "") => Slot::Create,
        (Verb::Update, "") => Slot::Update,
        (Verb::Delete, "") => Slot::Delete,
        (Verb::Connect, "") => Slot::Connect,
        (Verb::Update, "status") => Slot::Status,
        (Verb::Update, "scale") => Slot::Scale,
        (Verb::Update, "finalize") => Slot::Finalize,
        (Verb::Update, "approval") => Slot::Approval,
        (Verb::Create, "binding") => Slot::Binding,
        (Verb::Create, "eviction") => Slot::Eviction,
        (Verb::Create, "token") => Slot::Token,
        _ => Slot::Rare,
    }
}
