//! Jobs: pods that come to an end, until enough of them have.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod indexes;
mod plan;
mod status;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::{Error as Failure, Propagation};
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Predicate, Reconciler, Result, Watch};

use crate::pods;
use crate::replicaset::claim;
use crate::template::generated_pod_of;
use crate::world::World;
use plan::{Count, Plan, plan};
use status::{COMPLETE, FAILED};

/// How many pods are made in one reconcile; as in kube-controller-manager.
const BURST: usize = 500;
/// How many of them are made at the same time.
const AT_ONCE: usize = 16;

pub(crate) fn controller(world: &Arc<World>) -> Controller {
    let pods = Watch::<Pod>::owned_by::<Job>().filter(Predicate::when(pods::concerns_owner));
    Controller::of::<Job>().watch(pods).hot_loop_limit(u32::MAX).reconcile(Jobs { world: Arc::clone(world) })
}

struct Jobs {
    world: Arc<World>,
}

impl Reconciler<Job> for Jobs {
    async fn reconcile(&self, job: Arc<Job>, cx: Context<Job>) -> Result<Action> {
        let Some(spec) = &job.spec else { return Ok(Action::done()) };
        let elsewhere = spec.managed_by.as_deref().is_some_and(|name| name != "kubernetes.io/job-controller");
        let Some(selector) = spec.selector.as_ref().filter(|_| !elsewhere) else { return Ok(Action::done()) };
        if let Some(finished) = status::finished_at(&job) {
            return self.expire(&job, spec, &finished, &cx).await;
        }
        let all = claim(&*job, selector, cx.client()).await?;
        let mut count = Count::of(&job, spec, &all);
        let started = status::started_at(&job, spec, &self.world);
        let running_for =
            started.as_ref().map(|time| self.world.until(time, spec.active_deadline_seconds.unwrap_or(0)));
        let is_late =
            spec.active_deadline_seconds.is_some() && running_for.is_some_and(|left| left.is_zero());
        let Plan { finish, create, delete } = plan(&job, spec, &count, is_late);

        let retry = self.retry_after(&job, &count, &all).filter(|_| create > 0);
        if retry.is_none() && create > 0 {
            let made = self.create(&job, spec, &all, create.min(BURST), &cx).await?;
            count.active.extend(made);
        }
        for pod in delete {
            unless_gone(cx.client().delete(&*pod).await)?;
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            cx.event(Event::normal("SuccessfulDelete", "Delete", format!("Deleted pod: {name}")));
            count.active.retain(|other| other.metadata.uid != pod.metadata.uid);
            count.terminating = count.terminating.saturating_add(1);
        }
        let status = status::after(&job, spec, &count, finish, started, &self.world);
        self.say(&job, &status, &cx);
        cx.status().set(|job| job.status = Some(status.clone())).await?;
        let deadline = running_for.filter(|_| spec.active_deadline_seconds.is_some() && finish.is_none());
        let next = [deadline, retry].into_iter().flatten().min();
        Ok(next.map_or_else(Action::done, Action::requeue_after))
    }

    async fn deleted(&self, last: Arc<Job>, _cx: Context<Job>) -> Result<Action> {
        self.world.since.forget(last.metadata.uid.as_deref().unwrap_or_default());
        Ok(Action::done())
    }
}

impl Jobs {
    /// A Job that has ended goes when its time is over, if it has one.
    async fn expire(
        &self,
        job: &Job,
        spec: &JobSpec,
        finished: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
        cx: &Context<Job>,
    ) -> Result<Action> {
        let Some(ttl) = spec.ttl_seconds_after_finished else { return Ok(Action::done()) };
        let left = self.world.until(finished, i64::from(ttl));
        if !left.is_zero() {
            return Ok(Action::requeue_after(left));
        }
        unless_gone(cx.client().delete(job).propagation(Propagation::Background).await)?;
        Ok(Action::done())
    }

    /// How long to wait before another pod is made, because the last one has failed.
    fn retry_after(&self, job: &Job, count: &Count, all: &[Arc<Pod>]) -> Option<Duration> {
        let failures = u32::try_from(count.failed).ok().filter(|failures| *failures > 0)?;
        let last = all
            .iter()
            .filter(|pod| pods::phase(pod) == "Failed")
            .filter_map(|pod| plan::ended_at(pod))
            .max()?;
        let wait = self
            .world
            .timing
            .restart
            .saturating_mul(1 << failures.saturating_sub(1).min(16))
            .min(self.world.timing.restart.saturating_mul(60));
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let left = self.world.since.left(uid, ("retry", count.failed), wait, self.world.age(&last));
        (!left.is_zero()).then_some(left)
    }

    async fn create(
        &self,
        job: &Job,
        spec: &JobSpec,
        all: &[Arc<Pod>],
        count: usize,
        cx: &Context<Job>,
    ) -> Result<Vec<Arc<Pod>>, Failure> {
        let described = generated_pod_of(job, &spec.template)?;
        // Those that are made wake the job, which goes on then.
        let mut wanted = vec![described; count.min(BURST)];
        if indexes::is_indexed(spec) {
            let missing: Vec<i32> = indexes::missing(spec, all).take(wanted.len()).collect();
            wanted.truncate(missing.len());
            for (pod, index) in wanted.iter_mut().zip(missing) {
                indexes::give(pod, job, index);
            }
        }
        let one = |pod: Pod| async move {
            let made = cx.client().create(&pod).await?;
            let name = made.metadata.name.as_deref().unwrap_or_default();
            cx.event(Event::normal("SuccessfulCreate", "Create", format!("Created pod: {name}")));
            Ok::<_, Failure>(made.object)
        };
        let mut made = Vec::with_capacity(wanted.len());
        let mut pods = futures_util::stream::iter(wanted).map(one).buffer_unordered(AT_ONCE);
        while let Some(pod) = pods.next().await {
            made.push(pod?);
        }
        Ok(made)
    }

    fn say(&self, job: &Job, status: &k8s_openapi::api::batch::v1::JobStatus, cx: &Context<Job>) {
        for condition in status::new_conditions(job, status) {
            let (reason, message) =
                (condition.reason.clone().unwrap_or_default(), condition.message.clone().unwrap_or_default());
            match (condition.type_.as_str(), condition.status.as_str()) {
                (COMPLETE, _) => cx.event(Event::normal("Completed", "Complete", "Job completed")),
                (FAILED, _) => cx.event(Event::warning(reason, "Fail", message)),
                ("Suspended", "True") => {
                    cx.event(Event::normal("Suspended", "Suspend", "Job suspended"));
                }
                ("Suspended", _) => cx.event(Event::normal("Resumed", "Resume", "Job resumed")),
                _ => {}
            }
        }
    }
}

fn unless_gone(result: Result<bool, Failure>) -> Result<(), Failure> {
    match result {
        Ok(_) | Err(Failure::NotFound { .. } | Failure::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
