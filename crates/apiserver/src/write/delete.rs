//! Deleting objects.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use watchkeeper_storage::{Commit, Error};

use super::{Part, Place, encode, version};
use crate::failure::{self, Failure};
use crate::filter::Filter;
use crate::list::Listed;
use crate::meta;
use crate::request::delete_options::{DeleteOptions, Propagation};
use crate::request::list_options::ListOptions;
use crate::resource::Resource;
use crate::server::Server;
use crate::time;

/// Holds an object until its dependents are told that they have no owner any more.
pub(crate) const ORPHAN: &str = "orphan";

/// Holds an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// How many objects of a collection are deleted together.
const TOGETHER: usize = 64;

/// What became of an object that was to be deleted.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Value),
    /// It is marked, and goes when nothing holds it any more.
    Marked(Value),
}

/// What has to happen to an object.
enum Step {
    Remove(Value),
    Mark(Value),
    Wait,
}

impl Server {
    /// Deletes an object, or marks it to be deleted if something holds it.
    pub(crate) async fn delete(&self, place: &Place, options: &DeleteOptions) -> Result<Deleted, Failure> {
        let key = place.key();
        let resource = &place.resource;
        for _ in 0..super::ATTEMPTS {
            let Some(entry) = self.storage.get(&key, None).await?.entry else {
                return Err(place.not_found());
            };
            let current = resource.read(&entry)?;
            check_preconditions(resource, &current, &version(&entry), options)?;
            self.before_delete(place, &current)?;
            let (commit, deleted) = match self.step(resource, current.clone(), options) {
                Step::Wait => return Ok(Deleted::Marked(current)),
                Step::Remove(object) => (Commit::new().delete(key.as_str()), Deleted::Gone(object)),
                Step::Mark(object) => {
                    (Commit::new().put(key.as_str(), encode(resource, &object)?), Deleted::Marked(object))
                }
            };
            if options.dry_run {
                return Ok(deleted);
            }
            let commit = commit.unchanged(key.as_str(), entry.modified);
            let marked = match &deleted {
                Deleted::Gone(_) => None,
                Deleted::Marked(object) => Some(object),
            };
            match self.commit(resource, &key, commit, marked, None).await {
                Err(Error::Conflict { .. }) => continue,
                Err(error) => return Err(error.into()),
                Ok(committed) => {
                    self.after_write(resource, committed.revision).await;
                    if resource.is_core("services") && matches!(deleted, Deleted::Gone(_)) {
                        self.delete_endpoints(place).await;
                    }
                    return Ok(deleted.at(committed.revision));
                }
            }
        }
        Err(Failure::modified(resource.subject(), &place.name))
    }

    fn step(&self, resource: &Resource, mut object: Value, options: &DeleteOptions) -> Step {
        let grace = resource.grace_period(&object, options.grace_period_seconds);
        let was_deleting = meta::is_deleting(&object);
        if was_deleting {
            let left =
                meta::get(&object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
            // A deletion that is under way can only be hastened.
            if left > 0 && options.grace_period_seconds.is_none_or(|asked| asked >= left) {
                return Step::Wait;
            }
        }
        let finalizers = finalizers_for(&object, propagation(options).or(resource.usual_propagation()));
        let unchanged = meta::finalizers(&object) == finalizers;
        meta::set_finalizers(&mut object, finalizers);
        resource.prepare_delete(&mut object, &self.options.clock.stamp());
        let held = !meta::finalizers(&object).is_empty() || resource.is_held(&object);
        match grace.filter(|seconds| *seconds > 0) {
            Some(seconds) => self.mark(&mut object, seconds),
            None if !held => {
                if grace.is_some() {
                    self.mark(&mut object, 0);
                }
                return Step::Remove(object);
            }
            None if was_deleting && unchanged => return Step::Wait,
            // It says so already, in its own way.
            None if meta::is_deleting(&object) && !was_deleting => {}
            None => self.mark(&mut object, 0),
        }
        Step::Mark(object)
    }

    /// Says in an object that it will be deleted, and when.
    fn mark(&self, object: &mut Value, grace: i64) {
        let wait = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let at = time::after(self.options.clock.now(), wait);
        if !meta::is_deleting(object) && meta::generation(object) > 0 {
            meta::set(object, "generation", meta::generation(object).saturating_add(1));
        }
        let earlier = time::parse(meta::text(object, "deletionTimestamp")).is_some_and(|marked| marked <= at);
        if !earlier {
            meta::set(object, "deletionTimestamp", time::stamp(at));
        }
        meta::set(object, "deletionGracePeriodSeconds", grace);
    }

    /// Deletes all objects that match.
    pub(crate) async fn delete_collection(
        &self,
        resource: &std::sync::Arc<Resource>,
        namespace: Option<&str>,
        filter: &Filter,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Listed, Failure> {
        let listed = self.list(resource, namespace, filter, list).await?;
        let places = listed.entries.iter().map(|entry| Place::of(resource, &entry.key)).collect();
        self.delete_all(places, options).await?;
        Ok(listed)
    }

    /// Deletes objects on behalf of the server itself, in their order but many at a time: their commits share syncs.
    pub(crate) async fn delete_all(
        &self,
        places: Vec<Place>,
        options: &DeleteOptions,
    ) -> Result<(), Failure> {
        let deletions =
            places.into_iter().map(|place| async move { self.delete_internal(&place, options).await });
        stream::iter(deletions).buffered(TOGETHER).try_collect::<()>().await
    }

    /// The Endpoints of a Service go with it.
    async fn delete_endpoints(&self, service: &Place) {
        if let Some(resource) = self.registry().find("", "v1", "endpoints") {
            let place = Place { resource, ..service.clone() };
            // The Service is gone; whoever deleted it can do nothing about this.
            if let Err(failure) = Box::pin(self.delete_internal(&place, &DeleteOptions::default())).await {
                tracing::warn!(service = %place.name, failure = %failure.message, "Endpoints could not be deleted");
            }
        }
    }

    /// Deletes an object on behalf of the server itself; one that is gone already is no failure.
    pub(crate) async fn delete_internal(
        &self,
        place: &Place,
        options: &DeleteOptions,
    ) -> Result<(), Failure> {
        match self.delete(place, options).await {
            Err(failure) if failure.reason == "NotFound" => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Ok(()),
        }
    }

    /// Takes a finalizer off an object; an object that is gone already is no failure.
    pub(crate) async fn remove_finalizer(&self, place: &Place, finalizer: &str) -> Result<(), Failure> {
        let change = |object: &mut Value| {
            let left = meta::finalizers(object).into_iter().filter(|name| *name != finalizer);
            let left = left.map(str::to_owned).collect();
            meta::set_finalizers(object, left);
        };
        self.modify_internal(place, Part::Main, change).await
    }
}

impl Deleted {
    fn at(mut self, revision: u64) -> Self {
        let (Self::Gone(object) | Self::Marked(object)) = &mut self;
        meta::set(object, "resourceVersion", revision.to_string());
        self
    }

    /// What is sent: the object, or that it is gone.
    pub(crate) fn answer(self, resource: &Resource) -> (Value, bool) {
        match self {
            Self::Gone(object) if !resource.returns_deleted() => {
                (failure::deleted(resource.subject(), meta::name(&object), meta::uid(&object)), false)
            }
            Self::Gone(object) | Self::Marked(object) => (object, true),
        }
    }
}

/// Refuses to delete an object that is not the one the client means.
fn check_preconditions(
    resource: &Resource,
    object: &Value,
    version: &str,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    let conflict = |why: String| Err(Failure::conflict(resource.kind_subject(), meta::name(object), &why));
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != meta::uid(object)) {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            meta::uid(object)
        ));
    }
    if let Some(asked) = options.resource_version.as_deref().filter(|asked| *asked != version) {
        return conflict(format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        ));
    }
    Ok(())
}

/// What is to become of the dependents, in whichever way the client says it.
fn propagation(options: &DeleteOptions) -> Option<Propagation> {
    match options.orphan_dependents {
        Some(true) => Some(Propagation::Orphan),
        Some(false) => Some(Propagation::Background),
        None => options.propagation_policy,
    }
}

impl Resource {
    /// What becomes of the dependents of an object if nobody says anything: of jobs and replication controllers they
    /// stay, for the sake of clients that are older than garbage collection.
    pub(crate) fn usual_propagation(&self) -> Option<Propagation> {
        let stay = matches!(
            (self.group.as_str(), self.plural.as_str()),
            ("batch", "jobs") | ("", "replicationcontrollers")
        );
        (stay && self.builtin_kind().is_some()).then_some(Propagation::Orphan)
    }
}

/// The finalizers that an object has to have for its dependents to be treated as asked for.
fn finalizers_for(object: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let present = meta::finalizers(object);
    let wanted = match propagation {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None => present.iter().copied().find(|name| matches!(*name, ORPHAN | FOREGROUND)),
    };
    let others = present.into_iter().filter(|name| !matches!(*name, ORPHAN | FOREGROUND));
    others.chain(wanted).map(str::to_owned).collect()
}
