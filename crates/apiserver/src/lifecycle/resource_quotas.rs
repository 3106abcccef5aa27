//! Adds up what ResourceQuotas limit, as kube-controller-manager does elsewhere.
//!
//! From then on every write keeps count. So a quota is added up when it is new or its limits have changed, and all are checked from
//! time to time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_storage::{self as storage, Entry, Followed, Range, Storage};

use crate::object::meta;
use crate::registry::Registry;
use crate::resource::{ObjectRef, Resource, prefix};
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;
use crate::write::admission::resource_quota::{Evaluator, Sum, is_settled};

/// What the task is called.
pub(super) const TASK: &str = "resource-quotas";

/// The manager of the status of quotas, as upstream's client is called.
const MANAGER: &str = "kube-controller-manager";

/// How often all quotas are added up again, as upstream does by default.
const RESYNC_INTERVAL: Duration = Duration::from_secs(300);

/// How often a quota is added up when others write meanwhile.
const ATTEMPTS: usize = 20;

/// Adds up quotas until the storage is closed.
pub(super) async fn run(server: Arc<Server>) {
    let quotas = prefix("", "resourcequotas");
    let mut following = storage::follow(&*server.storage, "ResourceQuotas", &quotas);
    let mut resync = tokio::time::interval(RESYNC_INTERVAL);
    // The first time is with the snapshot.
    resync.reset();
    loop {
        let followed = tokio::select! {
            followed = following.next() => followed,
            _ = resync.tick() => {
                following.again();
                continue;
            }
        };
        match followed {
            Some(Followed::Snapshot(page)) => {
                for entry in &page.entries {
                    add_up(&server, &entry.key).await;
                }
            }
            Some(Followed::Event(event)) => {
                if let Some(entry) = event.entry()
                    && is_outdated(&server, entry)
                {
                    add_up(&server, &entry.key).await;
                }
            }
            Some(Followed::Progress(_)) => {}
            None => return,
        }
    }
}

/// Whether a quota is new or its limits have changed.
fn is_outdated(server: &Server, entry: &Entry) -> bool {
    let is_outdated = || {
        let resource = server.registry().of_key(&entry.key);
        resource.and_then(|resource| resource.read(entry).ok()).is_some_and(|quota| !is_settled(&quota))
    };
    server.supervisor.caught(TASK, &entry.key, is_outdated) == Some(true)
}

/// Adds up a quota. One that fails is not enforced, and is added up again with the next change or after a while.
async fn add_up(server: &Server, key: &str) {
    let added_up = server.supervisor.caught_async(TASK, &key, try_add_up(server, key)).await;
    if let Some(Err(failure)) = added_up {
        tracing::warn!(%key, failure = %failure.message, "ResourceQuota could not be added up");
    }
}

async fn try_add_up(server: &Server, key: &str) -> Result<(), StatusError> {
    for attempt in 1..=ATTEMPTS {
        match add_up_once(server, key).await {
            // Somebody else has changed it.
            Err(failure) if failure.reason == "Conflict" && attempt < ATTEMPTS => {}
            done => return done,
        }
    }
    Ok(())
}

/// Adds up what there is at one revision. It is right if the quota has not changed until it is written: who makes or deletes what it
/// counts changes it.
async fn add_up_once(server: &Server, key: &str) -> Result<(), StatusError> {
    let registry = server.registry();
    let Some(resource) = registry.of_key(key) else { return Ok(()) };
    let target = ObjectRef::of(&resource, key);
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let Some(quota) = server.writer.quota() else { return Ok(()) };
    let _turn = quota.turn(namespace).await;
    let found = server.storage.get(key, None).await?;
    let Some(entry) = found.entry else { return Ok(()) };
    let object = resource.read(&entry)?;
    let mut sum = Sum::new(&object);
    for (resource, evaluator) in counted(&registry, &sum) {
        let range = Range::prefix(&resource.prefix_in(Some(namespace))).at(found.revision);
        for entry in &server.storage.range(range).await?.entries {
            let counted = match evaluator.reads_objects() {
                true => resource.read(entry)?,
                false => Value::Null,
            };
            sum.add(&evaluator, &counted);
        }
    }
    let status = sum.status();
    if object.get("status") == Some(&status) {
        return Ok(());
    }
    let version = entry.modified.to_string();
    let change = |quota: &mut Value| {
        meta::set(quota, "resourceVersion", version.as_str());
        quota["status"] = status.clone();
    };
    server.writer.modify_as(MANAGER, &target, Subresource::Status, change).await
}

/// The resources that a quota counts.
fn counted(registry: &Registry, sum: &Sum<'_>) -> Vec<(Arc<Resource>, Evaluator)> {
    let all = registry.stored().into_iter();
    let all = all.filter_map(|resource| Evaluator::of(&resource).map(|evaluator| (resource, evaluator)));
    all.filter(|(_, evaluator)| sum.names().any(|name| evaluator.counts(name))).collect()
}
