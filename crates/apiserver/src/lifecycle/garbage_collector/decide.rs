//! What has to be done about an object.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::graph::{Facts, OwnerReference};
use crate::object::meta;
use crate::request::delete_options::{DeleteOptions, Propagation};
use crate::resource::ObjectRef;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::{FOREGROUND, ORPHAN, Subresource};

/// What an owner is to one of its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is there, and stays as far as one can know.
    Solid,
    /// It waits for the dependent to be deleted.
    Waiting,
    /// It is gone, or was never there.
    Gone,
}

/// How many dependents are told together that they have no owner any more; their commits share syncs.
const TOGETHER: usize = 64;

/// Does what has to be done about an object now. `dependents` are the keys of its dependents, as far as that is known.
pub(super) async fn decide(server: &Server, key: &str, dependents: &[Box<str>]) -> Result<(), StatusError> {
    let Some((place, facts)) = look(server, key).await? else { return Ok(()) };
    if facts.waits_for_dependents() {
        return finish(server, &place, &facts, dependents).await;
    }
    if facts.owners.is_empty() || facts.is_deleting {
        return Ok(());
    }
    let mut owners = Vec::new();
    for owner in &facts.owners {
        owners.push((owner, classify(server, &place, owner).await?));
    }
    let has = |what| owners.iter().any(|(_, owner)| *owner == what);
    if has(Owner::Solid) {
        let lost =
            owners.iter().filter(|(_, owner)| *owner != Owner::Solid).map(|(owner, _)| owner.uid.as_str());
        return disown(server, &place, &lost.collect::<Vec<_>>()).await;
    }
    let propagation_policy = if has(Owner::Waiting) && !dependents.is_empty() {
        if has_waiting(server, &facts, dependents).await? {
            // They wait for each other: somebody has to let go.
            unblock(server, &place).await?;
        }
        // What waits for this object waits for what depends on it too.
        Propagation::Foreground
    } else if facts.finalizers.iter().any(|name| name == ORPHAN) {
        Propagation::Orphan
    } else if facts.finalizers.iter().any(|name| name == FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let options = DeleteOptions {
        propagation_policy: Some(propagation_policy),
        uid: Some(facts.uid),
        ..DeleteOptions::default()
    };
    match server.writer.delete(&place, &options).await {
        // It was made anew meanwhile, which will be looked at by itself.
        Err(failure) if failure.reason == "Conflict" => Ok(()),
        outcome => outcome,
    }
}

/// The object under a key.
async fn look(server: &Server, key: &str) -> Result<Option<(ObjectRef, Facts)>, StatusError> {
    let Some(resource) = server.registry().of_key(key) else { return Ok(None) };
    let Some(entry) = server.storage.get(key, None).await?.entry else { return Ok(None) };
    let Some(facts) = Facts::read(&entry) else { return Ok(None) };
    let (namespace, name) = resource.split_key(key);
    let place = ObjectRef { namespace: namespace.map(str::to_owned), name: name.to_owned(), resource };
    Ok(Some((place, facts)))
}

async fn classify(
    server: &Server,
    dependent: &ObjectRef,
    owner: &OwnerReference,
) -> Result<Owner, StatusError> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    // Owners of a kind that is not served here may be there without being seen.
    let Some(resource) = server.registry().find_kind(group, version, &owner.kind) else {
        return Ok(Owner::Solid);
    };
    let namespace = match (resource.namespaced, &dependent.namespace) {
        (false, _) => None,
        (true, Some(namespace)) => Some(namespace.as_str()),
        // An object outside of namespaces cannot depend on one inside; kube-controller-manager lets it be.
        (true, None) => return Ok(Owner::Solid),
    };
    let key = resource.key(namespace, &owner.name);
    let Some(entry) = server.storage.get(&key, None).await?.entry else { return Ok(Owner::Gone) };
    match Facts::read(&entry) {
        Some(found) if found.uid != owner.uid => Ok(Owner::Gone),
        Some(found) if found.is_deleted_in_foreground() => Ok(Owner::Waiting),
        _ => Ok(Owner::Solid),
    }
}

/// Brings an owner that waits for its dependents nearer to its end.
async fn finish(
    server: &Server,
    place: &ObjectRef,
    facts: &Facts,
    dependents: &[Box<str>],
) -> Result<(), StatusError> {
    if facts.finalizers.iter().any(|name| name == ORPHAN) {
        let disowned = dependents.iter().cloned().map(|key| disown_one(server, key, &facts.uid));
        stream::iter(disowned).buffer_unordered(TOGETHER).try_collect::<()>().await?;
        return server.writer.remove_finalizer(place, ORPHAN).await;
    }
    // Each of them is looked at by itself, and the owner again when the last one is gone.
    for key in dependents {
        if blocks(server, facts, key).await? {
            return Ok(());
        }
    }
    server.writer.remove_finalizer(place, FOREGROUND).await
}

/// Whether one of the dependents of an object waits until its own dependents are gone.
async fn has_waiting(server: &Server, owner: &Facts, dependents: &[Box<str>]) -> Result<bool, StatusError> {
    for key in dependents {
        let Some((_, found)) = look(server, key).await? else { continue };
        let is_owned = found.owners.iter().any(|reference| reference.uid == owner.uid);
        if is_owned && found.is_deleted_in_foreground() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lets an object not keep its owners from being deleted any more.
async fn unblock(server: &Server, place: &ObjectRef) -> Result<(), StatusError> {
    let change = |object: &mut Value| {
        let references = object["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut);
        for reference in references.into_iter().flatten() {
            if reference["blockOwnerDeletion"] == true {
                reference["blockOwnerDeletion"] = false.into();
            }
        }
    };
    server.writer.modify(place, Subresource::Main, change).await
}

/// Whether the object under a key is a dependent that keeps its owner from being deleted.
async fn blocks(server: &Server, owner: &Facts, key: &str) -> Result<bool, StatusError> {
    let found = look(server, key).await?;
    Ok(found.is_some_and(|(_, found)| {
        found.owners.iter().any(|reference| reference.uid == owner.uid && reference.block_owner_deletion)
    }))
}

async fn disown_one(server: &Server, key: Box<str>, uid: &str) -> Result<(), StatusError> {
    match look(server, &key).await? {
        Some((dependent, _)) => disown(server, &dependent, &[uid]).await,
        None => Ok(()),
    }
}

/// Takes owners off an object.
async fn disown(server: &Server, place: &ObjectRef, uids: &[&str]) -> Result<(), StatusError> {
    if uids.is_empty() {
        return Ok(());
    }
    let change = |object: &mut Value| {
        let references =
            meta::get(object, "ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_kept = |reference: &Value| reference["uid"].as_str().is_none_or(|uid| !uids.contains(&uid));
        let kept: Vec<Value> = references.into_iter().filter(is_kept).collect();
        if kept.is_empty() {
            meta::remove(object, "ownerReferences");
        } else {
            meta::set(object, "ownerReferences", kept);
        }
    };
    server.writer.modify(place, Subresource::Main, change).await
}
