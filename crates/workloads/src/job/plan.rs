//! What is to be done for a Job.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::job::indexes;
use crate::job::status::{self, Finish};
use crate::pods;
use crate::replicaset::number;

/// What the pods of a Job have come to.
pub(crate) struct Count {
    pub(crate) active: Vec<Arc<Pod>>,
    pub(crate) terminating: i32,
    pub(crate) succeeded: i32,
    pub(crate) failed: i32,
    /// How often containers were restarted in pods that still run.
    pub(crate) restarts: i32,
    /// The indexes that have succeeded, in the notation of the API.
    pub(crate) completed: Option<String>,
}

impl Count {
    /// What was counted before counts on, also if the pods are gone.
    pub(crate) fn of(job: &Job, spec: &JobSpec, all: &[Arc<Pod>]) -> Self {
        let before = job.status.clone().unwrap_or_default();
        let phase = |wanted: &str| all.iter().filter(|pod| pods::phase(pod) == wanted).count();
        let active: Vec<_> = all.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
        let terminating =
            all.iter().filter(|pod| pods::is_terminating(pod) && !pods::is_finished(pod)).count();
        let restarts = active.iter().map(|pod| pods::restarts(pod)).sum();
        let succeeded = match indexes::is_indexed(spec) {
            true => indexes::succeeded(all).len(),
            false => phase("Succeeded"),
        };
        Self {
            terminating: number(terminating),
            succeeded: number(succeeded).max(before.succeeded.unwrap_or(0)),
            failed: number(phase("Failed")).max(before.failed.unwrap_or(0)),
            restarts,
            completed: indexes::is_indexed(spec).then(|| indexes::text(&indexes::succeeded(all))),
            active,
        }
    }
}

/// What is to be done now.
#[derive(Default)]
pub(crate) struct Plan {
    /// How it ends, if it does.
    pub(crate) finish: Option<Finish>,
    pub(crate) create: usize,
    pub(crate) delete: Vec<Arc<Pod>>,
}

pub(crate) fn plan(job: &Job, spec: &JobSpec, count: &Count, is_late: bool) -> Plan {
    if let Some(finish) = failure(job, spec, count, is_late) {
        return Plan { finish: Some(finish), delete: count.active.clone(), ..Plan::default() };
    }
    if spec.suspend == Some(true) {
        return Plan { delete: count.active.clone(), ..Plan::default() };
    }
    let active = number(count.active.len());
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = match spec.completions {
        // One success is enough, and what runs then runs to its end.
        None if count.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => completions.saturating_sub(count.succeeded).clamp(0, parallelism.max(0)),
    };
    let complete = match spec.completions {
        None => count.succeeded > 0 && active == 0,
        Some(completions) => count.succeeded >= completions && active == 0,
    };
    let by_policy = spec.pod_replacement_policy.as_deref() == Some("Failed");
    let going = if by_policy { count.terminating } else { 0 };
    let surplus = usize::try_from(active.saturating_sub(wanted)).unwrap_or(0);
    Plan {
        finish: complete.then_some(Finish::Complete),
        create: usize::try_from(wanted.saturating_sub(active).saturating_sub(going)).unwrap_or(0),
        delete: count.active.iter().rev().take(surplus).cloned().collect(),
    }
}

fn failure(job: &Job, spec: &JobSpec, count: &Count, is_late: bool) -> Option<Finish> {
    if let Some(known) = status::failing(job) {
        return Some(known);
    }
    let limit = spec.backoff_limit.unwrap_or(6);
    let template = spec.template.spec.as_ref();
    let restarted = template.is_some_and(|template| template.restart_policy.as_deref() == Some("OnFailure"))
        && count.restarts >= limit.max(1);
    if count.failed > limit || restarted {
        return Some(Finish::TooManyFailures);
    }
    is_late.then_some(Finish::TooLate)
}

/// When the last container of a pod ended.
pub(crate) fn ended_at(pod: &Pod) -> Option<Time> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.iter().filter_map(|one| one.state.as_ref()?.terminated.as_ref()?.finished_at.clone()).max()
}
