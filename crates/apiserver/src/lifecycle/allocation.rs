//! Keeps what is known about the addresses and ports of Services equal to what is stored.

use std::sync::Arc;

use futures_util::StreamExt;
use watchkeeper_storage::{self as storage, Entry, Error, Followed, Page, Range, Revision, Storage};

use crate::resource::prefix;
use crate::server::Server;
use crate::write::Holdings;

/// What the task is called.
pub(super) const TASK: &str = "service-allocation";

/// Takes in all Services. Returns the revision they are of.
pub(super) async fn load(server: &Server) -> Result<Revision, Error> {
    let page = server.storage.range(Range::prefix(&prefix("", "services"))).await?;
    take(server, &page);
    Ok(page.revision)
}

fn take(server: &Server, page: &Page) {
    let services: Vec<_> = page
        .entries
        .iter()
        .filter_map(|entry| Some((entry.key.clone(), entry.modified, read(server, entry)?)))
        .collect();
    server.writer.allocator.replace(services, page.revision);
}

/// Follows what changes after a revision that was taken in; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, loaded: Option<Revision>) {
    let services = prefix("", "services");
    let mut following = storage::follow(&*server.storage, "Services", &services).after(loaded);
    while let Some(followed) = following.next().await {
        match followed {
            Followed::Snapshot(page) => take(&server, &page),
            Followed::Event(event) => {
                let entry = event.entry();
                let read = || read(&server, entry?);
                server.writer.allocator.follow(event.key(), event.revision, entry.is_none(), read);
            }
            Followed::Progress(_) => {}
        }
    }
}

/// Reads what a Service has. One that cannot be read has what it had before.
fn read(server: &Server, entry: &Entry) -> Option<Holdings> {
    let services = server.registry().find("", "v1", "services")?;
    let read = || services.read(entry).map(|service| Holdings::of(&service));
    let found = server.supervisor.caught(TASK, &entry.key, read)?;
    found.inspect_err(|error| tracing::error!(%error, "Service cannot be read; its cluster IP and node ports may be allocated twice")).ok()
}
