//! Keeps the webhooks equal to the configurations that are stored.

use std::sync::Arc;

use futures_util::StreamExt;
use watchkeeper_storage::{Entry, Error, Range, Revision, Storage, Update};

use crate::following::until_closed;
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
    server.writer.webhooks().clear();
    for entry in &page.entries {
        set(server, &entry.key, Some(entry));
    }
    server.writer.webhooks().reached(page.revision);
    Ok(page.revision)
}

/// Follows what changes after a revision that was taken in; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, mut loaded: Option<Revision>) {
    until_closed("webhook configurations", || follow_once(&server, loaded.take())).await;
}

async fn follow_once(server: &Server, loaded: Option<Revision>) -> Result<(), Error> {
    let revision = match loaded {
        Some(revision) => revision,
        None => load(server).await?,
    };
    let mut watch = server.storage.watch(&root(), revision).await?;
    while let Some(update) = watch.next().await {
        let Update::Event(event) = update? else { continue };
        set(server, event.key(), event.entry().map(|entry| &**entry));
        server.writer.webhooks().reached(event.revision);
    }
    Ok(())
}

/// Takes in or forgets what is under a key. Of a configuration that cannot be read, what was in force before stays so: it may be what
/// keeps something out.
fn set(server: &Server, key: &str, entry: Option<&Entry>) {
    let Some(resource) = server.registry().of_key(key) else { return };
    let phase = match resource.plural.as_str() {
        "mutatingwebhookconfigurations" => Phase::Mutating,
        "validatingwebhookconfigurations" => Phase::Validating,
        _ => return,
    };
    let (_, name) = resource.split_key(key);
    let read = |entry: &Entry| {
        let found = server.supervisor.caught(TASK, &entry.key, || resource.read(entry))?;
        found
            .inspect_err(
                |error| tracing::error!(%error, "webhook configuration cannot be read and is not in force"),
            )
            .ok()
    };
    match entry.map(read) {
        Some(Some(configuration)) => server.writer.webhooks().set(phase, name, Some(&configuration)),
        Some(None) => {}
        None => server.writer.webhooks().set(phase, name, None),
    }
}
