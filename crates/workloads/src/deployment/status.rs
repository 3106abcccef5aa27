//! What a Deployment says of itself.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::deployment::bounds::Bounds;
use crate::deployment::sets::Sets;
use crate::world::World;

/// A condition that says that there is progress, or that it has ended.
const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const FAILURE: &str = "ReplicaFailure";

/// The rollout is complete.
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// A status as it is being written.
pub(crate) struct Draft<'a> {
    deployment: &'a Deployment,
    pub(crate) status: DeploymentStatus,
    now: Time,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(deployment: &'a Deployment, world: &World) -> Self {
        Self { deployment, status: deployment.status.clone().unwrap_or_default(), now: world.now() }
    }

    /// A pause is noted, and so is its end: the time of the pause does not count as a lack of progress.
    pub(crate) fn note_pause(&mut self) {
        let reason = self.find(PROGRESSING).and_then(|condition| condition.reason.clone());
        let is_paused = self.deployment.spec.paused == Some(true);
        if !self.has_deadline() || reason.as_deref() == Some(TIMED_OUT) {
            return;
        }
        match (is_paused, reason.as_deref() == Some(PAUSED)) {
            (true, false) => self.set(PROGRESSING, "Unknown", PAUSED, "Deployment is paused"),
            (false, true) => self.set(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed"),
            _ => {}
        }
    }

    /// A set for the current template was made.
    pub(crate) fn note_created(&mut self, set: &str) {
        if self.has_deadline() {
            self.set(
                PROGRESSING,
                "True",
                "NewReplicaSetCreated",
                &format!("Created new replica set \"{set}\""),
            );
        }
    }

    /// A set for the current template was there already.
    pub(crate) fn note_found(&mut self, set: &str) {
        if self.has_deadline() && self.find(PROGRESSING).is_none() {
            self.set(PROGRESSING, "True", "FoundNewReplicaSet", &format!("Found new replica set \"{set}\""));
        }
    }

    /// A set for the current template could not be made.
    pub(crate) fn note_not_created(&mut self, message: &str) {
        if self.has_deadline() {
            self.set(PROGRESSING, "False", "ReplicaSetCreateError", message);
        }
    }

    /// Counts.
    pub(crate) fn count(&mut self, sets: &Sets) {
        let bounds = Bounds::of(self.deployment);
        let available = sets.sum(|status| status.available_replicas.unwrap_or(0));
        let updated =
            sets.new.as_ref().and_then(|set| set.status.as_ref()).map_or(0, |status| status.replicas);
        let some = |count: i32| (count != 0).then_some(count);
        let status = &mut self.status;
        status.observed_generation = self.deployment.metadata.generation;
        status.replicas = some(sets.sum(|status| status.replicas));
        status.updated_replicas = some(updated);
        status.ready_replicas = some(sets.sum(|status| status.ready_replicas.unwrap_or(0)));
        status.available_replicas = some(available);
        status.unavailable_replicas = some(sets.size().saturating_sub(available).max(0));
        status.terminating_replicas = Some(sets.sum(|status| status.terminating_replicas.unwrap_or(0)));
        if available >= bounds.fewest() {
            let message = "Deployment has minimum availability.";
            self.set(AVAILABLE, "True", "MinimumReplicasAvailable", message);
        } else {
            let message = "Deployment does not have minimum availability.";
            self.set(AVAILABLE, "False", "MinimumReplicasUnavailable", message);
        }
    }

    /// Counts, and says how the rollout goes.
    pub(crate) fn judge(&mut self, sets: &Sets, world: &World) {
        self.count(sets);
        if !self.has_deadline() {
            self.remove(PROGRESSING);
        } else if !self.was_complete() {
            self.judge_progress(sets, world);
        }
        match sets.new.iter().chain(&sets.old).find_map(|set| failure(set)) {
            Some((reason, message)) => self.set(FAILURE, "True", &reason, &message),
            None => self.remove(FAILURE),
        }
    }

    fn judge_progress(&mut self, sets: &Sets, world: &World) {
        let who = match &sets.new {
            Some(set) => format!("ReplicaSet \"{}\"", set.metadata.name.as_deref().unwrap_or_default()),
            None => {
                format!("Deployment \"{}\"", self.deployment.metadata.name.as_deref().unwrap_or_default())
            }
        };
        if self.is_complete() {
            self.set(PROGRESSING, "True", COMPLETE, &format!("{who} has successfully progressed."));
        } else if self.has_progressed() {
            // Every step renews the time, whatever was said before.
            let since = self.find(PROGRESSING).filter(|known| known.status.as_deref() == Some("True"));
            let since = since.and_then(|known| known.last_transition_time.clone());
            self.remove(PROGRESSING);
            self.set(PROGRESSING, "True", "ReplicaSetUpdated", &format!("{who} is progressing."));
            if let (Some(since), Some(condition)) = (since, self.find_mut(PROGRESSING)) {
                condition.last_transition_time = Some(since);
            }
        } else if self.deadline(world).is_some_and(|left| left.is_zero()) {
            self.set(PROGRESSING, "False", TIMED_OUT, &format!("{who} has timed out progressing."));
        }
    }

    /// How long it is until a lack of progress has to be reported, if there is one.
    pub(crate) fn deadline(&self, world: &World) -> Option<std::time::Duration> {
        let seconds = self.deployment.spec.progress_deadline_seconds.filter(|_| self.has_deadline())?;
        let condition = self.find(PROGRESSING)?;
        if self.is_complete() || matches!(condition.reason.as_deref(), Some(COMPLETE | TIMED_OUT | PAUSED)) {
            return None;
        }
        // Until the second after, so that it is past when it is looked at.
        Some(world.until(condition.last_update_time.as_ref()?, i64::from(seconds).saturating_add(1)))
    }

    /// Whether all pods are new and available.
    pub(crate) fn is_complete(&self) -> bool {
        is_complete(self.deployment, &self.status)
    }

    /// Whether that was said already, and is still so.
    fn was_complete(&self) -> bool {
        let reason = self.find(PROGRESSING).and_then(|condition| condition.reason.as_deref());
        reason == Some(COMPLETE) && self.status.replicas == self.status.updated_replicas
    }

    fn has_progressed(&self) -> bool {
        let before = self.deployment.status.clone().unwrap_or_default();
        let now = &self.status;
        let old_pods = |status: &DeploymentStatus| {
            status.replicas.unwrap_or(0).saturating_sub(status.updated_replicas.unwrap_or(0))
        };
        now.updated_replicas > before.updated_replicas
            || old_pods(now) < old_pods(&before)
            || now.ready_replicas > before.ready_replicas
            || now.available_replicas > before.available_replicas
    }

    fn has_deadline(&self) -> bool {
        self.deployment.spec.progress_deadline_seconds.is_some_and(|seconds| seconds != i32::MAX)
    }

    fn find(&self, kind: &str) -> Option<&DeploymentCondition> {
        self.status.conditions.iter().flatten().find(|condition| condition.type_.as_deref() == Some(kind))
    }

    fn find_mut(&mut self, kind: &str) -> Option<&mut DeploymentCondition> {
        self.status.conditions.iter_mut().flatten().find(|condition| condition.type_.as_deref() == Some(kind))
    }

    fn remove(&mut self, kind: &str) {
        if let Some(conditions) = &mut self.status.conditions {
            conditions.retain(|condition| condition.type_.as_deref() != Some(kind));
        }
    }

    /// Sets a condition, last in the list; nothing happens if its status and reason are the same already.
    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let known = self.find(kind);
        let same_status = known.is_some_and(|known| known.status.as_deref() == Some(status));
        if same_status && known.is_some_and(|known| known.reason.as_deref() == Some(reason)) {
            return;
        }
        let since = known.filter(|_| same_status).and_then(|known| known.last_transition_time.clone());
        let condition = DeploymentCondition {
            type_: Some(kind.into()),
            status: Some(status.into()),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_update_time: Some(self.now.clone()),
            last_transition_time: Some(since.unwrap_or_else(|| self.now.clone())),
        };
        self.remove(kind);
        self.status.conditions.get_or_insert_default().push(condition);
    }
}

/// Whether a status says that all pods are of the current template and available.
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let all = [status.updated_replicas, status.replicas, status.available_replicas];
    all.iter().all(|count| count.unwrap_or(0) == wanted)
        && status.observed_generation >= deployment.metadata.generation
}

/// Why a set cannot make or delete pods, if it cannot.
fn failure(set: &ReplicaSet) -> Option<(String, String)> {
    let conditions = set.status.as_ref()?.conditions.as_ref()?;
    let failure = conditions.iter().find(|condition| condition.type_.as_deref() == Some(FAILURE))?;
    Some((failure.reason.clone().unwrap_or_default(), failure.message.clone().unwrap_or_default()))
}
