//! CustomResourceDefinitions: follows them, and deletes the objects of those that are deleted.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use watchkeeper_storage::{self as storage, Entry, Error, Followed, Page, Range, Revision, Storage};

use crate::api_services::MANAGER;
use crate::crd::Definition;
use crate::crd::deletion::{self, Cleanup};
use crate::resource::InstalledCrd;
use crate::resource::{ObjectRef, Resource, prefix};
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// The name of the task that follows CRDs.
pub(super) const FOLLOW: &str = "definitions";

/// The name of the tasks that delete the objects of deleted CRDs.
pub(super) const CLEAN: &str = "definition-deletion";

/// The uids of the definitions that are being emptied.
pub(super) type Cleaning = Arc<parking_lot::Mutex<HashSet<String>>>;

/// How long to wait before trying again what failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Takes in all definitions. Returns the revision they are of.
pub(super) async fn load(server: &Server) -> Result<Revision, Error> {
    let page = server.storage.range(Range::prefix(&prefix(GROUP, PLURAL))).await?;
    take(server, &page);
    Ok(page.revision)
}

fn take(server: &Server, page: &Page) {
    let installed = page.entries.iter().filter_map(|entry| install(server, entry));
    let installed: BTreeMap<String, Arc<InstalledCrd>> =
        installed.map(|installed| (installed.definition.name.clone(), Arc::new(installed))).collect();
    server.registrar.replace(installed, page.revision);
}

/// Keeps the registry equal to what is stored.
pub(super) async fn follow(server: Arc<Server>) {
    let prefix = prefix(GROUP, PLURAL);
    let mut following = storage::follow(&*server.storage, "CRDs", &prefix);
    loop {
        let followed = tokio::select! {
            followed = following.next() => followed,
            () = server.registrar.progress_wanted() => {
                following.request_progress();
                continue;
            }
        };
        match followed {
            Some(Followed::Snapshot(page)) => take(&server, &page),
            Some(Followed::Event(event)) => {
                let name = event.key().rsplit('/').next().unwrap_or_default().to_owned();
                let installed = event.entry().and_then(|entry| install(&server, entry));
                server.registrar.set(&name, installed, event.revision);
            }
            Some(Followed::Progress(revision)) => server.registrar.reached(revision),
            None => return,
        }
    }
}

fn install(server: &Server, entry: &Entry) -> Option<InstalledCrd> {
    let definitions = server.registry().find(GROUP, "v1", PLURAL)?;
    let read = || definitions.read(entry).map(|object| Definition::read(&object));
    let read = match server.supervisor.caught(FOLLOW, &entry.key, read)? {
        Ok(read) => read,
        Err(error) => {
            tracing::error!(%error, "CRD is not served");
            return None;
        }
    };
    match read {
        Ok(definition) => {
            let digest = BuildHasherDefault::<DefaultHasher>::default().hash_one(&entry.value);
            let (key, revision) = (entry.key.to_string(), entry.modified);
            Some(InstalledCrd { definition, key, revision, digest })
        }
        Err(error) => {
            tracing::error!(key = %entry.key, %error, "CRD is not served");
            None
        }
    }
}

/// Empties the definitions that are to be deleted, and gives names that became free to those who wait for them.
pub(super) async fn clean(server: Arc<Server>, cleaning: Cleaning) {
    let mut changes = server.registrar.changes();
    loop {
        let registry = server.registry();
        let terminating = registry.definitions.values().filter(|installed| installed.definition.terminating);
        let terminating: Vec<_> = terminating.cloned().collect();
        cleaning.lock().retain(|uid| terminating.iter().any(|installed| installed.definition.uid == *uid));
        for installed in terminating {
            if cleaning.lock().insert(installed.definition.uid.clone()) {
                let name = installed.definition.name.clone();
                server.spawn_for(CLEAN, name, move |server| clean_one(server, Arc::clone(&installed)));
            }
        }
        for installed in registry.definitions.values() {
            let definition = &installed.definition;
            if definition.terminating || definition.names_accepted {
                continue;
            }
            // Which names are free is judged with every write, even one that changes nothing else.
            let touched = touch(&server, &definition.name);
            let touched = server.supervisor.caught_async(CLEAN, &definition.name, touched).await;
            if let Some(Err(failure)) = touched {
                tracing::warn!(definition = %definition.name, failure = %failure.message, "names of the CRD could not be checked");
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Deletes the objects of a definition, and then what holds the definition.
async fn clean_one(server: Arc<Server>, installed: Arc<InstalledCrd>) {
    let definition = &installed.definition;
    let Some(index) = definition.versions.iter().position(|version| version.storage) else { return };
    let resource = Arc::new(Resource::custom(&installed, index));
    // Whoever looks wants to know how far this has come, but nothing depends on it.
    let _ = report(&server, &definition.name, &Cleanup::InProgress).await;
    loop {
        let cleanup = match super::namespaces::empty(&server, &resource, None).await {
            Ok(0) => break,
            Ok(left) => Cleanup::Waiting(format!("{left} objects are held by their finalizers")),
            Err(failure) => {
                tracing::warn!(definition = %definition.name, failure = %failure.message, "objects of a deleted CRD could not be deleted");
                tokio::time::sleep(RETRY_DELAY).await;
                Cleanup::Failed(failure.message)
            }
        };
        let _ = report(&server, &definition.name, &cleanup).await;
        super::namespaces::changed_in(&server, &resource).await;
    }
    while let Err(failure) = report(&server, &definition.name, &Cleanup::Done).await {
        tracing::warn!(definition = %definition.name, failure = %failure.message, "finalizer of the CRD could not be removed");
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn touch(server: &Server, name: &str) -> Result<(), StatusError> {
    let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Ok(()) };
    let place = ObjectRef { resource, namespace: None, name: name.to_owned() };
    server.writer.modify_as(MANAGER, &place, Subresource::Main, |_| ()).await
}

/// Says how far the deletion of the objects has come; that none is left lets the definition go.
async fn report(server: &Server, name: &str, cleanup: &Cleanup) -> Result<(), StatusError> {
    let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Ok(()) };
    let now = server.options.clock.stamp();
    let place = ObjectRef { resource, namespace: None, name: name.to_owned() };
    let next = |object: &mut serde_json::Value| deletion::progress(object, cleanup, &now);
    if *cleanup != Cleanup::Done {
        return server.writer.modify_as(MANAGER, &place, Subresource::Status, next).await;
    }
    // What says so stands in the status, what holds the definition in its metadata.
    server.writer.modify_as(MANAGER, &place, Subresource::Main, next).await
}
