//! ResourceQuotas: how much there may be in a namespace, by number and by what is asked for.
//!
//! It acts last, as part of the commit: `status.used` of the quotas is written together with the object, on the condition that they
//! have not changed since they were looked at. So nobody gets more than there is, however many write at the same time and on
//! however many servers. What is deleted or ends is given back in the same way, unless that is left to kube-controller-manager; then
//! only what upstream's plug-in counts is counted. What was there before a quota is added up by `lifecycle`.

mod decide;
mod evaluator;
mod scope;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::pod_resources;
use crate::object::meta;
use crate::write::admission::listers::{Listed, Listers};
pub(crate) use decide::{Change, Charge, Sum};
pub(crate) use evaluator::Evaluator;

/// How many namespaces can be written to at the same time that have quotas.
const TURNS: usize = 64;

/// How long whoever writes a quota waits until what is there has been added up.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The quotas of all namespaces.
pub(crate) struct ResourceQuota {
    pub(crate) listers: Arc<Listers>,
    /// Whether what is deleted is given back.
    replenishes: bool,
    /// Held from a look at the quotas of a namespace to the commit: otherwise all but one of those who write at the same time would
    /// have to try again.
    turns: [Mutex<()>; TURNS],
    hasher: std::hash::RandomState,
}

impl ResourceQuota {
    pub(crate) fn new(listers: Arc<Listers>, replenishes: bool) -> Self {
        Self {
            listers,
            replenishes,
            turns: std::array::from_fn(|_| Mutex::new(())),
            hasher: std::hash::RandomState::new(),
        }
    }

    /// Waits for the turn of a writer in a namespace.
    pub(crate) async fn turn(&self, namespace: &str) -> MutexGuard<'_, ()> {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(namespace.as_bytes());
        let at = usize::try_from(hasher.finish()).unwrap_or_default().checked_rem(TURNS).unwrap_or_default();
        self.turns[at].lock().await
    }

    /// Whether there are quotas in a namespace.
    pub(crate) fn are_in(&self, namespace: &str) -> bool {
        !self.listers.resource_quotas.all_in(namespace).is_empty()
    }

    /// What becomes of the quotas of a namespace by a write. Refuses a write for which there is not enough left.
    pub(crate) fn charges(&self, namespace: &str, change: &Change<'_>) -> Result<Vec<Charge>, String> {
        let quotas = self.listers.resource_quotas.all_in(namespace);
        // Of a namespace that is emptied, nobody wants to know how much is left.
        let is_ending =
            || self.listers.namespaces.get(namespace).is_some_and(|found| meta::is_deleting(&found));
        if quotas.is_empty() || change.new.is_none() && is_ending() {
            return Ok(Vec::new());
        }
        let mut charges = change.charges(&quotas, self.replenishes)?;
        // A quota that is written itself is not charged with itself.
        let own = change.old.or(change.new).map(meta::uid).unwrap_or_default();
        charges.retain(|charge| meta::uid(&charge.quota.object) != own);
        Ok(charges)
    }

    /// Waits until what a quota limits has been added up, for a while.
    pub(crate) async fn settled(&self, namespace: &str, name: &str) {
        if !self.replenishes {
            return;
        }
        let quotas = &self.listers.resource_quotas;
        let mut changes = quotas.changes();
        let settle = async {
            while quotas.get_in(namespace, name).is_some_and(|quota| !is_settled(&quota)) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // Without anybody who adds up, it holds from when somebody does.
        let _ = timeout(SETTLE_TIMEOUT, settle).await;
    }
}

/// Whether a quota is enforced as it is meant to be: its limits are known, and how much is used of all of them.
pub(crate) fn is_settled(quota: &Value) -> bool {
    let (hard, status) = (quota["spec"].get("hard"), &quota["status"]);
    let names = hard.and_then(Value::as_object).into_iter().flatten();
    hard == status.get("hard") && names.map(|(name, _)| name).all(|name| status["used"].get(name).is_some())
}
