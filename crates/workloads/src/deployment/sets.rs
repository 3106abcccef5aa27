//! The ReplicaSets of a Deployment.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;

use crate::deployment::annotations::revision;

/// The label that tells the pods of one template from those of another.
pub(crate) const HASH: &str = "pod-template-hash";

/// The set of the current template, if it is there, and all others, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    pub(crate) new: Option<Arc<ReplicaSet>>,
    pub(crate) old: Vec<Arc<ReplicaSet>>,
}

impl Sets {
    pub(crate) fn of(deployment: &Deployment, mut all: Vec<Arc<ReplicaSet>>) -> Self {
        all.sort_by_key(|set| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone()));
        let is_new = |set: &Arc<ReplicaSet>| {
            set.spec.template.as_ref().is_some_and(|template| same(template, &deployment.spec.template))
        };
        let new = all.iter().position(is_new).map(|at| all.remove(at));
        Self { new, old: all }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// How many pods they are to have.
    pub(crate) fn size(&self) -> i32 {
        self.all().map(|set| size(set)).fold(0, i32::saturating_add)
    }

    /// Whether what they say of their pods can be believed. See [`is_observed`].
    pub(crate) fn are_observed(&self) -> bool {
        self.all().all(|set| is_observed(set))
    }

    /// A number of their status, over all of them.
    pub(crate) fn sum(&self, number: impl Fn(&ReplicaSetStatus) -> i32) -> i32 {
        self.all().filter_map(|set| set.status.as_ref()).map(number).fold(0, i32::saturating_add)
    }

    /// The revision that the set of the current template has to have at least.
    pub(crate) fn next_revision(&self) -> i64 {
        self.old.iter().map(|set| revision(set)).max().unwrap_or(0).saturating_add(1)
    }

    /// The one that has pods, if it is the only one; if none has, the newest.
    pub(crate) fn active_or_latest(&self) -> Option<&Arc<ReplicaSet>> {
        let mut active = self.all().filter(|set| size(set) > 0);
        match (active.next(), active.next()) {
            (Some(only), None) => Some(only),
            (None, _) => self.new.as_ref().or(self.old.last()),
            _ => None,
        }
    }

    /// Old sets beyond the limit that have come to rest, those with the lowest revision first.
    pub(crate) fn forgotten(&self, limit: i32) -> Vec<Arc<ReplicaSet>> {
        let alive = |set: &&Arc<ReplicaSet>| set.metadata.deletion_timestamp.is_none();
        let mut old: Vec<_> = self.old.iter().filter(alive).cloned().collect();
        let too_many = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        old.sort_by_key(|set| (revision(set), set.metadata.creation_timestamp.clone()));
        old.truncate(too_many);
        old.retain(|set| {
            let status = set.status.as_ref();
            size(set) == 0 && status.is_none_or(|status| status.replicas == 0) && is_observed(set)
        });
        old
    }

    /// Those that have pods, largest first; of the same size the newer or the older first.
    pub(crate) fn by_size(&self, newer_first: bool) -> Vec<Arc<ReplicaSet>> {
        let mut active: Vec<_> = self.all().filter(|set| size(set) > 0).cloned().collect();
        active.sort_by_key(|set| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone()));
        if newer_first {
            active.reverse();
        }
        active.sort_by_key(|set| Reverse(size(set)));
        active
    }
}

/// How many pods a set is to have.
pub(crate) fn size(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// How many of the pods that a set is to have are available. A status that was written before the set was made smaller, or
/// while its pods were being deleted, counts pods that are about to go.
pub(crate) fn available(set: &ReplicaSet) -> i32 {
    let counted = set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    counted.min(size(set))
}

/// How many pods a set has, or is to have if that is more.
pub(crate) fn pods(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas).max(size(set))
}

/// Whether the status of a set was written by someone who knew its present size. A set that is being deleted has no size
/// that anybody would follow.
pub(crate) fn is_observed(set: &ReplicaSet) -> bool {
    let observed = set.status.as_ref().and_then(|status| status.observed_generation);
    observed >= set.metadata.generation || set.metadata.deletion_timestamp.is_some()
}

/// Whether two templates describe the same pods.
fn same(left: &PodTemplateSpec, right: &PodTemplateSpec) -> bool {
    let without_hash = |template: &PodTemplateSpec| {
        let mut metadata = template.metadata.clone().unwrap_or_default();
        if let Some(labels) = &mut metadata.labels {
            labels.remove(HASH);
        }
        metadata.creation_timestamp = None;
        metadata
    };
    left.spec == right.spec && without_hash(left) == without_hash(right)
}
