//! Deployments: one ReplicaSet for each template, and the way from one to the next.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod annotations;
mod bounds;
mod plan;
mod rollout;
#[cfg(test)]
mod schedules;
mod sets;
mod status;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use watchkeeper_client::{Error as Failure, Patch, controller_of, key_of};
use watchkeeper_core::Uid;
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Reconciler, Result};

use crate::pods;
use crate::world::World;
use bounds::{Bounds, is_recreate};
use plan::Resize;
use sets::{Sets, size};
use status::Draft;

pub(crate) fn controller(world: &Arc<World>) -> Controller {
    Controller::of::<Deployment>()
        .owns::<ReplicaSet>()
        .reads::<Pod>()
        .hot_loop_limit(u32::MAX)
        .reconcile(Deployments { world: Arc::clone(world) })
}

struct Deployments {
    world: Arc<World>,
}

impl Reconciler<Deployment> for Deployments {
    async fn reconcile(&self, deployment: Arc<Deployment>, cx: Context<Deployment>) -> Result<Action> {
        let mut sync = Sync {
            deployment: &deployment,
            bounds: Bounds::of(&deployment),
            sets: Sets::of(&deployment, owned_sets(&deployment, &cx).await?),
            draft: Draft::new(&deployment, &self.world),
            world: &self.world,
            cx: &cx,
        };
        sync.draft.note_pause();
        let done = sync.run().await;
        let (draft, left) = (&sync.draft.status, sync.draft.deadline(&self.world));
        cx.status().set(|deployment| deployment.status = Some(draft.clone())).await?;
        done?;
        Ok(left.map_or_else(Action::done, Action::requeue_after))
    }
}

async fn owned_sets(
    deployment: &Deployment,
    cx: &Context<Deployment>,
) -> Result<Vec<Arc<ReplicaSet>>, Failure> {
    let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
    let owned = cx.client().list::<ReplicaSet>().owned_by(&Uid::from(uid)).await?;
    Ok(owned.into_iter().filter(|set| controller_of(&**set).is_some_and(|owner| owner.uid == uid)).collect())
}

/// One look at a Deployment.
struct Sync<'a> {
    deployment: &'a Deployment,
    bounds: Bounds,
    sets: Sets,
    draft: Draft<'a>,
    world: &'a World,
    cx: &'a Context<Deployment>,
}

impl Sync<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        if self.sets.new.is_some() {
            self.mark_new().await?;
        }
        if self.deployment.spec.paused == Some(true) {
            self.resize_all(plan::scaling(self.deployment, &self.sets)).await?;
            self.forget().await?;
            self.draft.count(&self.sets);
        } else if plan::was_scaled(self.deployment, &self.sets) {
            self.resize_all(plan::scaling(self.deployment, &self.sets)).await?;
            self.draft.count(&self.sets);
        } else {
            match is_recreate(self.deployment) {
                true => self.recreate().await?,
                false => self.roll().await?,
            }
            self.draft.judge(&self.sets, self.world);
        }
        Ok(())
    }

    async fn roll(&mut self) -> Result<(), Failure> {
        self.new_set().await?;
        let steps = plan::rolling(self.deployment, &self.sets);
        if steps.is_empty() {
            return self.forget_if_complete().await;
        }
        self.resize_all(steps).await
    }

    async fn recreate(&mut self) -> Result<(), Failure> {
        let down = plan::emptying(&self.sets);
        if !down.is_empty() {
            return self.resize_all(down).await;
        }
        if self.old_pods_run().await? {
            return Ok(());
        }
        self.new_set().await?;
        self.resize_all(plan::rolling(self.deployment, &self.sets)).await?;
        self.forget_if_complete().await
    }

    async fn old_pods_run(&self) -> Result<bool, Failure> {
        for set in &self.sets.old {
            let uid = Uid::from(set.metadata.uid.as_deref().unwrap_or_default());
            let pods = self.cx.client().list::<Pod>().owned_by(&uid).await?;
            let counted = set.status.as_ref().is_some_and(|status| status.replicas > 0);
            if counted || !sets::is_observed(set) || pods.iter().any(|pod| !pods::is_finished(pod)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The set of the current template; made, if it is not there.
    async fn new_set(&mut self) -> Result<(), Failure> {
        if self.sets.new.is_some() {
            return Ok(());
        }
        let wanted = plan::new_set(self.deployment, &self.sets)?;
        let name = wanted.metadata.name.clone().unwrap_or_default();
        let size = size(&wanted);
        match self.cx.client().create(&wanted).await {
            Ok(made) => {
                self.draft.note_created(&name);
                if size > 0 {
                    let note = format!("Scaled up replica set {name} from 0 to {size}");
                    self.say(Event::normal("ScalingReplicaSet", "Scale", note));
                }
                self.sets.new = Some(made.object);
            }
            // A set of that name that is not of this template: the next look tries another name.
            Err(error @ Failure::AlreadyExists { .. }) => {
                let count = self.draft.status.collision_count.get_or_insert(0);
                *count = count.saturating_add(1);
                return Err(error);
            }
            Err(error) => {
                let message = format!("Failed to create new replica set \"{name}\": {error}");
                self.draft.note_not_created(&message);
                self.say(Event::warning("ReplicaSetCreateError", "Create", message));
                return Err(error);
            }
        }
        self.mark_new().await
    }

    /// Keeps the annotations of the new set up to date, and the revision of the Deployment.
    async fn mark_new(&mut self) -> Result<(), Failure> {
        let Some(new) = &self.sets.new else { return Ok(()) };
        let (deployment, at_least) = (self.deployment, self.sets.next_revision());
        let key = key_of(&**new);
        let marked = self.cx.client().modify(&key, |set: &mut ReplicaSet| {
            annotations::set_newest(set, deployment, at_least);
            set.spec.min_ready_seconds = deployment.spec.min_ready_seconds;
        });
        let marked = marked.await?.object;
        self.draft.note_found(marked.metadata.name.as_deref().unwrap_or_default());
        let revision = annotations::revision(&marked).to_string();
        self.sets.new = Some(marked);
        let known = deployment.metadata.annotations.as_ref().and_then(|all| all.get(annotations::REVISION));
        if known != Some(&revision) {
            // By way of the status: it is no change of what is wanted, so the generation stays.
            let noted = json!({"metadata": {"uid": deployment.metadata.uid, "annotations": {annotations::REVISION: revision}}});
            self.cx.client().patch_status::<Deployment>(&key_of(deployment), Patch::Merge(noted)).await?;
        }
        Ok(())
    }

    async fn resize_all(&mut self, all: Vec<Resize>) -> Result<(), Failure> {
        for resize in all {
            self.resize(&resize).await?;
        }
        Ok(())
    }

    /// Gives a set its size, and says so if it had another.
    async fn resize(&mut self, resize: &Resize) -> Result<(), Failure> {
        let (before, wanted, bounds) = (size(&resize.set), resize.size, self.bounds);
        let (key, apply) = (key_of(&*resize.set), |set: &mut ReplicaSet| resize.apply(set, bounds));
        let resized = self.cx.client().modify(&key, apply).await?.object;
        let known = self.sets.old.iter_mut().chain(&mut self.sets.new);
        for known in known.filter(|known| known.metadata.uid == resized.metadata.uid) {
            *known = Arc::clone(&resized);
        }
        if before != wanted {
            let name = resized.metadata.name.as_deref().unwrap_or_default();
            let way = if before < wanted { "up" } else { "down" };
            let note = format!("Scaled {way} replica set {name} from {before} to {wanted}");
            self.say(Event::normal("ScalingReplicaSet", "Scale", note));
        }
        Ok(())
    }

    async fn forget_if_complete(&mut self) -> Result<(), Failure> {
        let known = self.deployment.status.as_ref();
        if known.is_some_and(|status| status::is_complete(self.deployment, status)) {
            self.forget().await?;
        }
        Ok(())
    }

    /// Deletes old sets beyond the limit of the history.
    async fn forget(&mut self) -> Result<(), Failure> {
        let limit = self.deployment.spec.revision_history_limit.unwrap_or(10);
        for set in self.sets.forgotten(limit) {
            match self.cx.client().delete(&*set).await {
                Ok(_) | Err(Failure::NotFound { .. } | Failure::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn say(&self, event: Event) {
        self.cx.event(event);
    }
}
