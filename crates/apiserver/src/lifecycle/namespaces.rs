//! Namespaces that are deleted are emptied.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use watchkeeper_storage::{self as storage, Entry, Error, Followed, Range, Storage};

use crate::object::{meta, time};
use crate::request::delete_options::{DeleteOptions, Propagation};
use crate::resource::{ObjectRef, ROOT, Resource, prefix};
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

/// What the tasks are called: the one that follows, and the one that empties a namespace.
pub(super) const TASK: &str = "namespace-deletion";

/// How long to wait before trying again what failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How many objects are deleted together; their commits share syncs.
const TOGETHER: usize = 64;

/// The uids of the namespaces that are being emptied.
pub(super) type Cleaning = Arc<parking_lot::Mutex<HashSet<String>>>;

/// Follows the namespaces.
pub(super) async fn run(server: Arc<Server>, cleaning: Cleaning) {
    let prefix = prefix("", "namespaces");
    let mut following = storage::follow(&*server.storage, "namespaces", &prefix);
    while let Some(followed) = following.next().await {
        match followed {
            Followed::Snapshot(page) => {
                page.entries.iter().for_each(|entry| consider(&server, &cleaning, entry));
            }
            Followed::Event(event) => {
                event.entry().into_iter().for_each(|entry| consider(&server, &cleaning, entry));
            }
            Followed::Progress(_) => {}
        }
    }
}

/// Begins to empty a namespace, if it is to be deleted.
fn consider(server: &Arc<Server>, cleaning: &Cleaning, entry: &Entry) {
    let Some(namespaces) = server.registry().find("", "v1", "namespaces") else { return };
    let read = server.supervisor.caught(TASK, &entry.key, || namespaces.read(entry));
    let Some(Ok(object)) = read else { return };
    if !meta::is_deleting(&object) {
        return;
    }
    if !cleaning.lock().insert(meta::uid(&object).to_owned()) {
        return;
    }
    let cleaning = Arc::clone(cleaning);
    let place = ObjectRef { resource: namespaces, namespace: None, name: meta::name(&object).to_owned() };
    let uid = meta::uid(&object).to_owned();
    server.spawn_for(TASK, place.name.clone(), move |server| {
        let (cleaning, place, uid) = (Arc::clone(&cleaning), place.clone(), uid.clone());
        async move {
            while let Err(failure) = clean(&server, &place).await {
                tracing::warn!(namespace = %place.name, failure = %failure.message, "content of a deleted namespace could not be deleted");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            cleaning.lock().remove(&uid);
        }
    });
}

/// Deletes everything in a namespace, and then what holds the namespace.
async fn clean(server: &Server, place: &ObjectRef) -> Result<(), StatusError> {
    loop {
        let before = server.storage.stats().revision;
        let mut remains = Remains::default();
        // Pods go first: they may still need what they mount, and nothing that protects them is to be gone before them.
        let (pods, others): (Vec<_>, Vec<_>) = server
            .registry()
            .stored()
            .into_iter()
            .filter(|resource| resource.namespaced)
            .partition(|resource| resource.is_core("pods"));
        for resources in [pods, others] {
            for resource in &resources {
                empty(server, resource, Some(&place.name)).await?;
                remains.look(server, resource, &place.name).await?;
            }
            if !remains.resources.is_empty() {
                break;
            }
        }
        if remains.resources.is_empty() {
            break;
        }
        let now = server.options.clock.stamp();
        server.writer.modify(place, Subresource::Status, |namespace| remains.report(namespace, &now)).await?;
        changed(server, before, remains.next_end).await?;
    }
    release(server, place).await
}

/// What is left in a namespace that is to be deleted.
#[derive(Default)]
struct Remains {
    /// How many objects by resource.
    resources: BTreeMap<String, usize>,
    /// How many objects by the finalizer that holds them.
    finalizers: BTreeMap<String, usize>,
    /// When the first of the Pods that end by themselves should have ended.
    next_end: Option<SystemTime>,
}

fn count(counts: &mut BTreeMap<String, usize>, what: String) {
    let number = counts.entry(what).or_default();
    *number = number.saturating_add(1);
}

impl Remains {
    async fn look(
        &mut self,
        server: &Server,
        resource: &Resource,
        namespace: &str,
    ) -> Result<(), StatusError> {
        let page = server.storage.range(Range::prefix(&resource.prefix_in(Some(namespace)))).await?;
        for entry in page.entries {
            // Upstream's words have the dot for the core group, too.
            count(&mut self.resources, format!("{}.{}", resource.plural, resource.group));
            let metadata = resource.read_stored_metadata(&entry)?;
            for finalizer in meta::finalizers(&metadata) {
                count(&mut self.finalizers, finalizer.to_owned());
            }
            if let Some(end) = end_of(&metadata) {
                self.next_end = Some(self.next_end.map_or(end, |next| next.min(end)));
            }
        }
        Ok(())
    }

    /// Says so in the conditions of the namespace, in the words of the namespace controller.
    fn report(&self, namespace: &mut Value, now: &str) {
        let list = |counts: &BTreeMap<String, usize>, verb: &str| {
            let texts =
                counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances"));
            texts.collect::<Vec<_>>().join(", ")
        };
        let fine = |what: &str, reason: &str, message: &str| {
            (what.to_owned(), false, reason.to_owned(), message.to_owned())
        };
        let mut conditions = vec![
            fine(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
        ];
        let content = format!("Some resources are remaining: {}", list(&self.resources, "has"));
        conditions.push(("NamespaceContentRemaining".into(), true, "SomeResourcesRemain".into(), content));
        conditions.push(if self.finalizers.is_empty() {
            fine(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            )
        } else {
            let held = format!(
                "Some content in the namespace has finalizers remaining: {}",
                list(&self.finalizers, "in")
            );
            ("NamespaceFinalizersRemaining".into(), true, "SomeFinalizersRemain".into(), held)
        });
        let before = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let conditions: Vec<Value> = conditions
            .into_iter()
            .map(|(kind, status, reason, message)| {
                let status = if status { "True" } else { "False" };
                let known = before.iter().find(|known| known["type"] == kind.as_str() && known["status"] == status);
                let since = known.map_or(json!(now), |known| known["lastTransitionTime"].clone());
                json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
            })
            .collect();
        namespace["status"]["conditions"] = conditions.into();
    }
}

/// Waits for any change after a revision, or for a time.
async fn changed(server: &Server, revision: u64, until: Option<SystemTime>) -> Result<(), Error> {
    let mut watch = server.storage.watch(ROOT, revision).await?;
    let wait = until.map(|until| until.duration_since(server.options.clock.now()).unwrap_or_default());
    // A finalizer may be removed as part of anything; whatever happened, it is worth another look, but not at once.
    match wait {
        Some(wait) => drop(tokio::time::timeout(wait, watch.next()).await),
        None => drop(watch.next().await),
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    Ok(())
}

/// When an object that is marked for deletion should have ended by itself, if it was given time for that.
fn end_of(object: &Value) -> Option<SystemTime> {
    let grace = meta::get(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    let end = time::parse(meta::text(object, "deletionTimestamp"))?;
    (grace > 0).then_some(end)
}

/// Takes what holds a namespace off it.
async fn release(server: &Server, place: &ObjectRef) -> Result<(), StatusError> {
    let next = |object: &mut Value| {
        if let Some(spec) = object.get_mut("spec") {
            spec["finalizers"] = json!([]);
        }
    };
    server.writer.modify(place, Subresource::Finalize, next).await
}

/// Waits for a change to the objects of a resource, but not forever: one may have been missed.
pub(super) async fn changed_in(server: &Server, resource: &Resource) {
    let after = server.storage.stats().revision;
    if let Ok(mut watch) = server.storage.watch(&resource.prefix, after).await {
        let _ = tokio::time::timeout(RETRY_DELAY, watch.next()).await;
    }
}

/// Asks for all objects of a resource to be deleted. Returns how many are left, held by something.
///
/// Pods that run are given the time to end that they ask for, and are removed when it is over: there may be no node that says that they
/// have ended.
pub(super) async fn empty(
    server: &Server,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
) -> Result<usize, StatusError> {
    let range = || Range::prefix(&resource.prefix_in(namespace));
    let page = server.storage.range(range()).await?;
    let deletions = page.entries.iter().cloned().map(|entry| delete(server, resource, entry));
    let outcomes: Vec<_> = stream::iter(deletions).buffered(TOGETHER).collect().await;
    outcomes.into_iter().collect::<Result<(), StatusError>>()?;
    if page.entries.is_empty() {
        return Ok(0);
    }
    Ok(server.storage.range(range()).await?.entries.len())
}

/// Deletes one of the objects of a resource. One that cannot be deleted is in the way of no other.
async fn delete(server: &Server, resource: &Arc<Resource>, entry: Arc<Entry>) -> Result<(), StatusError> {
    let key = &entry.key;
    let deletion = async {
        let mut grace_period_seconds = Some(0);
        if resource.is_core("pods") {
            let metadata = resource.read_stored_metadata(&entry)?;
            match end_of(&metadata) {
                Some(end) if end > server.options.clock.now() => return Ok(()),
                None if !meta::is_deleting(&metadata) => grace_period_seconds = None,
                _ => {}
            }
        }
        let propagation_policy = Some(Propagation::Background);
        let options = DeleteOptions { propagation_policy, grace_period_seconds, ..DeleteOptions::default() };
        server.writer.delete(&ObjectRef::of(resource, key), &options).await
    };
    let deleted = server.supervisor.caught_async(TASK, key, deletion).await;
    deleted.unwrap_or_else(|| Err(StatusError::internal(format!("deleting {key} panicked"))))
}
