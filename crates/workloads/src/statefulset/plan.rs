//! What is to be done for a StatefulSet.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;

use crate::pods;
use crate::statefulset::member::{ordinal, revision};
use crate::world::World;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// Make the pod with this ordinal.
    Create(i32),
    Delete(Arc<Pod>),
}

/// What is to be done now. Unless its pods may come and go together, a set does one thing at a time and waits for it: pods
/// come in the order of their ordinals, each when all before it are available, and go in the opposite order.
pub(crate) fn plan(set: &StatefulSet, all: &[Arc<Pod>], update: &str, world: &World) -> Vec<Act> {
    let look = Look::of(set, all, world);
    if look.parallel {
        let mut acts: Vec<Act> = look.wanted.iter().filter_map(|one| one.missing()).collect();
        acts.extend(look.condemned.iter().filter(|pod| !pods::is_terminating(pod)).cloned().map(Act::Delete));
        if acts.is_empty() {
            acts.extend(look.outdated(set, update));
        }
        return acts;
    }
    for one in &look.wanted {
        if let Some(act) = one.missing() {
            return vec![act];
        }
        if !one.is_available {
            return Vec::new();
        }
    }
    if let Some(last) = look.condemned.first() {
        let first_unhealthy = look.condemned.iter().rev().find(|pod| !look.is_available(pod));
        let blocked = pods::is_terminating(last)
            || (!look.is_available(last) && first_unhealthy.is_some_and(|first| !Arc::ptr_eq(first, last)));
        return if blocked { Vec::new() } else { vec![Act::Delete(Arc::clone(last))] };
    }
    look.outdated(set, update).into_iter().collect()
}

/// Whether a pod that is missing is made of the revision before the update: the update has not come to it yet.
pub(crate) fn is_of_current(set: &StatefulSet, ordinal: i32) -> bool {
    let strategy = set.spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let from_start = ordinal.saturating_sub(start(set));
    match rolling {
        Some(rolling) => from_start < rolling.partition.unwrap_or(0),
        None if is_on_delete(set) => false,
        None => from_start < set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or(0),
    }
}

fn is_on_delete(set: &StatefulSet) -> bool {
    let strategy = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    strategy == Some("OnDelete")
}

/// More members than this are not looked at: all that one node has room for.
const MOST: i32 = 65_000;

fn start(set: &StatefulSet) -> i32 {
    set.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0)
}

/// A set as it is.
struct Look<'a> {
    world: &'a World,
    min_ready: i32,
    parallel: bool,
    wanted: Vec<One>,
    /// Pods beyond the size of the set, the last one first.
    condemned: Vec<Arc<Pod>>,
}

/// A pod that is to be there.
struct One {
    ordinal: i32,
    pod: Option<Arc<Pod>>,
    is_available: bool,
}

impl One {
    /// What is to be done if it is not there: a pod that has ended has to go first.
    fn missing(&self) -> Option<Act> {
        match &self.pod {
            None => Some(Act::Create(self.ordinal)),
            Some(pod) if pods::is_finished(pod) && !pods::is_terminating(pod) => {
                Some(Act::Delete(Arc::clone(pod)))
            }
            Some(_) => None,
        }
    }
}

impl<'a> Look<'a> {
    fn of(set: &StatefulSet, all: &[Arc<Pod>], world: &'a World) -> Self {
        let named = all.iter().filter_map(|pod| Some((ordinal(set, pod)?, Arc::clone(pod))));
        let mut by_ordinal: BTreeMap<i32, Arc<Pod>> = named.collect();
        let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
        let parallel = set.spec.pod_management_policy.as_deref() == Some("Parallel");
        let mut look = Self { world, min_ready, parallel, wanted: Vec::new(), condemned: Vec::new() };
        let (first, count) = (start(set), set.spec.replicas.unwrap_or(1));
        for ordinal in first..first.saturating_add(count.min(MOST)) {
            let pod = by_ordinal.remove(&ordinal);
            let is_available = pod.as_ref().is_some_and(|pod| look.is_available(pod));
            look.wanted.push(One { ordinal, pod, is_available });
        }
        look.condemned = by_ordinal.into_values().rev().collect();
        look
    }

    fn is_available(&self, pod: &Pod) -> bool {
        !pods::is_terminating(pod) && pods::is_available(pod, self.min_ready, self.world)
    }

    /// The next pod that is not of the newest revision and may go: from the last down to the partition, one at a time.
    fn outdated(&self, set: &StatefulSet, update: &str) -> Option<Act> {
        if is_on_delete(set) {
            return None;
        }
        let rolling = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
        let partition = usize::try_from(partition).unwrap_or(0);
        for one in self.wanted.iter().skip(partition).rev() {
            if let Some(pod) = &one.pod
                && revision(pod) != update
                && !pods::is_terminating(pod)
            {
                return Some(Act::Delete(Arc::clone(pod)));
            }
            if !one.is_available {
                return None;
            }
        }
        None
    }
}
