//! Validating hooks: all at once, all awaited, one refusal is enough.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::hook::Hook;
use super::matching::{NamespaceLabels, is_exempt, operation};
use super::review::{self, Question, Verdict};
use super::{Call, Phase, Webhooks, key, note};
use crate::metrics::Rejection;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::write::admission::Attributes;

impl Webhooks {
    /// Has the validating hooks judge a write whose object is complete.
    pub(crate) async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), StatusError> {
        if is_exempt(attributes) {
            return Ok(());
        }
        let mut concerned = Vec::new();
        let mut labels = NamespaceLabels::default();
        for hook in self.hooks(Phase::Validating).iter() {
            if let Some(resource) = self.concerned(hook, attributes, object, &mut labels).await?
                && self.may_ask(hook, attributes)?
            {
                concerned.push((Arc::clone(hook), resource));
            }
        }
        let judged = concerned.iter().enumerate();
        let judged =
            judged.map(|(at, (hook, resource))| self.judge(hook, resource, attributes, object, (0, at)));
        let mut asked: FuturesUnordered<_> = judged.collect();
        let mut refused = None;
        while let Some(judged) = asked.next().await {
            match judged {
                Ok(more) => warnings.extend(more),
                Err(failure) => {
                    warnings.extend(failure.warnings().iter().cloned());
                    refused.get_or_insert(failure);
                }
            }
        }
        match refused {
            Some(refused) => Err(refused.with_warnings(warnings.clone())),
            None => Ok(()),
        }
    }

    /// Has one hook judge a write. Gives its warnings.
    async fn judge(
        &self,
        hook: &Hook,
        resource: &Resource,
        attributes: &Attributes<'_>,
        object: &Value,
        call: Call,
    ) -> Result<Vec<String>, StatusError> {
        let from = &attributes.target.resource;
        let object = self.converted(from, resource, object).await?;
        let old = self.old(attributes, resource).await?;
        let question = Question { attributes, resource, object: &object, old: &old };
        let verdict = self.ask(hook, Phase::Validating, &question).await;
        if let Ok(verdict) = &verdict {
            note(hook, attributes, verdict);
        }
        match verdict {
            Ok(Verdict { allowed: true, warnings, .. }) => Ok(warnings),
            Ok(verdict) => {
                let denied = review::denied(hook, &verdict.status).with_warnings(verdict.warnings);
                self.count(hook, Phase::Validating, attributes, denied.code, false);
                Err(denied)
            }
            Err(why) => self.failed(hook, Phase::Validating, attributes, call, &why).map(|()| Vec::new()),
        }
    }

    /// Whether a hook that a write concerns can be asked about it. Refuses a dry run if that might change something.
    pub(super) fn may_ask(&self, hook: &Hook, attributes: &Attributes<'_>) -> Result<bool, StatusError> {
        if hook.has_conditions {
            let why = "matchConditions are not evaluated by this server";
            if hook.ignores_failure {
                tracing::warn!(webhook = %hook.name, configuration = %hook.configuration, "{why}: the webhook is left out");
                return Ok(false);
            }
            return Err(attributes.forbidden(&format!("webhook {:?}: {why}", hook.name)));
        }
        if attributes.context.dry_run && !hook.dry_run {
            return Err(StatusError::bad_request(format!(
                "admission webhook {:?} does not support dry run",
                hook.name
            )));
        }
        Ok(true)
    }

    /// What becomes of a write whose hook could not be asked.
    pub(super) fn failed(
        &self,
        hook: &Hook,
        phase: Phase,
        attributes: &Attributes<'_>,
        call: Call,
        why: &str,
    ) -> Result<(), StatusError> {
        if attributes.context.is_late() {
            self.count(hook, phase, attributes, 0, true);
            return Err(StatusError::too_slow());
        }
        if hook.ignores_failure {
            let key = format!("failed-open.{}", key(phase.annotated(), call));
            attributes.context.annotations.add_notable(key, hook.name.clone());
            self.metrics.failed_open(&hook.name, phase.name());
            tracing::warn!(webhook = %hook.name, configuration = %hook.configuration, %why, "a webhook failed and is ignored");
            return Ok(());
        }
        let failure = review::unanswered(hook, why);
        self.count(hook, phase, attributes, failure.code, true);
        Err(failure)
    }

    /// Counts a write that did not come about because of a hook.
    pub(super) fn count(
        &self,
        hook: &Hook,
        phase: Phase,
        attributes: &Attributes<'_>,
        code: u16,
        is_failure: bool,
    ) {
        self.metrics.rejected(&Rejection {
            name: hook.name.clone(),
            r#type: phase.name(),
            operation: operation(attributes.verb),
            error_type: if is_failure { "calling_webhook_error" } else { "no_error" },
            rejection_code: if is_failure { 0 } else { code },
        });
    }
}
