//! ReplicaSets: as many pods as they say.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod claim;
mod ranking;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::Error as Failure;
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Predicate, Reconciler, Result, Watch};

pub(crate) use claim::claim;

use crate::world::World;
use crate::{labels, pods, template};

/// How many pods are made or deleted before the set is looked at again, and how many of them at the same time.
const BURST: usize = 500;
const AT_ONCE: usize = 16;

pub(crate) fn controller(world: &Arc<World>) -> Controller {
    let pods = Watch::<Pod>::owned_by::<ReplicaSet>().filter(Predicate::when(pods::concerns_owner));
    Controller::of::<ReplicaSet>()
        .watch(pods)
        // A set of a thousand pods is woken by each of them.
        .hot_loop_limit(u32::MAX)
        .reconcile(ReplicaSets { world: Arc::clone(world) })
}

struct ReplicaSets {
    world: Arc<World>,
}

impl Reconciler<ReplicaSet> for ReplicaSets {
    async fn reconcile(&self, set: Arc<ReplicaSet>, cx: Context<ReplicaSet>) -> Result<Action> {
        let all = claim(&*set, &set.spec.selector, cx.client()).await?;
        let (active, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|pod| pods::is_active(pod));
        let managed = match plan(&set, &active) {
            Plan::Create(count) => create(&set, count, &cx).await,
            Plan::Delete(going) => delete(going, &cx).await,
        };
        // What it has done is in the next look's count; the changed pods wake it.
        let terminating = rest.iter().filter(|pod| pods::is_terminating(pod)).count();
        let failure = managed.as_ref().err().map(ToString::to_string);
        let status = status(&set, &active, terminating, failure, &self.world);
        cx.status().set(|set| set.status = Some(status.clone())).await?;
        managed?;
        Ok(self.next_look(&set, &active))
    }
}

impl ReplicaSets {
    /// A pod becomes available by the passing of time alone.
    fn next_look(&self, set: &ReplicaSet, active: &[Arc<Pod>]) -> Action {
        let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
        match until_available(active.iter().map(|pod| &**pod), min_ready, &self.world) {
            Some(wait) => Action::requeue_after(wait),
            None => Action::done(),
        }
    }
}

/// When the next of these pods will have been ready for so many seconds, if one is on its way there.
pub(crate) fn until_available<'a>(
    pods: impl Iterator<Item = &'a Pod>,
    min_ready: i32,
    world: &World,
) -> Option<Duration> {
    let waits = pods.filter_map(pods::ready_since).map(|since| world.until(since, i64::from(min_ready)));
    waits.filter(|wait| min_ready > 0 && !wait.is_zero()).min()
}

/// What a set does about its pods.
#[derive(Debug)]
pub(crate) enum Plan {
    Create(usize),
    Delete(Vec<Arc<Pod>>),
}

/// As many pods as the set says, of those that neither have ended nor are asked to.
pub(crate) fn plan(set: &ReplicaSet, active: &[Arc<Pod>]) -> Plan {
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    match wanted.checked_sub(active.len()) {
        Some(missing) if missing > 0 => Plan::Create(missing.min(BURST)),
        _ => Plan::Delete(ranking::first_to_go(active, active.len().saturating_sub(wanted).min(BURST))),
    }
}

async fn create(set: &ReplicaSet, count: usize, cx: &Context<ReplicaSet>) -> Result<(), Failure> {
    let Some(template) = &set.spec.template else { return Ok(()) };
    let pod = &template::generated_pod_of(set, template)?;
    // One first: if it cannot be made, neither can the others.
    let one = |_| async move {
        match cx.client().create(pod).await {
            Ok(made) => {
                let name = made.metadata.name.as_deref().unwrap_or_default();
                cx.event(Event::normal("SuccessfulCreate", "Create", format!("Created pod: {name}")));
                Ok(())
            }
            Err(error) => {
                cx.event(Event::warning("FailedCreate", "Create", format!("Error creating: {error}")));
                Err(error)
            }
        }
    };
    one(0).await?;
    let mut rest = futures_util::stream::iter(1..count).map(one).buffer_unordered(AT_ONCE);
    while let Some(made) = rest.next().await {
        made?;
    }
    Ok(())
}

async fn delete(going: Vec<Arc<Pod>>, cx: &Context<ReplicaSet>) -> Result<(), Failure> {
    let one = |pod: Arc<Pod>| async move {
        match cx.client().delete(&*pod).await {
            Ok(_) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                cx.event(Event::normal("SuccessfulDelete", "Delete", format!("Deleted pod: {name}")));
                Ok(())
            }
            Err(Failure::NotFound { .. } | Failure::Conflict { .. }) => Ok(()),
            Err(error) => {
                cx.event(Event::warning("FailedDelete", "Delete", format!("Error deleting: {error}")));
                Err(error)
            }
        }
    };
    let mut all = futures_util::stream::iter(going).map(one).buffer_unordered(AT_ONCE);
    while let Some(gone) = all.next().await {
        gone?;
    }
    Ok(())
}

/// What a set says of itself.
pub(crate) fn status(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    terminating: usize,
    failure: Option<String>,
    world: &World,
) -> ReplicaSetStatus {
    let count = |is: &dyn Fn(&Pod) -> bool| number(active.iter().filter(|pod| is(pod)).count());
    let of_template = set.spec.template.as_ref().and_then(|template| template.metadata.as_ref());
    let wanted_labels = of_template.and_then(|metadata| metadata.labels.as_ref());
    let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
    let some = |count: i32| (count != 0).then_some(count);
    ReplicaSetStatus {
        replicas: number(active.len()),
        fully_labeled_replicas: some(count(&|pod| {
            labels::contains(pod.metadata.labels.as_ref(), wanted_labels)
        })),
        ready_replicas: some(count(&pods::is_ready)),
        available_replicas: some(count(&|pod| pods::is_available(pod, min_ready, world))),
        terminating_replicas: Some(number(terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, active.len(), failure, world),
    }
}

/// Only failures have a condition, and it is gone with them.
fn conditions(
    set: &ReplicaSet,
    active: usize,
    failure: Option<String>,
    world: &World,
) -> Option<Vec<ReplicaSetCondition>> {
    let known = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let is_failure = |condition: &ReplicaSetCondition| condition.type_.as_deref() == Some("ReplicaFailure");
    let mut conditions = known;
    match failure {
        None => conditions.retain(|condition| !is_failure(condition)),
        Some(_) if conditions.iter().any(is_failure) => {}
        Some(message) => {
            let too_few = active < usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
            conditions.push(ReplicaSetCondition {
                type_: Some("ReplicaFailure".into()),
                status: Some("True".into()),
                reason: Some(if too_few { "FailedCreate" } else { "FailedDelete" }.into()),
                message: Some(message),
                last_transition_time: Some(world.now()),
            });
        }
    }
    (!conditions.is_empty()).then_some(conditions)
}

pub(crate) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
