//! StatefulSets: pods with names that stay, one after the other.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod member;
mod plan;
mod status;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use watchkeeper_client::{Error as Failure, key_of};
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Predicate, Reconciler, Result, Watch};

use crate::pods;
use crate::replicaset::{claim, until_available};
use crate::revisions::{self, Revisions};
use crate::world::World;
use plan::{Act, plan};

pub(crate) fn controller(world: &Arc<World>) -> Controller {
    let pods = Watch::<Pod>::owned_by::<StatefulSet>().filter(Predicate::when(pods::concerns_owner));
    Controller::of::<StatefulSet>()
        .watch(pods)
        .reads::<ControllerRevision>()
        .reads::<PersistentVolumeClaim>()
        .hot_loop_limit(u32::MAX)
        .reconcile(StatefulSets { world: Arc::clone(world) })
}

struct StatefulSets {
    world: Arc<World>,
}

impl Reconciler<StatefulSet> for StatefulSets {
    async fn reconcile(&self, set: Arc<StatefulSet>, cx: Context<StatefulSet>) -> Result<Action> {
        let known = set.status.clone().unwrap_or_default();
        let revisions = Revisions::of(&*set, &set.spec.template, known.collision_count, cx.client()).await?;
        let current = revisions.named(known.current_revision.as_deref()).unwrap_or(&revisions.newest);
        let pods = claim(&*set, &set.spec.selector, cx.client()).await?;
        let (current_name, update_name) = (revisions::name(current), revisions::name(&revisions.newest));
        let acts = plan(&set, &pods, update_name, &self.world);
        let status = status::count(&set, &pods, &acts, (current_name, update_name), &self.world);
        for act in acts {
            match act {
                Act::Create(ordinal) => {
                    let is_current = plan::is_of_current(&set, ordinal);
                    let revision = if is_current { current } else { &revisions.newest };
                    create(&set, ordinal, revision, &cx).await?;
                }
                Act::Delete(pod) => delete(&set, &pod, &cx).await?,
            }
        }
        cx.status().set(|set| set.status = Some(status.clone())).await?;
        let mut needed: Vec<&str> = pods.iter().map(|pod| member::revision(pod)).collect();
        needed.extend([current_name, update_name]);
        revisions.truncate(set.spec.revision_history_limit.unwrap_or(10), &needed, cx.client()).await?;
        let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
        let next = until_available(pods.iter().map(|pod| &**pod), min_ready, &self.world);
        Ok(next.map_or_else(Action::done, Action::requeue_after))
    }
}

async fn create(
    set: &StatefulSet,
    ordinal: i32,
    revision: &ControllerRevision,
    cx: &Context<StatefulSet>,
) -> Result<(), Failure> {
    let template = revisions::template_of(revision).unwrap_or_else(|| set.spec.template.clone());
    let pod = member::pod(set, ordinal, &template, revisions::name(revision))?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let owner = set.metadata.name.as_deref().unwrap_or_default();
    for claim in member::claims(set, ordinal) {
        if cx.client().get::<PersistentVolumeClaim>(&key_of(&claim)).await?.is_some() {
            continue;
        }
        match cx.client().create(&claim).await {
            Ok(_) => {
                let claim = claim.metadata.name.as_deref().unwrap_or_default();
                let note = format!("create Claim {claim} Pod {name} in StatefulSet {owner} success");
                cx.event(Event::normal("SuccessfulCreate", "Create", note));
            }
            Err(Failure::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    match cx.client().create(&pod).await {
        Ok(_) => {
            let note = format!("create Pod {name} in StatefulSet {owner} successful");
            cx.event(Event::normal("SuccessfulCreate", "Create", note));
            Ok(())
        }
        Err(error) => {
            let note = format!("create Pod {name} in StatefulSet {owner} failed error: {error}");
            cx.event(Event::warning("FailedCreate", "Create", note));
            Err(error)
        }
    }
}

async fn delete(set: &StatefulSet, pod: &Pod, cx: &Context<StatefulSet>) -> Result<(), Failure> {
    match cx.client().delete(pod).await {
        Ok(_) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let owner = set.metadata.name.as_deref().unwrap_or_default();
            let note = format!("delete Pod {name} in StatefulSet {owner} successful");
            cx.event(Event::normal("SuccessfulDelete", "Delete", note));
            Ok(())
        }
        Err(Failure::NotFound { .. } | Failure::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
