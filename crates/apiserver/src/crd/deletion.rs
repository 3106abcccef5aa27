//! How a definition goes away: its objects first.

use super::conditions::{self, Condition};
use super::field::{fields_mut, list_mut, object_mut};
#[cfg(test)]
use super::field::{get, list, text};
use serde_json::{Value, json};

/// Keeps a definition until its objects are gone. The server puts it there when the first request to delete the
/// definition comes in, never before.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How far the deletion of the objects has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// It has begun.
    InProgress,
    /// Objects could not be listed or deleted; it will be tried again.
    Failed(String),
    /// Objects remain after a while, waiting for their finalizers; it will be looked at again.
    Waiting(String),
    /// No object is left.
    Done,
}

/// Answers the first request to delete a definition: marks it, adds the finalizer, and says so. The definition as it is
/// then is the answer to the client.
///
/// A definition that is marked already is left alone; a second request deletes it as any object with finalizers.
/// Returns whether it was the first.
pub(crate) fn begin(definition: &mut Value, now: &str) -> bool {
    let metadata = fields_mut(object_mut(definition, "metadata"));
    if metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return false;
    }
    metadata.insert("deletionTimestamp".into(), json!(now));
    let finalizers = list_mut(object_mut(definition, "metadata"), "finalizers");
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(json!(FINALIZER));
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    conditions::set(
        definition,
        &Condition::new("Terminating", "True", "InstanceDeletionPending", message),
        now,
    );
    true
}

/// Whether the objects of a definition are to be deleted.
#[cfg(test)]
pub(crate) fn is_pending(definition: &Value) -> bool {
    get(definition, "metadata").is_some_and(|metadata| {
        !text(metadata, "deletionTimestamp").is_empty()
            && list(metadata, "finalizers").iter().any(|finalizer| finalizer == FINALIZER)
    })
}

/// Records how far the deletion of the objects has come. [`Cleanup::Done`] takes the finalizer away: a definition without
/// finalizers is then gone.
///
/// A definition that was never established has no objects; `Done` says so.
pub(crate) fn progress(definition: &mut Value, cleanup: &Cleanup, now: &str) {
    let terminating =
        |status, reason, message: String| Condition::new("Terminating", status, reason, message);
    let condition = match cleanup {
        Cleanup::InProgress => {
            terminating("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress".into())
        }
        Cleanup::Failed(why) => terminating("True", "InstanceDeletionFailed", why.clone()),
        Cleanup::Waiting(why) => terminating(
            "True",
            "InstanceDeletionCheck",
            format!("could not confirm zero CustomResources remaining: {why}"),
        ),
        Cleanup::Done if conditions::is_true(definition, "Established") => {
            terminating("False", "InstanceDeletionCompleted", "removed all instances".into())
        }
        Cleanup::Done => terminating("False", "NeverEstablished", "resource was never established".into()),
    };
    conditions::set(definition, &condition, now);
    if *cleanup == Cleanup::Done {
        remove_finalizer(definition);
    }
}

fn remove_finalizer(definition: &mut Value) {
    let metadata = fields_mut(object_mut(definition, "metadata"));
    let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else {
        return;
    };
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    }
}
