use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use crate::pods;
use crate::replicaset::number;
use crate::statefulset::member::revision;
use crate::statefulset::plan::Act;
use crate::world::World;

/// The status of a set with these pods, when this is about to be done. Of the two revisions the first is that of the pods
/// that are not updated yet; they become one when all are.
pub(crate) fn count(
    set: &StatefulSet,
    all: &[Arc<Pod>],
    acts: &[Act],
    (current, update): (&str, &str),
    world: &World,
) -> StatefulSetStatus {
    let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
    let count = |is: &dyn Fn(&Pod) -> bool| number(all.iter().filter(|pod| is(pod)).count());
    let going = |pod: &Pod| {
        let deleted = |act: &Act| matches!(act, Act::Delete(gone) if gone.metadata.uid == pod.metadata.uid);
        pods::is_terminating(pod) || acts.iter().any(deleted)
    };
    let running = |pod: &Pod| pods::phase(pod) == "Running";
    let ready = count(&|pod| running(pod) && pods::is_ready(pod));
    let available = count(&|pod| running(pod) && pods::is_available(pod, min_ready, world));
    let updated = count(&|pod| !going(pod) && revision(pod) == update);
    let replicas = number(all.len());
    let wanted = set.spec.replicas.unwrap_or(1);
    let on_delete =
        set.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete");
    let complete = !on_delete && updated == wanted && ready == wanted && replicas == wanted;
    let current = if complete { update } else { current };
    let some = |count: i32| (count != 0).then_some(count);
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: some(ready),
        available_replicas: Some(available),
        current_replicas: some(count(&|pod| !going(pod) && revision(pod) == current)),
        updated_replicas: some(updated),
        current_revision: Some(current.into()),
        update_revision: Some(update.into()),
        collision_count: Some(set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0)),
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    }
}
