//! Deletions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::check_name;
use crate::object::meta;
use crate::object::time;
use crate::request::delete_options::{DeleteOptions, Propagation};
use crate::request::query::Query;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::write::request::{Current, Draft, Intent, Moment, Planned};
use crate::write::{WriteRequest, version};

/// The finalizer of an object whose dependents are to lose it as their owner.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer of an object that waits until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// A request to evict a Pod.
pub(crate) struct Eviction {
    object: Value,
    query: Query,
    dry_run: bool,
    /// Whether a disruption budget has taken note of it.
    is_charged: AtomicBool,
}

impl Eviction {
    /// An Eviction and the query that it came with, which may say that it is a dry run.
    pub(crate) fn new(object: Value, query: Query, dry_run: bool) -> Self {
        Self { object, query, dry_run, is_charged: AtomicBool::new(false) }
    }

    /// How the Pod is to be deleted, by the Eviction as it was sent.
    pub(crate) fn sent_options(&self) -> Result<DeleteOptions, StatusError> {
        self.options(&self.object)
    }

    /// How the Pod is to be deleted, by the Eviction as admission completed it.
    pub(in crate::write) fn options(&self, eviction: &Value) -> Result<DeleteOptions, StatusError> {
        let mut options = DeleteOptions::read(&self.query, eviction.get("deleteOptions"))?;
        options.dry_run |= self.dry_run;
        Ok(options)
    }

    pub(in crate::write) fn is_charged(&self) -> bool {
        self.is_charged.load(Ordering::Relaxed)
    }

    pub(in crate::write) fn set_charged(&self) {
        self.is_charged.store(true, Ordering::Relaxed);
    }

    /// The Eviction as it was sent.
    pub(super) fn next(&self) -> Draft {
        Draft::of(self.object.clone())
    }

    /// Refuses to evict another Pod than the one the client means. As in kube-apiserver these are conditions of the deletion, so that the
    /// disruption budget has been charged before.
    pub(in crate::write) fn check_preconditions(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        pod: &Value,
        completed: &Value,
    ) -> Result<(), StatusError> {
        check_preconditions(request, current, pod, &self.options(completed)?)
    }

    /// What becomes of the Pod by the Eviction as admission completed it.
    pub(in crate::write) fn plan(
        &self,
        request: &WriteRequest<'_>,
        pod: &Value,
        completed: Value,
        moment: &Moment,
    ) -> Result<Planned, StatusError> {
        check_name(&request.target, &completed, "Eviction")?;
        let options = self.options(&completed)?;
        let mut planned = plan(request, &disrupted(pod, &options, moment), &options, moment);
        if options.dry_run {
            planned.intent = Intent::Keep;
        }
        Ok(Planned { asked: completed, ..planned })
    }
}

/// A deletion, if its preconditions are met. Its draft has no object.
pub(super) fn next(
    request: &WriteRequest<'_>,
    current: &Current,
    old: &Value,
    options: &DeleteOptions,
) -> Result<Draft, StatusError> {
    check_preconditions(request, current, old, options)?;
    Ok(Draft::of(Value::Null))
}

/// A Pod that is evicted says so, unless it only might be.
fn disrupted(pod: &Value, options: &DeleteOptions, moment: &Moment) -> Value {
    let mut pod = pod.clone();
    if options.dry_run {
        return pod;
    }
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": moment.stamp,
    });
    match pod["status"]["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|known| known["type"] != condition["type"]);
            conditions.push(condition);
        }
        None => pod["status"]["conditions"] = json!([condition]),
    }
    pod
}

/// Removes the object, or marks it for deletion if something holds it.
pub(in crate::write) fn plan(
    request: &WriteRequest<'_>,
    old: &Value,
    options: &DeleteOptions,
    moment: &Moment,
) -> Planned {
    let (object, intent) = step(&request.target.resource, old, options, moment);
    Planned { object, asked: Value::Null, intent, reservation: None, warnings: Vec::new() }
}

fn step(resource: &Resource, old: &Value, options: &DeleteOptions, moment: &Moment) -> (Value, Intent) {
    let mut object = old.clone();
    let grace = resource.grace_period(&object, options.grace_period_seconds);
    let was_deleting = meta::is_deleting(&object);
    if was_deleting {
        let left =
            meta::get(&object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        // A deletion that is under way can only be hastened.
        if left > 0 && options.grace_period_seconds.is_none_or(|asked| asked >= left) {
            return (object, Intent::Keep);
        }
    }
    let finalizers = finalizers_for(&object, propagation(options).or(resource.usual_propagation()));
    let unchanged = meta::finalizers(&object) == finalizers;
    meta::set_finalizers(&mut object, finalizers);
    resource.prepare_delete(&mut object, &moment.stamp);
    let held = !meta::finalizers(&object).is_empty() || resource.is_held(&object);
    match grace.filter(|seconds| *seconds > 0) {
        Some(seconds) => mark(&mut object, seconds, moment),
        None if !held => {
            if grace.is_some() {
                mark(&mut object, 0, moment);
            }
            return (object, Intent::Remove);
        }
        None if was_deleting && unchanged => return (old.clone(), Intent::Keep),
        // The strategy of the kind has marked it.
        None if meta::is_deleting(&object) && !was_deleting => {}
        None => mark(&mut object, 0, moment),
    }
    (object, Intent::Put)
}

/// Marks an object for deletion after a grace period in seconds.
fn mark(object: &mut Value, grace: i64, moment: &Moment) {
    let wait = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let at = time::after(moment.now, wait);
    if !meta::is_deleting(object) && meta::generation(object) > 0 {
        meta::set(object, "generation", meta::generation(object).saturating_add(1));
    }
    let earlier = time::parse(meta::text(object, "deletionTimestamp")).is_some_and(|marked| marked <= at);
    if !earlier {
        meta::set(object, "deletionTimestamp", time::stamp(at));
    }
    meta::set(object, "deletionGracePeriodSeconds", grace);
}

/// Refuses to delete an object that is not the one the client means.
fn check_preconditions(
    request: &WriteRequest<'_>,
    current: &Current,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
    let resource = &request.target.resource;
    let version = current.entry.as_deref().map(version).unwrap_or_default();
    let conflict =
        |why: String| Err(StatusError::conflict(resource.kind_subject(), meta::name(object), &why));
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
    /// What becomes of the dependents of an object if nobody says anything.
    pub(crate) fn usual_propagation(&self) -> Option<Propagation> {
        self.builtin_kind().filter(|kind| kind.orphans_by_default).map(|_| Propagation::Orphan)
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
