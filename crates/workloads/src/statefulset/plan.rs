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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use k8s_openapi::api::apps::v1::{
        RollingUpdateStatefulSetStrategy, StatefulSetOrdinals, StatefulSetSpec, StatefulSetStatus,
        StatefulSetUpdateStrategy,
    };
    use k8s_openapi::api::core::v1::{PodCondition, PodStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use crate::revisions::REVISION;
    use crate::timing::Timing;

    use super::*;

    fn set(replicas: i32) -> StatefulSet {
        StatefulSet {
            metadata: ObjectMeta { name: Some("db".into()), ..ObjectMeta::default() },
            spec: StatefulSetSpec { replicas: Some(replicas), ..StatefulSetSpec::default() },
            status: None,
        }
    }

    fn with_strategy(mut set: StatefulSet, kind: &str, partition: Option<i32>) -> StatefulSet {
        let rolling = partition.map(|partition| RollingUpdateStatefulSetStrategy {
            partition: Some(partition),
            ..Default::default()
        });
        set.spec.update_strategy =
            Some(StatefulSetUpdateStrategy { type_: Some(kind.into()), rolling_update: rolling });
        set
    }

    fn parallel(mut set: StatefulSet) -> StatefulSet {
        set.spec.pod_management_policy = Some("Parallel".into());
        set
    }

    /// A pod by its ordinal, revision and state: `ready`, `starting`, `failed`, or any of them with `going` behind it.
    fn pod((ordinal, revision, state): (i32, &str, &str)) -> Arc<Pod> {
        let (state, going) = state.split_once(' ').map_or((state, false), |(state, _)| (state, true));
        let ready = PodCondition {
            type_: "Ready".into(),
            status: if state == "ready" { "True" } else { "False" }.into(),
            ..PodCondition::default()
        };
        let world = World::new(Timing::instant(), Arc::new(SystemTime::now));
        Arc::new(Pod {
            metadata: ObjectMeta {
                name: Some(format!("db-{ordinal}")),
                labels: Some([(REVISION.to_owned(), revision.to_owned())].into()),
                deletion_timestamp: going.then(|| world.now()),
                ..ObjectMeta::default()
            },
            status: Some(PodStatus {
                phase: Some(if state == "failed" { "Failed" } else { "Running" }.into()),
                conditions: Some(vec![ready]),
                ..PodStatus::default()
            }),
            spec: None,
        })
    }

    /// What is done, with `+` for a pod that is made and `-` for one that is deleted.
    fn planned(set: &StatefulSet, pods: &[(i32, &str, &str)]) -> Vec<String> {
        let world = World::new(Timing::instant(), Arc::new(SystemTime::now));
        let pods: Vec<_> = pods.iter().map(|one| pod(*one)).collect();
        let acts = plan(set, &pods, "new", &world);
        let said = acts.into_iter().map(|act| match act {
            Act::Create(ordinal) => format!("+{ordinal}"),
            Act::Delete(pod) => format!("-{}", ordinal(set, &pod).unwrap_or(-1)),
        });
        said.collect()
    }

    #[test]
    fn one_thing_is_done_at_a_time_and_waited_for() {
        let set = set(3);
        assert_eq!(planned(&set, &[]), ["+0"]);
        assert_eq!(planned(&set, &[(0, "new", "starting")]), [""; 0]);
        assert_eq!(planned(&set, &[(0, "new", "ready")]), ["+1"]);
        assert_eq!(planned(&set, &[(0, "new", "ready going"), (1, "new", "ready")]), [""; 0]);
        assert_eq!(planned(&set, &[(0, "new", "failed"), (2, "new", "ready")]), ["-0"]);
        assert_eq!(planned(&set, &[(0, "new", "failed going"), (2, "new", "ready")]), [""; 0]);
    }

    #[test]
    fn pods_beyond_the_size_go_from_the_last_one_down() {
        let set = set(1);
        let ready = |ordinal| (ordinal, "new", "ready");
        assert_eq!(planned(&set, &[ready(0), ready(1), ready(2)]), ["-2"]);
        assert_eq!(planned(&set, &[ready(0), ready(1), (2, "new", "ready going")]), [""; 0]);
        // The last one waits for one before it that is not well; that one alone does not.
        assert_eq!(planned(&set, &[ready(0), (1, "new", "starting"), (2, "new", "starting")]), [""; 0]);
        assert_eq!(planned(&set, &[ready(0), ready(1), (2, "new", "starting")]), ["-2"]);
        assert_eq!(planned(&set, &[ready(0), (1, "new", "starting"), ready(2)]), ["-2"]);
        assert_eq!(planned(&set, &[(0, "new", "starting"), ready(1)]), [""; 0]);
    }

    #[test]
    fn an_update_takes_one_pod_after_the_other_down_to_the_partition() {
        let old = |ordinal| (ordinal, "old", "ready");
        let all = [old(0), old(1), old(2)];
        assert_eq!(planned(&set(3), &all), ["-2"]);
        assert_eq!(planned(&set(3), &[old(0), old(1), (2, "new", "starting")]), [""; 0]);
        assert_eq!(planned(&set(3), &[old(0), old(1), (2, "new", "ready")]), ["-1"]);
        let partition = |at| with_strategy(set(3), "RollingUpdate", Some(at));
        assert_eq!(planned(&partition(2), &[old(0), old(1), (2, "new", "ready")]), [""; 0]);
        assert_eq!(planned(&partition(1), &[old(0), old(1), (2, "new", "ready")]), ["-1"]);
        assert_eq!(planned(&with_strategy(set(3), "OnDelete", None), &all), [""; 0]);
    }

    #[test]
    fn parallel_pods_come_and_go_together_but_are_updated_one_by_one() {
        let ready = |ordinal, revision| (ordinal, revision, "ready");
        assert_eq!(planned(&parallel(set(3)), &[(1, "new", "starting")]), ["+0", "+2"]);
        let more = [ready(0, "new"), ready(1, "new"), (2, "new", "ready going"), ready(3, "new")];
        assert_eq!(planned(&parallel(set(1)), &more), ["-3", "-1"]);
        assert_eq!(planned(&parallel(set(2)), &[ready(0, "old"), ready(1, "old")]), ["-1"]);
    }

    #[test]
    fn ordinals_may_begin_anywhere() {
        let mut set = set(2);
        set.spec.ordinals = Some(StatefulSetOrdinals { start: Some(5) });
        assert_eq!(planned(&set, &[(5, "new", "ready")]), ["+6"]);
        assert_eq!(planned(&set, &[(5, "new", "ready"), (6, "new", "ready"), (0, "new", "ready")]), ["-0"]);
        let set = with_strategy(set, "RollingUpdate", Some(1));
        assert!(is_of_current(&set, 5) && !is_of_current(&set, 6));
    }

    #[test]
    fn a_pod_that_is_missing_comes_back_as_it_was_unless_the_update_has_come_to_it() {
        let of = |set: StatefulSet, current: i32| {
            let known = StatefulSetStatus { current_replicas: Some(current), ..StatefulSetStatus::default() };
            StatefulSet { status: Some(known), ..set }
        };
        let all = |set: &StatefulSet| [0, 1, 2].map(|ordinal| is_of_current(set, ordinal));
        assert_eq!(all(&set(3)), [false; 3]);
        assert_eq!(all(&of(set(3), 2)), [true, true, false]);
        assert_eq!(all(&of(with_strategy(set(3), "OnDelete", None), 2)), [false; 3]);
        assert_eq!(all(&of(with_strategy(set(3), "RollingUpdate", Some(1)), 2)), [true, false, false]);
    }
}
