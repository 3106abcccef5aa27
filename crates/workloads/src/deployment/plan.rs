//! What a Deployment does next about its ReplicaSets, decided without doing it.
//!
//! A size is decided from what the sets say of their pods, and what they say may be older than the size that was decided
//! before: a set that has been made smaller still counts the pods that are about to go. If those were taken for available,
//! too many others would go. So there is a rule that Kubernetes does not have: **no size is decided before all sets have
//! observed the last one**, and then only pods that the set is to keep count as available, while all that it has take up
//! room. Sizes and their order are those of Kubernetes; they may come some milliseconds later.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use watchkeeper_client::{Error, controller_reference};

use crate::deployment::bounds::{Bounds, is_recreate};
use crate::deployment::sets::{HASH, Sets, available, size};
use crate::deployment::{annotations, rollout};
use crate::fingerprint::fingerprint;

/// A ReplicaSet and the size that it is to get.
#[derive(Clone, Debug)]
pub(crate) struct Resize {
    pub(crate) set: Arc<ReplicaSet>,
    pub(crate) size: i32,
}

impl Resize {
    /// Writes the size into the set, and the size of the Deployment that it was decided for into its annotations.
    pub(crate) fn apply(&self, set: &mut ReplicaSet, bounds: Bounds) {
        set.spec.replicas = Some(self.size);
        annotations::set_sizes(set, bounds);
    }
}

/// Whether the Deployment has another size than when its sets were sized.
pub(crate) fn was_scaled(deployment: &Deployment, sets: &Sets) -> bool {
    let replicas = Bounds::of(deployment).replicas;
    let mut active = sets.all().filter(|set| size(set) > 0);
    active.any(|set| annotations::desired(set).is_some_and(|desired| desired != replicas))
}

/// The sizes for a Deployment that has another one now, without moving the rollout. Some may be those that the sets have:
/// then the size of the Deployment is still to be noted.
pub(crate) fn scaling(deployment: &Deployment, sets: &Sets) -> Vec<Resize> {
    if !sets.are_observed() {
        return Vec::new();
    }
    let wanted = Bounds::of(deployment).replicas;
    if let Some(only) = sets.active_or_latest() {
        // Also if it has that size by chance: as long as it notes another one, the Deployment counts as scaled and does
        // not roll out.
        let noted = annotations::desired(only).is_none_or(|desired| desired == wanted);
        let resize = Resize { set: Arc::clone(only), size: wanted };
        return if noted && size(only) == wanted { Vec::new() } else { vec![resize] };
    }
    if is_saturated(sets, wanted) {
        return emptying(sets);
    }
    if is_recreate(deployment) {
        return Vec::new();
    }
    rollout::proportional(deployment, sets).into_iter().map(|(set, size)| Resize { set, size }).collect()
}

/// The next step of a rolling update: the new set grows, or if it may not, old sets shrink. Empty if there is nothing to do
/// for now.
pub(crate) fn rolling(deployment: &Deployment, sets: &Sets) -> Vec<Resize> {
    let Some(new) = sets.new.as_ref().filter(|_| sets.are_observed()) else { return Vec::new() };
    let wanted = rollout::new_size(deployment, sets, size(new));
    if wanted != size(new) {
        return vec![Resize { set: Arc::clone(new), size: wanted }];
    }
    changed(&sets.old, rollout::old_sizes(Bounds::of(deployment), sets, new))
}

/// All old sets without pods.
pub(crate) fn emptying(sets: &Sets) -> Vec<Resize> {
    changed(&sets.old, std::iter::repeat(0))
}

fn changed(sets: &[Arc<ReplicaSet>], sizes: impl IntoIterator<Item = i32>) -> Vec<Resize> {
    let all = sets.iter().zip(sizes).map(|(set, size)| Resize { set: Arc::clone(set), size });
    all.filter(|resize| resize.size != size(&resize.set)).collect()
}

/// Whether the new set has all the pods that it can have.
fn is_saturated(sets: &Sets, wanted: i32) -> bool {
    sets.new.as_ref().is_some_and(|set| {
        size(set) == wanted && annotations::desired(set) == Some(wanted) && available(set) == wanted
    })
}

/// The set of the current template, with as many pods as it may have at first. None, if that cannot be said yet.
pub(crate) fn new_set(deployment: &Deployment, sets: &Sets) -> Result<ReplicaSet, Error> {
    let spec = &deployment.spec;
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = fingerprint(&spec.template, collisions);
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH.into(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH.into(), hash.clone());
    let first = if sets.are_observed() { rollout::new_size(deployment, sets, 0) } else { 0 };
    let longest = 252_usize.saturating_sub(hash.len());
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", &name[..name.len().min(longest)])),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controller_reference(deployment)?]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(first),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    };
    annotations::set_newest(&mut set, deployment, sets.next_revision());
    annotations::set_sizes(&mut set, Bounds::of(deployment));
    Ok(set)
}

#[cfg(test)]
mod tests;
