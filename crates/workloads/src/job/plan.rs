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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
    use k8s_openapi::api::core::v1::{
        ContainerState, ContainerStateTerminated, ContainerStatus, PodSpec, PodStatus, PodTemplateSpec,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap_or_default())
    }

    fn pod(name: &str, phase: &str) -> Arc<Pod> {
        Arc::new(Pod {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            status: Some(PodStatus { phase: Some(phase.into()), ..PodStatus::default() }),
            ..Pod::default()
        })
    }

    fn going(name: &str, phase: &str) -> Arc<Pod> {
        let mut pod = Pod::clone(&pod(name, phase));
        pod.metadata.deletion_timestamp = Some(at(5));
        Arc::new(pod)
    }

    fn spec(completions: Option<i32>, parallelism: i32) -> JobSpec {
        JobSpec { completions, parallelism: Some(parallelism), ..JobSpec::default() }
    }

    /// How it ends, how many pods are made, and which are deleted.
    fn planned(spec: &JobSpec, all: &[Arc<Pod>]) -> (Option<Finish>, usize, Vec<String>) {
        let job = Job::default();
        let Plan { finish, create, delete } = plan(&job, spec, &Count::of(&job, spec, all), false);
        (finish, create, delete.iter().filter_map(|pod| pod.metadata.name.clone()).collect())
    }

    fn running(count: usize) -> Vec<Arc<Pod>> {
        (0..count).map(|number| pod(&format!("r{number}"), "Running")).collect()
    }

    fn succeeded(count: usize) -> Vec<Arc<Pod>> {
        (0..count).map(|number| pod(&format!("s{number}"), "Succeeded")).collect()
    }

    #[test]
    fn as_many_pods_run_as_are_needed_and_allowed() {
        // Completions, parallelism, how many run and have succeeded; then the end, how many are made and deleted.
        let cases = [
            ((Some(5), 2, 0, 0), (None, 2, 0)),
            ((Some(5), 2, 1, 0), (None, 1, 0)),
            ((Some(5), 2, 1, 4), (None, 0, 0)),
            ((Some(5), 2, 0, 4), (None, 1, 0)),
            ((Some(5), 2, 0, 5), (Some(Finish::Complete), 0, 0)),
            ((Some(5), 2, 1, 5), (None, 0, 1)),
            ((Some(5), 0, 2, 1), (None, 0, 2)),
            ((Some(0), 1, 0, 0), (Some(Finish::Complete), 0, 0)),
            ((None, 3, 1, 0), (None, 2, 0)),
            ((None, 3, 2, 1), (None, 0, 0)),
            ((None, 3, 0, 1), (Some(Finish::Complete), 0, 0)),
        ];
        for ((completions, parallelism, runs, done), expected) in cases {
            let spec = spec(completions, parallelism);
            let (finish, create, delete) = planned(&spec, &[running(runs), succeeded(done)].concat());
            assert_eq!(
                (finish, create, delete.len()),
                expected,
                "{done} of {completions:?}, {runs} of {parallelism}"
            );
        }
    }

    #[test]
    fn of_too_many_pods_the_last_ones_go_and_a_suspended_job_has_none() {
        assert_eq!(planned(&spec(Some(5), 1), &running(3)), (None, 0, vec!["r2".into(), "r1".into()]));
        let suspended = JobSpec { suspend: Some(true), ..spec(Some(5), 3) };
        assert_eq!(planned(&suspended, &running(2)), (None, 0, vec!["r0".into(), "r1".into()]));
    }

    #[test]
    fn a_pod_that_is_going_is_replaced_at_once_unless_the_policy_says_otherwise() {
        let all = [going("a", "Running"), going("b", "Failed"), pod("c", "Running")];
        assert_eq!(planned(&spec(Some(5), 3), &all).1, 2);
        let later = JobSpec { pod_replacement_policy: Some("Failed".into()), ..spec(Some(5), 3) };
        assert_eq!(planned(&later, &all).1, 1);
    }

    #[test]
    fn a_job_fails_by_failures_by_restarts_and_by_time() {
        let failed = |count: usize| -> Vec<_> { (0..count).map(|_| pod("f", "Failed")).collect() };
        let limit = |limit: i32| JobSpec { backoff_limit: Some(limit), ..spec(Some(1), 1) };
        assert_eq!(planned(&limit(2), &failed(2)), (None, 1, vec![]));
        assert_eq!(planned(&limit(2), &failed(3)).0, Some(Finish::TooManyFailures));
        assert_eq!(planned(&spec(Some(1), 1), &failed(6)).0, None);
        assert_eq!(planned(&spec(Some(1), 1), &failed(7)).0, Some(Finish::TooManyFailures));

        let restarted = |times: i32| {
            let mut pod = Pod::clone(&pod("r", "Running"));
            let container = ContainerStatus { restart_count: times, ..ContainerStatus::default() };
            pod.status.get_or_insert_default().container_statuses = Some(vec![container]);
            [Arc::new(pod)]
        };
        let policy = |limit: i32, policy: &str| {
            let template = PodSpec { restart_policy: Some(policy.into()), ..PodSpec::default() };
            let template = PodTemplateSpec { spec: Some(template), metadata: None };
            JobSpec { template, backoff_limit: Some(limit), ..spec(Some(1), 1) }
        };
        let too_many = (Some(Finish::TooManyFailures), 0, vec!["r".to_owned()]);
        assert_eq!(planned(&policy(2, "OnFailure"), &restarted(1)).0, None);
        assert_eq!(planned(&policy(2, "OnFailure"), &restarted(2)), too_many);
        assert_eq!(planned(&policy(0, "OnFailure"), &restarted(0)).0, None);
        assert_eq!(planned(&policy(0, "OnFailure"), &restarted(1)), too_many);
        assert_eq!(planned(&policy(2, "Never"), &restarted(9)).0, None);

        let (job, spec) = (Job::default(), spec(Some(1), 1));
        let late = plan(&job, &spec, &Count::of(&job, &spec, &running(1)), true);
        assert_eq!((late.finish, late.create, late.delete.len()), (Some(Finish::TooLate), 0, 1));
    }

    #[test]
    fn what_was_counted_and_decided_before_stays_so() {
        let condition = JobCondition {
            type_: "FailureTarget".into(),
            status: "True".into(),
            reason: Some("DeadlineExceeded".into()),
            ..JobCondition::default()
        };
        let known = JobStatus {
            succeeded: Some(4),
            failed: Some(3),
            conditions: Some(vec![condition]),
            ..JobStatus::default()
        };
        let (job, spec) = (Job { status: Some(known), ..Job::default() }, spec(Some(9), 9));
        let all = [succeeded(1), running(2), vec![going("g", "Running"), going("h", "Succeeded")]].concat();
        let count = Count::of(&job, &spec, &all);
        assert_eq!((count.succeeded, count.failed, count.terminating, count.active.len()), (4, 3, 1, 2));
        assert_eq!(plan(&job, &spec, &count, false).finish, Some(Finish::TooLate));
    }

    #[test]
    fn a_pod_ends_with_its_last_container() {
        let ended = |second: i64| {
            let terminated = ContainerStateTerminated { finished_at: Some(at(second)), ..Default::default() };
            let state = ContainerState { terminated: Some(terminated), ..ContainerState::default() };
            ContainerStatus { state: Some(state), ..ContainerStatus::default() }
        };
        let mut pod = Pod::clone(&pod("a", "Failed"));
        assert_eq!(ended_at(&pod), None);
        pod.status.get_or_insert_default().container_statuses =
            Some(vec![ended(3), ended(8), ContainerStatus::default()]);
        assert_eq!(ended_at(&pod), Some(at(8)));
    }
}
