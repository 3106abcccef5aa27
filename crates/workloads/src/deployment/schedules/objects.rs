//! The objects of the simulation, as short as they can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{Container, Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::timing::Timing;
use crate::world::World;

/// Pods of this template never become ready.
pub(super) const BROKEN: u32 = 3;

/// A clock that is moved by hand, and the world that goes by it.
pub(super) fn clock() -> (Arc<AtomicU64>, World) {
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let hand = Arc::clone(&seconds);
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(hand.load(Ordering::Relaxed));
    (seconds, World::new(Timing::instant(), Arc::new(now)))
}

pub(super) fn template(number: u32) -> PodTemplateSpec {
    let container =
        Container { name: "web".into(), image: Some(format!("web:{number}")), ..Container::default() };
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels()), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    }
}

/// Which template a pod or a set was made of.
pub(super) fn number(spec: Option<&PodSpec>) -> u32 {
    let image = spec.and_then(|spec| spec.containers.first()?.image.as_deref());
    image.and_then(|image| image.strip_prefix("web:")?.parse().ok()).unwrap_or(0)
}

fn labels() -> std::collections::BTreeMap<String, String> {
    [("app".to_owned(), "web".to_owned())].into()
}

pub(super) fn deployment(replicas: i32, surge: i32, unavailable: i32, min_ready: i32) -> Deployment {
    let rolling = RollingUpdateDeployment {
        max_surge: Some(IntOrString::Int(surge)),
        max_unavailable: Some(IntOrString::Int(unavailable)),
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some("web".into()),
            namespace: Some("default".into()),
            uid: Some("0".into()),
            generation: Some(1),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: Some(replicas),
            min_ready_seconds: (min_ready > 0).then_some(min_ready),
            selector: LabelSelector { match_labels: Some(labels()), ..LabelSelector::default() },
            strategy: Some(DeploymentStrategy { rolling_update: Some(rolling), type_: None }),
            template: template(1),
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

/// The number under which an object is stored.
pub(super) fn id(meta: &ObjectMeta) -> u32 {
    meta.uid.as_deref().and_then(|uid| uid.parse().ok()).unwrap_or(u32::MAX)
}

/// The number of the set that a pod belongs to.
pub(super) fn owner(pod: &Pod) -> u32 {
    let owner = pod.metadata.owner_references.iter().flatten().next();
    owner.and_then(|owner| owner.uid.parse().ok()).unwrap_or(u32::MAX)
}

/// The same pod, running and ready or not, or at its end.
pub(super) fn with_state(pod: &Pod, phase: &str, ready: bool, world: &World) -> Pod {
    let mut pod = pod.clone();
    pod.spec.get_or_insert_default().node_name = Some("node".into());
    let condition = PodCondition {
        type_: "Ready".into(),
        status: if ready { "True" } else { "False" }.into(),
        last_transition_time: Some(world.now()),
        ..PodCondition::default()
    };
    pod.status = Some(PodStatus {
        phase: Some(phase.into()),
        conditions: Some(vec![condition]),
        ..PodStatus::default()
    });
    pod
}
