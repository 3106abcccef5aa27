//! Deployments: one ReplicaSet for each template, and the way from one to the next.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod annotations;
mod bounds;
mod rollout;
mod sets;
mod status;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use watchkeeper_client::{Error as Failure, controller_of, controller_reference, key_of};
use watchkeeper_core::Uid;
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Reconciler, Result};

use crate::fingerprint::fingerprint;
use crate::pods;
use crate::world::World;
use bounds::{Bounds, is_recreate};
use sets::{HASH, Sets, size};
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
    async fn reconcile(&self, deployment: Arc<Deployment>, cx: Context) -> Result<Action> {
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
        cx.status(&*deployment).set(|deployment| deployment.status = Some(draft.clone())).await?;
        done?;
        Ok(left.map_or_else(Action::done, Action::requeue_after))
    }
}

async fn owned_sets(deployment: &Deployment, cx: &Context) -> Result<Vec<Arc<ReplicaSet>>, Failure> {
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
    cx: &'a Context,
}

impl Sync<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        if self.sets.new.is_some() {
            self.mark_new().await?;
        }
        if self.deployment.spec.paused == Some(true) {
            self.scale().await?;
            self.forget().await?;
            self.draft.count(&self.sets);
        } else if self.was_scaled() {
            self.scale().await?;
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

    /// Whether the Deployment has another size than when its sets were sized.
    fn was_scaled(&self) -> bool {
        let mut active = self.sets.all().filter(|set| size(set) > 0);
        active.any(|set| annotations::desired(set).is_some_and(|desired| desired != self.bounds.replicas))
    }

    /// Gives the sets their sizes for a Deployment that has another one now, without moving the rollout.
    async fn scale(&mut self) -> Result<(), Failure> {
        if let Some(only) = self.sets.active_or_latest().cloned() {
            return self.resize(&only, self.bounds.replicas, false).await.map(drop);
        }
        if self.is_saturated() {
            for old in self.sets.old.clone() {
                self.resize(&old, 0, false).await?;
            }
        } else if !is_recreate(self.deployment) {
            for (set, size) in rollout::proportional(self.deployment, &self.sets) {
                self.resize(&set, size, true).await?;
            }
        }
        Ok(())
    }

    /// Whether the new set has all the pods that it can have.
    fn is_saturated(&self) -> bool {
        let wanted = self.bounds.replicas;
        self.sets.new.as_ref().is_some_and(|set| {
            size(set) == wanted && annotations::desired(set) == Some(wanted) && sets::available(set) == wanted
        })
    }

    async fn roll(&mut self) -> Result<(), Failure> {
        let new = self.new_set().await?;
        if self.resize(&new, rollout::new_size(self.deployment, &self.sets, size(&new)), false).await? {
            return Ok(());
        }
        let sizes = rollout::old_sizes(self.bounds, &self.sets, &new);
        let mut scaled_down = false;
        for (set, size) in self.sets.old.clone().iter().zip(sizes) {
            scaled_down |= self.resize(set, size, false).await?;
        }
        if !scaled_down {
            self.forget_if_complete().await?;
        }
        Ok(())
    }

    async fn recreate(&mut self) -> Result<(), Failure> {
        let mut scaled_down = false;
        for set in self.sets.old.clone() {
            scaled_down |= self.resize(&set, 0, false).await?;
        }
        if scaled_down || self.old_pods_run().await? {
            return Ok(());
        }
        let new = self.new_set().await?;
        self.resize(&new, self.bounds.replicas, false).await?;
        self.forget_if_complete().await
    }

    async fn old_pods_run(&self) -> Result<bool, Failure> {
        for set in &self.sets.old {
            let uid = Uid::from(set.metadata.uid.as_deref().unwrap_or_default());
            let pods = self.cx.client().list::<Pod>().owned_by(&uid).await?;
            let counted = set.status.as_ref().is_some_and(|status| status.replicas > 0);
            if counted || pods.iter().any(|pod| !pods::is_finished(pod)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The set of the current template; made, if it is not there.
    async fn new_set(&mut self) -> Result<Arc<ReplicaSet>, Failure> {
        if let Some(new) = &self.sets.new {
            return Ok(Arc::clone(new));
        }
        let wanted = self.described()?;
        let name = wanted.metadata.name.clone().unwrap_or_default();
        let size = size(&wanted);
        match self.cx.client().create(&wanted).await {
            Ok(made) => {
                self.draft.note_created(&name);
                if size > 0 {
                    let note = format!("Scaled up replica set {name} from 0 to {size}");
                    self.say(Event::normal("ScalingReplicaSet", "Scale", note));
                }
                self.sets.new = Some(Arc::new(made));
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
        self.mark_new().await?;
        self.sets.new.clone().ok_or(Failure::NotFound { object: name })
    }

    fn described(&self) -> Result<ReplicaSet, Failure> {
        let spec = &self.deployment.spec;
        let name = self.deployment.metadata.name.as_deref().unwrap_or_default();
        let hash = fingerprint(
            &spec.template,
            self.deployment.status.as_ref().and_then(|status| status.collision_count),
        );
        let mut template = spec.template.clone();
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH.into(), hash.clone());
        let labels = labels.clone();
        let mut selector = spec.selector.clone();
        selector.match_labels.get_or_insert_default().insert(HASH.into(), hash.clone());
        let longest = 252_usize.saturating_sub(hash.len());
        let mut set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!("{}-{hash}", &name[..name.len().min(longest)])),
                namespace: self.deployment.metadata.namespace.clone(),
                labels: Some(labels),
                owner_references: Some(vec![controller_reference(self.deployment)?]),
                ..ObjectMeta::default()
            },
            spec: ReplicaSetSpec {
                replicas: Some(rollout::new_size(self.deployment, &self.sets, 0)),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(template),
            },
            status: None,
        };
        annotations::set_newest(&mut set, self.deployment, self.sets.next_revision());
        annotations::set_sizes(&mut set, self.bounds);
        Ok(set)
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
            let note = |deployment: &mut Deployment| {
                let annotations = deployment.metadata.annotations.get_or_insert_default();
                annotations.insert(annotations::REVISION.into(), revision.clone());
            };
            self.cx.client().modify(&key_of(deployment), note).await?;
        }
        Ok(())
    }

    /// Gives a set another size, and says so. With `always`, notes the size of the Deployment also if that of the set stays.
    async fn resize(&mut self, set: &ReplicaSet, wanted: i32, always: bool) -> Result<bool, Failure> {
        let before = size(set);
        if before == wanted && !always {
            return Ok(false);
        }
        let (bounds, key) = (self.bounds, key_of(set));
        let resized = self.cx.client().modify(&key, |set: &mut ReplicaSet| {
            set.spec.replicas = Some(wanted);
            annotations::set_sizes(set, bounds);
        });
        let resized = resized.await?.object;
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
        Ok(before != wanted)
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
        self.cx.event(self.deployment, event);
    }
}
