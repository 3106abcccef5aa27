//! Which pods go first when there are too many.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::pods;

/// The pods that go: those that are least far, then those that say they cost least, then the youngest.
pub(crate) fn first_to_go(active: &[Arc<Pod>], count: usize) -> Vec<Arc<Pod>> {
    let mut all = active.to_vec();
    all.sort_by(|left, right| compare(left, right));
    all.truncate(count);
    all
}

fn compare(left: &Pod, right: &Pod) -> Ordering {
    let progress = |pod: &Pod| {
        let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let phase = match pods::phase(pod) {
            "Pending" => 0,
            "Running" => 2,
            _ => 1,
        };
        (has_node, phase, pods::is_ready(pod), deletion_cost(pod))
    };
    // Pods are all on one node, so that how many share it makes no difference. Of two that have been ready for about as long,
    // Kubernetes takes either; here it is the younger.
    let age = |pod: &Pod| (Reverse(pods::ready_since(pod).cloned()), Reverse(pods::restarts(pod)));
    let created = |pod: &Pod| Reverse(pod.metadata.creation_timestamp.clone());
    let (name_of_left, name_of_right) = (&left.metadata.name, &right.metadata.name);
    progress(left)
        .cmp(&progress(right))
        .then_with(|| age(left).cmp(&age(right)))
        .then_with(|| created(left).cmp(&created(right)))
        .then_with(|| name_of_left.cmp(name_of_right))
}

/// What a pod says about how sad its loss would be. What is not a number counts as nothing said.
fn deletion_cost(pod: &Pod) -> i32 {
    let said = pod
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get("controller.kubernetes.io/pod-deletion-cost"));
    said.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodSpec, PodStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    struct Say {
        node: bool,
        phase: &'static str,
        ready: Option<i64>,
        cost: &'static str,
        restarts: i32,
        created: i64,
    }

    const USUAL: Say =
        Say { node: true, phase: "Running", ready: Some(50), cost: "", restarts: 0, created: 10 };

    fn pod(name: &str, say: &Say) -> Arc<Pod> {
        let at = |second| Time(Timestamp::from_second(second).unwrap_or_default());
        let cost = ("controller.kubernetes.io/pod-deletion-cost".to_owned(), say.cost.to_owned());
        let ready = say.ready.map(|since| PodCondition {
            type_: "Ready".into(),
            status: "True".into(),
            last_transition_time: Some(at(since)),
            ..PodCondition::default()
        });
        let container = ContainerStatus { restart_count: say.restarts, ..ContainerStatus::default() };
        Arc::new(Pod {
            metadata: ObjectMeta {
                name: Some(name.into()),
                annotations: Some([cost].into()),
                creation_timestamp: Some(at(say.created)),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec { node_name: say.node.then(|| "node".into()), ..PodSpec::default() }),
            status: Some(PodStatus {
                phase: Some(say.phase.into()),
                conditions: Some(ready.into_iter().collect()),
                container_statuses: Some(vec![container]),
                ..PodStatus::default()
            }),
        })
    }

    #[test]
    fn the_least_far_and_the_youngest_go_first() {
        let all = [
            pod("usual", &USUAL),
            pod("older", &Say { created: 5, ..USUAL }),
            pod("ready for longer", &Say { ready: Some(20), ..USUAL }),
            pod("restarted", &Say { restarts: 3, ..USUAL }),
            pod("cheap", &Say { cost: "-5", ..USUAL }),
            pod("dear", &Say { cost: "100", ..USUAL }),
            pod("not ready", &Say { ready: None, ..USUAL }),
            pod("pending", &Say { ready: None, phase: "Pending", ..USUAL }),
            pod("without node", &Say { ready: None, phase: "Pending", node: false, ..USUAL }),
        ];
        let order: Vec<_> = first_to_go(&all, 8).iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        let expected = [
            "without node",
            "pending",
            "not ready",
            "cheap",
            "restarted",
            "usual",
            "older",
            "ready for longer",
        ];
        assert_eq!(order, expected);
    }
}
