//! Keeps the policy equal to what is stored.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_rbac::{Binding, ClusterRole, Policy, Role};
use watchkeeper_storage::{self as storage, Entry, Error, Followed, Page, Range, Revision, Storage};

use crate::access::GROUP;
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
    take(server, &page);
    Ok(page.revision)
}

fn take(server: &Server, page: &Page) {
    let mut policy = Policy::default();
    for entry in &page.entries {
        set(server, &mut policy, &entry.key, Some(entry));
    }
    server.access.replace(policy, page.revision);
}

/// Follows what changes after a revision that was taken in; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, loaded: Option<Revision>) {
    let root = root();
    let mut following = storage::follow(&*server.storage, "roles and bindings", &root).after(loaded);
    loop {
        let followed = tokio::select! {
            followed = following.next() => followed,
            () = server.access.progress_wanted() => {
                following.request_progress();
                continue;
            }
        };
        match followed {
            Some(Followed::Snapshot(page)) => take(&server, &page),
            Some(Followed::Event(event)) => {
                let entry = event.entry().map(|entry| &**entry);
                server.access.update(event.revision, |policy| set(&server, policy, event.key(), entry));
            }
            Some(Followed::Progress(revision)) => server.access.reached(revision),
            None => return,
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
