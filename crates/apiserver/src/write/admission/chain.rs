//! The plug-ins in their order.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, BUILT_IN, Plugin, Scope};
use crate::access::Access;
use crate::resource::PluginSet;
use crate::status_error::StatusError;
use crate::write::operation::Operation;
use crate::write::request::{Current, Planned};
use crate::write::{Draft, WriteRequest};

/// The admission plug-ins of a server, in upstream's order.
pub(crate) struct Chain(Vec<Box<dyn Plugin>>);

impl Chain {
    /// The built-in plug-ins but for those with these names.
    pub(crate) fn new(access: &Arc<Access>, disabled: &[String]) -> Self {
        let enabled = BUILT_IN.iter().filter(|(name, _)| !disabled.iter().any(|disabled| disabled == name));
        Self(enabled.map(|(_, make)| make(access)).take(PluginSet::CAPACITY).collect())
    }

    /// These plug-ins.
    #[cfg(test)]
    pub(super) fn of(plugins: Vec<Box<dyn Plugin>>) -> Self {
        Self(plugins)
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
        if plugins.is_empty() {
            return Ok(());
        }
        let object = match &request.operation {
            Operation::Delete(_) => Value::Null,
            Operation::Evict(eviction) => eviction.object.clone(),
            Operation::Bind(binding) => (*binding).clone(),
            Operation::Scale(_) => request.target.resource.written_scale(&planned.object)?,
            _ => std::mem::take(&mut planned.object),
        };
        let judged = self.judge(plugins, &attributes, &object, &mut planned.warnings).await;
        if planned.object.is_null() {
            planned.object = object;
        }
        judged
    }

    /// Has the plug-ins judge a request that changes no stored object: CONNECT, a token, a review.
    pub(crate) async fn admit(
        &self,
        attributes: &Attributes<'_>,
        object: Value,
    ) -> Result<Draft, StatusError> {
        let mut draft = Draft { object, warnings: Vec::new() };
        self.mutate_with(attributes, &mut draft).await?;
        let plugins = self.handling(&attributes.scope());
        self.judge(plugins, attributes, &draft.object, &mut draft.warnings).await?;
        Ok(draft)
    }

    async fn mutate_with(&self, attributes: &Attributes<'_>, draft: &mut Draft) -> Result<(), StatusError> {
        for plugin in self.handling(&attributes.scope()).iter() {
            self.0[plugin].mutate(attributes, draft).await?;
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
            self.0[plugin].validate(attributes, object, warnings).await?;
        }
        Ok(())
    }

    /// The plug-ins that handle a write: known already, if it is of the object itself.
    pub(super) fn handling(&self, scope: &Scope<'_>) -> PluginSet {
        let handling = || {
            let plugins = self.0.iter().enumerate();
            PluginSet::of(plugins.filter(|(_, plugin)| plugin.handles(scope)).map(|(place, _)| place))
        };
        match scope.subresource {
            "" => scope.resource.admission.get(scope.verb as usize, handling),
            _ => handling(),
        }
    }
}
