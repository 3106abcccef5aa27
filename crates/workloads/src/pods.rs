//! What owners want to know about pods.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::World;

/// The phase; a pod without one has just been made.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Neither at its end nor asked to end.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when it is ready, if it is.
pub(crate) fn ready_since(pod: &Pod) -> Option<&Time> {
    condition(pod, "Ready").filter(|ready| ready.status == "True")?.last_transition_time.as_ref()
}

/// Whether it has been ready for so many seconds.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, world: &World) -> bool {
    if min_ready_seconds == 0 {
        return is_ready(pod);
    }
    ready_since(pod).is_some_and(|since| world.until(since, i64::from(min_ready_seconds)).is_zero())
}

/// How often its containers were restarted: the one that was most often.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let all = status.into_iter().flat_map(|status| status.container_statuses.iter().flatten());
    all.map(|container| container.restart_count).max().unwrap_or(0)
}

/// Whether something changed that its owner might have to do something about.
pub(crate) fn concerns_owner(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return true };
    let seen = |pod: &Pod| {
        let meta = &pod.metadata;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.is_some().then_some(()));
        let ready = ready_since(pod).cloned();
        (phase(pod).to_owned(), ready, restarts(pod), meta.deletion_timestamp.clone(), node)
    };
    seen(old) != seen(new)
        || old.metadata.labels != new.metadata.labels
        || old.metadata.owner_references != new.metadata.owner_references
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use k8s_openapi::api::core::v1::{ContainerStatus, PodSpec, PodStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use k8s_openapi::jiff::Timestamp;

    use crate::timing::Timing;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap_or_default())
    }

    /// A running pod that has been ready since a time, if it is.
    fn pod(ready: Option<i64>) -> Pod {
        let condition = PodCondition {
            type_: "Ready".into(),
            status: if ready.is_some() { "True" } else { "False" }.into(),
            last_transition_time: Some(at(ready.unwrap_or(0))),
            ..PodCondition::default()
        };
        Pod {
            status: Some(PodStatus {
                phase: Some("Running".into()),
                conditions: Some(vec![condition]),
                ..PodStatus::default()
            }),
            ..Pod::default()
        }
    }

    #[test]
    fn a_pod_is_available_when_it_has_been_ready_for_its_time() {
        let world =
            World::new(Timing::instant(), Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(100)));
        let is = |ready, seconds| is_available(&pod(ready), seconds, &world);
        assert!(is(Some(100), 0) && is(Some(95), 5) && is(Some(90), 5));
        assert!(!is(Some(96), 5) && !is(None, 0) && !is(None, 5));
    }

    #[test]
    fn only_what_an_owner_can_act_upon_concerns_it() {
        let usual = pod(Some(50));
        let mut same = usual.clone();
        same.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
        same.metadata.resource_version = Some("7".into());
        assert!(!concerns_owner(Some(&usual), Some(&same)));
        assert!(concerns_owner(None, Some(&usual)) && concerns_owner(Some(&usual), None));
        let changed = |change: &dyn Fn(&mut Pod)| {
            let mut pod = usual.clone();
            change(&mut pod);
            pod
        };
        let restarted = ContainerStatus { restart_count: 1, ..ContainerStatus::default() };
        let bound = PodSpec { node_name: Some("node".into()), ..PodSpec::default() };
        let all = [
            pod(None),
            pod(Some(51)),
            changed(&|pod| pod.status.get_or_insert_default().phase = Some("Failed".into())),
            changed(&|pod| {
                pod.status.get_or_insert_default().container_statuses = Some(vec![restarted.clone()]);
            }),
            changed(&|pod| pod.metadata.deletion_timestamp = Some(at(60))),
            changed(&|pod| pod.spec = Some(bound.clone())),
            changed(&|pod| pod.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into())),
            changed(&|pod| pod.metadata.owner_references = Some(vec![OwnerReference::default()])),
        ];
        for other in all {
            assert!(concerns_owner(Some(&usual), Some(&other)), "{other:?}");
        }
    }
}
