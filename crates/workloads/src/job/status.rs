//! What a Job says of itself.

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::job::plan::Count;
use crate::pods;
use crate::replicaset::number;
use crate::world::World;

pub(crate) const COMPLETE: &str = "Complete";
pub(crate) const FAILED: &str = "Failed";
/// It will be complete when its last pods are gone.
const SUCCEEDING: &str = "SuccessCriteriaMet";
/// It will have failed when its last pods are gone.
const FAILING: &str = "FailureTarget";
const SUSPENDED: &str = "Suspended";

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Complete,
    TooManyFailures,
    TooLate,
}

impl Finish {
    fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::Complete => ("CompletionsReached", "Reached expected number of succeeded pods"),
            Self::TooManyFailures => ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            Self::TooLate => ("DeadlineExceeded", "Job was active longer than specified deadline"),
        }
    }

    /// The condition that says that it will end, and the one that says that it has.
    fn conditions(self) -> (&'static str, &'static str) {
        if self == Self::Complete { (SUCCEEDING, COMPLETE) } else { (FAILING, FAILED) }
    }
}

fn find<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// When it ended, if it has.
pub(crate) fn finished_at(job: &Job) -> Option<Time> {
    let condition = find(job, COMPLETE).or_else(|| find(job, FAILED))?;
    condition.last_transition_time.clone()
}

/// How it will end, if it has been decided that it fails.
pub(crate) fn failing(job: &Job) -> Option<Finish> {
    let reason = find(job, FAILING)?.reason.as_deref();
    Some(if reason == Some("DeadlineExceeded") { Finish::TooLate } else { Finish::TooManyFailures })
}

/// Since when it runs: it does not while it is suspended, and begins anew then.
pub(crate) fn started_at(job: &Job, spec: &JobSpec, world: &World) -> Option<Time> {
    if spec.suspend == Some(true) {
        return None;
    }
    let known = job.status.as_ref().and_then(|status| status.start_time.clone());
    let resumed = find(job, SUSPENDED).is_some();
    Some(known.filter(|_| !resumed).unwrap_or_else(|| world.now()))
}

pub(crate) fn after(
    job: &Job,
    spec: &JobSpec,
    count: &Count,
    finish: Option<Finish>,
    started: Option<Time>,
    world: &World,
) -> JobStatus {
    let mut status = job.status.clone().unwrap_or_default();
    let some = |count: i32| (count != 0).then_some(count);
    let suspended = spec.suspend == Some(true);
    let now = world.now();
    status.active = some(number(count.active.len()));
    status.ready = Some(number(count.active.iter().filter(|pod| pods::is_ready(pod)).count()));
    status.terminating = Some(count.terminating);
    status.succeeded = some(count.succeeded);
    status.failed = some(count.failed);
    status.completed_indexes = count.completed.clone().filter(|text| !text.is_empty());
    status.start_time = started;
    if let Some(finish) = finish {
        let ((reason, message), (will, has)) = (finish.reason(), finish.conditions());
        set(&mut status, will, true, reason, message, &now);
        if count.active.is_empty() && count.terminating == 0 {
            set(&mut status, has, true, reason, message, &now);
            status.completion_time = (finish == Finish::Complete).then_some(now);
        }
    } else if suspended {
        set(&mut status, SUSPENDED, true, "JobSuspended", "Job suspended", &now);
    } else if find(job, SUSPENDED).is_some() {
        set(&mut status, SUSPENDED, false, "JobResumed", "Job resumed", &now);
    }
    status
}

/// Sets a condition, unless it is so already.
fn set(status: &mut JobStatus, kind: &str, is_true: bool, reason: &str, message: &str, now: &Time) {
    let value = if is_true { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().any(|known| known.type_ == kind && known.status == value) {
        return;
    }
    conditions.retain(|known| known.type_ != kind);
    conditions.push(JobCondition {
        type_: kind.into(),
        status: value.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_probe_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    });
}

/// The conditions that were not said before.
pub(crate) fn new_conditions<'a>(
    job: &'a Job,
    status: &'a JobStatus,
) -> impl Iterator<Item = &'a JobCondition> {
    let known = |one: &JobCondition| {
        let before = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        before.into_iter().any(|other| other.type_ == one.type_ && other.status == one.status)
    };
    status.conditions.iter().flatten().filter(move |one| !known(one))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use k8s_openapi::jiff::Timestamp;

    use crate::timing::Timing;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap_or_default())
    }

    fn world() -> World {
        World::new(Timing::instant(), Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(100)))
    }

    fn job(kind: &str, status: &str, reason: &str) -> Job {
        let condition = JobCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            last_transition_time: Some(at(9)),
            ..JobCondition::default()
        };
        let status =
            JobStatus { start_time: Some(at(5)), conditions: Some(vec![condition]), ..JobStatus::default() };
        Job { status: Some(status), ..Job::default() }
    }

    fn suspended(is: bool) -> JobSpec {
        JobSpec { suspend: Some(is), ..JobSpec::default() }
    }

    /// The status after a look, as type, status and reason of its conditions.
    fn said(job: &Job, spec: &JobSpec, terminating: i32, finish: Option<Finish>) -> (JobStatus, Vec<String>) {
        let mut count = Count::of(job, spec, &[]);
        count.terminating = terminating;
        let status = after(job, spec, &count, finish, started_at(job, spec, &world()), &world());
        let all =
            status.conditions.iter().flatten().map(|one| {
                format!("{}={} {}", one.type_, one.status, one.reason.as_deref().unwrap_or_default())
            });
        let all = all.collect();
        (status, all)
    }

    #[test]
    fn a_job_begins_when_it_is_first_seen_and_anew_when_it_is_resumed() {
        let started = |job: &Job, is| started_at(job, &suspended(is), &world());
        assert_eq!(started(&Job::default(), false), Some(at(100)));
        assert_eq!(started(&Job::default(), true), None);
        assert_eq!(started(&job("Other", "True", ""), false), Some(at(5)));
        assert_eq!(started(&job("Suspended", "True", ""), false), Some(at(100)));
        assert_eq!(started(&job("Suspended", "False", ""), false), Some(at(5)));
    }

    #[test]
    fn a_suspension_and_its_end_are_said_and_nothing_is_said_of_none() {
        let of = |job: &Job, is| said(job, &suspended(is), 0, None).1;
        assert_eq!(of(&Job::default(), false), [""; 0]);
        assert_eq!(of(&Job::default(), true), ["Suspended=True JobSuspended"]);
        assert_eq!(of(&job("Suspended", "True", "x"), false), ["Suspended=False JobResumed"]);
        // What is so already is left as it is.
        assert_eq!(of(&job("Suspended", "True", "x"), true), ["Suspended=True x"]);
    }

    #[test]
    fn a_job_has_ended_when_its_last_pod_is_gone() {
        let of = |terminating, finish| said(&Job::default(), &suspended(false), terminating, Some(finish));
        let (status, all) = of(1, Finish::Complete);
        assert_eq!(all, ["SuccessCriteriaMet=True CompletionsReached"]);
        assert_eq!(status.completion_time, None);
        let (status, all) = of(0, Finish::Complete);
        assert_eq!(all, ["SuccessCriteriaMet=True CompletionsReached", "Complete=True CompletionsReached"]);
        assert_eq!(status.completion_time, Some(at(100)));
        let (status, all) = of(0, Finish::TooLate);
        assert_eq!(all, ["FailureTarget=True DeadlineExceeded", "Failed=True DeadlineExceeded"]);
        assert_eq!(status.completion_time, None);
    }

    #[test]
    fn the_end_is_read_as_it_was_written() {
        assert_eq!(finished_at(&job("Complete", "True", "")), Some(at(9)));
        assert_eq!(finished_at(&job("Failed", "True", "")), Some(at(9)));
        assert_eq!(finished_at(&job("Failed", "False", "")), None);
        assert_eq!(failing(&job("FailureTarget", "True", "DeadlineExceeded")), Some(Finish::TooLate));
        assert_eq!(failing(&job("FailureTarget", "True", "other")), Some(Finish::TooManyFailures));
        assert_eq!(failing(&job("Failed", "True", "other")), None);
        let known = job("Suspended", "True", "");
        let (status, _) = said(&known, &suspended(false), 0, Some(Finish::Complete));
        let new: Vec<_> = new_conditions(&known, &status).map(|one| one.type_.as_str()).collect();
        assert_eq!(new, ["SuccessCriteriaMet", "Complete"]);
    }
}
