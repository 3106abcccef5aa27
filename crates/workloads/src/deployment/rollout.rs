//! How far a rolling update may go: sizes of ReplicaSets, from sizes and counts.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use crate::deployment::annotations;
use crate::deployment::bounds::{Bounds, is_recreate};
use crate::deployment::sets::{Sets, available, pods, size};

/// The size of the new set, which is `current` now: as large as it may be without more pods than are allowed.
pub(crate) fn new_size(deployment: &Deployment, sets: &Sets, current: i32) -> i32 {
    let bounds = Bounds::of(deployment);
    if is_recreate(deployment) || current > bounds.replicas {
        return bounds.replicas;
    }
    // Pods of old sets that are still to be deleted take up room as well.
    let others = sets.old.iter().map(|set| pods(set)).fold(0, i32::saturating_add);
    let room = bounds.most().saturating_sub(others).saturating_sub(current).max(0);
    current.saturating_add(room.min(bounds.replicas.saturating_sub(current)))
}

/// The sizes of the old sets, oldest first: as small as they may be without fewer available pods than are allowed.
///
/// Pods that are not available go first, since nobody misses them. What the new set still lacks counts against what may go.
pub(crate) fn old_sizes(bounds: Bounds, sets: &Sets, new: &ReplicaSet) -> Vec<i32> {
    let mut sizes: Vec<i32> = sets.old.iter().map(|set| size(set)).collect();
    let lacking = size(new).saturating_sub(available(new));
    let mut may_go = sets.size().saturating_sub(bounds.fewest()).saturating_sub(lacking).max(0);
    let mut shrink = |size: &mut i32, by: i32| {
        let gone = by.min(may_go);
        *size = size.saturating_sub(gone);
        may_go = may_go.saturating_sub(gone);
    };
    for (size, set) in sizes.iter_mut().zip(&sets.old) {
        let unavailable = size.saturating_sub(available(set));
        shrink(size, unavailable);
    }
    for size in &mut sizes {
        let rest = *size;
        shrink(size, rest);
    }
    sizes
}

/// The sizes of all sets that have pods, when the Deployment was scaled in the middle of a rollout: each grows or shrinks in
/// proportion, the largest takes what is left over. In the order in which they are to be written.
pub(crate) fn proportional(deployment: &Deployment, sets: &Sets) -> Vec<(std::sync::Arc<ReplicaSet>, i32)> {
    let bounds = Bounds::of(deployment);
    let allowed = if bounds.replicas > 0 { bounds.most() } else { 0 };
    let to_add = allowed.saturating_sub(sets.size());
    let active = sets.by_size(to_add > 0);
    let mut added = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for set in active {
        let part = portion(&set, deployment, bounds, to_add, added);
        added = part.saturating_add(added);
        let new_size = size(&set).saturating_add(part);
        sizes.push((set, new_size));
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = largest.saturating_add(to_add.saturating_sub(added)).max(0);
    }
    sizes
}

/// What one set gets of what is to be added (or removed, if negative), when some of it has been given away already.
fn portion(set: &ReplicaSet, deployment: &Deployment, bounds: Bounds, to_add: i32, added: i32) -> i32 {
    if to_add == added || to_add == 0 {
        return 0;
    }
    let fraction = fraction(set, deployment, bounds);
    let rest = to_add.saturating_sub(added);
    if to_add > 0 { fraction.min(rest) } else { fraction.max(rest) }
}

fn fraction(set: &ReplicaSet, deployment: &Deployment, bounds: Bounds) -> i32 {
    let current = size(set);
    if bounds.replicas == 0 {
        return 0_i32.saturating_sub(current);
    }
    let status = deployment.status.as_ref();
    let before = annotations::max(set).filter(|max| *max > 0);
    let before = before.or_else(|| status?.replicas).unwrap_or(0);
    if before == 0 {
        return 0;
    }
    let exact = f64::from(current) * f64::from(bounds.most()) / f64::from(before);
    // Half is rounded away from zero, and sizes are not negative.
    #[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
    let rounded = exact.round() as i32;
    rounded.saturating_sub(current)
}
