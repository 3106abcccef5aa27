//! Keeps the policy equal to what is stored.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_rbac::{Binding, ClusterRole, Policy, Role};
use watchkeeper_storage::{Entry, Error, Range, Revision, Storage, Update};

use crate::access::GROUP;
use crate::following::until_closed;
use crate::resource::{ROOT, Resource};
use crate::server::Server;

/// What the task is called.
pub(super) const TASK: &str = "access";

/// What the keys of all roles and bindings begin with.
fn root() -> String {
    format!("{ROOT}{GROUP}/")
}

/// Takes in all roles and bindings. Returns the revision they are of.
pub(super) async fn load(server: &Server) -> Result<Revision, Error> {
    let page = server.storage.range(Range::prefix(&root())).await?;
    let mut policy = Policy::default();
    for entry in &page.entries {
        set(server, &mut policy, &entry.key, Some(entry));
    }
    server.access.replace(policy, page.revision);
    Ok(page.revision)
}

/// Follows what changes after a revision that was taken in; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, mut loaded: Option<Revision>) {
    until_closed("roles and bindings", || follow_once(&server, loaded.take())).await;
}

async fn follow_once(server: &Server, loaded: Option<Revision>) -> Result<(), Error> {
    let revision = match loaded {
        Some(revision) => revision,
        None => load(server).await?,
    };
    let mut watch = server.storage.watch(&root(), revision).await?;
    loop {
        let update = tokio::select! {
            update = watch.next() => update,
            () = server.access.progress_wanted() => {
                watch.request_progress();
                continue;
            }
        };
        let Some(update) = update else { return Ok(()) };
        match update? {
            Update::Event(event) => {
                let entry = event.entry().map(|entry| &**entry);
                server.access.update(event.revision, |policy| set(server, policy, event.key(), entry));
            }
            Update::Progress(revision) => server.access.reached(revision),
        }
    }
}

/// Takes in or forgets what is under a key.
fn set(server: &Server, policy: &mut Policy, key: &str, entry: Option<&Entry>) {
    let Some(resource) = server.registry().of_key(key) else { return };
    let (namespace, name) = resource.split_key(key);
    let namespace = namespace.unwrap_or_default();
    match resource.plural.as_str() {
        "clusterroles" => policy.set_cluster_role(name, read(server, &resource, entry, ClusterRole::read)),
        "roles" => policy.set_role(namespace, name, read(server, &resource, entry, Role::read)),
        "clusterrolebindings" | "rolebindings" => {
            policy.set_binding(namespace, name, read(server, &resource, entry, Binding::read));
        }
        _ => {}
    }
}

/// Reads a role or a binding. One that cannot be read is not in force, whatever it was before.
fn read<T>(
    server: &Server,
    resource: &Resource,
    entry: Option<&Entry>,
    read: impl FnOnce(&Value) -> T,
) -> Option<T> {
    let entry = entry?;
    let found =
        server.supervisor.caught(TASK, &entry.key, || resource.read(entry).map(|object| read(&object)))?;
    found
        .inspect_err(|error| tracing::error!(%error, "role or binding cannot be read and is not in force"))
        .ok()
}
