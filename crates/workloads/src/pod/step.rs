//! What happens next to a pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;

use crate::node::NODE;
use crate::pod::fate::{Fate, Image, image};
use crate::pods;
use crate::timing::Timing;

/// A step in the life of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It gets a node.
    Bind,
    /// The node has heard of it.
    Accept,
    /// Its image cannot be had.
    FailToPull,
    /// It has been tried often enough for now.
    BackOff,
    /// Its init containers run.
    Initialize,
    /// Its containers run.
    Start,
    /// It is ready.
    BecomeReady,
    /// Its containers have exited for good.
    Finish,
    /// Its containers have exited, and will be started again.
    Crash,
    /// Its containers run again.
    Restart,
    /// It goes.
    Remove,
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::Accept => "accept",
            Self::FailToPull => "fail to pull",
            Self::BackOff => "back off",
            Self::Initialize => "initialize",
            Self::Start => "start",
            Self::BecomeReady => "become ready",
            Self::Finish => "finish",
            Self::Crash => "crash",
            Self::Restart => "restart",
            Self::Remove => "remove",
        }
    }
}

/// A step, how long the pod waits for it, and since when it does, as far as the pod tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) step: Step,
    pub(crate) wait: Duration,
    pub(crate) since: Option<Time>,
}

/// What happens next to a pod, if anything does by itself.
pub(crate) fn next(pod: &Pod, timing: &Timing) -> Option<Next> {
    let of = |step, wait, since: Option<&Time>| Some(Next { step, wait, since: since.cloned() });
    if let Some(at) = &pod.metadata.deletion_timestamp {
        return removal(pod, at, timing);
    }
    let spec = pod.spec.as_ref()?;
    if pods::is_finished(pod) {
        return None;
    }
    let created = pod.metadata.creation_timestamp.as_ref();
    match spec.node_name.as_deref() {
        Some(NODE) => {}
        Some(_) => return None,
        None => return is_ours_to_schedule(spec).then(|| of(Step::Bind, timing.schedule, created)).flatten(),
    }
    let status = pod.status.as_ref()?;
    let Some(containers) = status.container_statuses.as_deref().filter(|all| !all.is_empty()) else {
        return of(Step::Accept, Duration::ZERO, None);
    };
    match waiting(containers) {
        None => running(pod, spec, containers, timing),
        Some("CrashLoopBackOff") => {
            let crashed = containers.iter().find_map(|container| {
                container.last_state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()
            });
            of(Step::Restart, back_off(timing.restart, pods::restarts(pod)), crashed)
        }
        Some("ErrImagePull") => of(Step::BackOff, timing.pull * 2, None),
        // An image can be changed while the pod waits for it.
        Some("ImagePullBackOff" | "InvalidImageName") if worst_image(spec) != Image::Available => None,
        Some(_) => starting(spec, status, timing),
    }
}

fn removal(pod: &Pod, at: &Time, timing: &Timing) -> Option<Next> {
    // Without grace it has ended already; what keeps it are finalizers.
    let grace = pod.metadata.deletion_grace_period_seconds.filter(|seconds| *seconds > 0)?;
    let asked = at.0.checked_sub(SignedDuration::from_secs(grace)).ok().map(Time);
    let wait = timing.stop.min(Duration::from_secs(grace.unsigned_abs()));
    Some(Next { step: Step::Remove, wait, since: asked })
}

fn is_ours_to_schedule(spec: &PodSpec) -> bool {
    let usual = spec.scheduler_name.as_deref().is_none_or(|name| name == "default-scheduler");
    usual && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

/// Why a container waits, if one does: trouble before what is usual.
fn waiting(containers: &[ContainerStatus]) -> Option<&str> {
    let all = containers.iter().filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    let reasons = all.map(|waiting| waiting.reason.as_deref().unwrap_or_default());
    reasons.min_by_key(|reason| matches!(*reason, "ContainerCreating" | "PodInitializing"))
}

fn starting(spec: &PodSpec, status: &PodStatus, timing: &Timing) -> Option<Next> {
    let since = status.start_time.clone();
    let inits = status.init_container_statuses.as_deref().unwrap_or_default();
    let initializing =
        inits.iter().any(|init| init.state.as_ref().is_some_and(|state| state.running.is_some()));
    let (step, wait) = match worst_image(spec) {
        Image::Missing | Image::Invalid => (Step::FailToPull, timing.pull),
        Image::Available if inits.is_empty() => (Step::Start, timing.pull + timing.start),
        Image::Available if initializing => (Step::Start, timing.start * 2),
        Image::Available => (Step::Initialize, timing.pull),
    };
    Some(Next { step, wait, since })
}

fn running(pod: &Pod, spec: &PodSpec, containers: &[ContainerStatus], timing: &Timing) -> Option<Next> {
    let fate = Fate::of(pod, timing);
    let since = containers.iter().find_map(|one| one.state.as_ref()?.running.as_ref()?.started_at.clone());
    let ready = fate.ready_after.filter(|_| !pods::is_ready(pod)).map(|wait| (Step::BecomeReady, wait));
    let end = fate.runs_for.map(|wait| match (spec.restart_policy.as_deref(), fate.fails) {
        (Some("Never"), _) | (Some("OnFailure"), false) => (Step::Finish, wait),
        _ => (Step::Crash, wait),
    });
    // What comes first; if both at once, it is ready before it ends.
    let (step, wait) = match (ready, end) {
        (Some(ready), Some(end)) if end.1 < ready.1 => end,
        (Some(ready), _) => ready,
        (None, end) => end?,
    };
    Some(Next { step, wait, since })
}

/// The worst that can be said of the images of a pod.
pub(crate) fn worst_image(spec: &PodSpec) -> Image {
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let images = all.map(|container| image(container.image.as_deref().unwrap_or_default()));
    images
        .max_by_key(|image| match image {
            Image::Available => 0,
            Image::Missing => 1,
            Image::Invalid => 2,
        })
        .unwrap_or(Image::Available)
}

/// Doubles with each restart, up to thirty times the first.
fn back_off(first: Duration, restarts: i32) -> Duration {
    let doubled = first.saturating_mul(1 << restarts.clamp(0, 16));
    doubled.min(first.saturating_mul(30))
}
