//! Keeps what is known about the addresses and ports of Services equal to what is stored.

use std::sync::Arc;

use futures_util::StreamExt;
use watchkeeper_storage::{Entry, Error, Range, Revision, Storage, Update};

use crate::following::until_closed;
use crate::resource::prefix;
use crate::server::Server;
use crate::write::Holdings;

/// What the task is called.
pub(super) const TASK: &str = "service-allocation";

/// Takes in all Services. Returns the revision they are of.
pub(super) async fn load(server: &Server) -> Result<Revision, Error> {
    let page = server.storage.range(Range::prefix(&prefix("", "services"))).await?;
    let services: Vec<_> = page
        .entries
        .iter()
        .filter_map(|entry| Some((entry.key.clone(), entry.modified, read(server, entry)?)))
        .collect();
    server.writer.allocator.replace(services, page.revision);
    Ok(page.revision)
}

/// Follows what changes after a revision that was taken in; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, mut loaded: Option<Revision>) {
    until_closed("Services", || follow_once(&server, loaded.take())).await;
}

async fn follow_once(server: &Server, loaded: Option<Revision>) -> Result<(), Error> {
    let revision = match loaded {
        Some(revision) => revision,
        None => load(server).await?,
    };
    let mut watch = server.storage.watch(&prefix("", "services"), revision).await?;
    while let Some(update) = watch.next().await {
        let Update::Event(event) = update? else { continue };
        let entry = event.entry();
        let read = || read(server, entry?);
        server.writer.allocator.follow(event.key(), event.revision, entry.is_none(), read);
    }
    Ok(())
}

/// Reads what a Service has. One that cannot be read has what it had before.
fn read(server: &Server, entry: &Entry) -> Option<Holdings> {
    let services = server.registry().find("", "v1", "services")?;
    let read = || services.read(entry).map(|service| Holdings::of(&service));
    let found = server.supervisor.caught(TASK, &entry.key, read)?;
    found.inspect_err(|error| tracing::error!(%error, "Service cannot be read; its cluster IP and node ports may be allocated twice")).ok()
}
