//! Keeps the webhooks equal to the configurations that are stored.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_storage::{self as storage, Entry, Error, Followed, Page, Range, Revision, Storage};

use crate::resource::ROOT;
use crate::server::Server;
use crate::write::admission::webhooks::{GROUP, Phase};

/// What the task is called.
pub(super) const TASK: &str = "webhooks";

/// What the keys of all configurations begin with.
fn root() -> String {
    format!("{ROOT}{GROUP}/")
}

/// Takes in all configurations. Returns the revision they are of.
pub(super) async fn load(server: &Server) -> Result<Revision, Error> {
    let page = server.storage.range(Range::prefix(&root())).await?;
    take(server, &page);
    Ok(page.revision)
}

fn take(server: &Server, page: &Page) {
    let configurations = page.entries.iter().filter_map(|entry| {
        let (phase, name) = place(server, &entry.key)?;
        Some((phase, name, read(server, entry)))
    });
    server.writer.webhooks().replace(&configurations.collect::<Vec<_>>());
    server.writer.webhooks().reached(page.revision);
}

/// Follows what changes after a revision that was taken in; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, loaded: Option<Revision>) {
    let root = root();
    let mut following = storage::follow(&*server.storage, "webhook configurations", &root).after(loaded);
    while let Some(followed) = following.next().await {
        match followed {
            Followed::Snapshot(page) => take(&server, &page),
            Followed::Event(event) => {
                set(&server, event.key(), event.entry().map(|entry| &**entry));
                server.writer.webhooks().reached(event.revision);
            }
            Followed::Progress(_) => {}
        }
    }
}

/// Takes in or forgets what is under a key. Of a configuration that cannot be read, what was in force before stays so: it may be what
/// keeps something out.
fn set(server: &Server, key: &str, entry: Option<&Entry>) {
    let Some((phase, name)) = place(server, key) else { return };
    match entry.map(|entry| read(server, entry)) {
        Some(Some(configuration)) => server.writer.webhooks().set(phase, &name, Some(&configuration)),
        Some(None) => {}
        None => server.writer.webhooks().set(phase, &name, None),
    }
}

/// The phase and the name of the configuration under a key; `None` if there is something else.
fn place(server: &Server, key: &str) -> Option<(Phase, String)> {
    let resource = server.registry().of_key(key)?;
    let phase = match resource.plural.as_str() {
        "mutatingwebhookconfigurations" => Phase::Mutating,
        "validatingwebhookconfigurations" => Phase::Validating,
        _ => return None,
    };
    Some((phase, resource.split_key(key).1.to_owned()))
}

fn read(server: &Server, entry: &Entry) -> Option<Value> {
    let resource = server.registry().of_key(&entry.key)?;
    let found = server.supervisor.caught(TASK, &entry.key, || resource.read(entry))?;
    let unread = "webhook configuration cannot be read; what was in force of it stays so";
    found.inspect_err(|error| tracing::error!(%error, key = %entry.key, "{unread}")).ok()
}
