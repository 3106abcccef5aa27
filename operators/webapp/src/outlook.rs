//! How it goes with a WebApp, from what is there.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use watchkeeper::client::ConditionUpdate;
use watchkeeper::prelude::*;

use crate::trouble::Trouble;
use crate::v1beta1::WebApp;

/// What the status will say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub(crate) replicas: i32,
    pub(crate) ready: i32,
    pub(crate) available: bool,
    /// Whether all replicas are there, ready, and of the version that is declared.
    pub(crate) complete: bool,
    pub(crate) trouble: Option<Trouble>,
}

impl Outlook {
    /// Reads it off the Deployment, if there is one.
    pub(crate) fn new(app: &WebApp, deployment: Option<&Deployment>, trouble: Option<Trouble>) -> Self {
        let status = deployment.and_then(|deployment| deployment.status.clone()).unwrap_or_default();
        let observed =
            deployment.is_some_and(|deployment| status.observed_generation >= deployment.metadata.generation);
        let count = |count: Option<i32>| count.unwrap_or(0);
        let wanted = app.spec.replicas;
        let all = [status.updated_replicas, status.replicas, status.available_replicas];
        Self {
            replicas: count(status.replicas),
            ready: count(status.ready_replicas),
            available: find(&status, "Available", "True").is_some(),
            complete: observed && all.map(count) == [wanted; 3],
            trouble,
        }
    }

    /// The conditions.
    pub(crate) fn conditions(&self, app: &WebApp) -> [ConditionUpdate; 3] {
        let ready = format!("{} of {} replicas are ready", self.ready, app.spec.replicas);
        let available = condition("Available");
        let available = match self.available {
            true => available.is_true("EnoughReplicas").message(ready.clone()),
            false => available.is_false("TooFewReplicas", ready.clone()),
        };
        let progressing = condition("Progressing");
        let progressing = match (&self.trouble, self.complete) {
            (Some(trouble), false) => progressing.is_false("Stuck", trouble.message.clone()),
            (_, true) => progressing.is_false("Done", "what is declared is what runs"),
            (None, false) => progressing.is_true("RollingOut").message(ready),
        };
        let degraded = condition("Degraded");
        let degraded = match &self.trouble {
            Some(trouble) => degraded.is_true(&trouble.reason).message(trouble.message.clone()),
            None => degraded.is_false("AsExpected", ""),
        };
        [available, progressing, degraded]
    }
}

/// The condition of this type, if it has this status.
pub(crate) fn find<'a>(
    status: &'a DeploymentStatus,
    kind: &str,
    is: &str,
) -> Option<&'a DeploymentCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions
        .find(|condition| condition.type_.as_deref() == Some(kind) && condition.status.as_deref() == Some(is))
}
