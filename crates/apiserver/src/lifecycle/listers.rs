//! Keeps what admission plug-ins look up equal to what is stored.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_storage::{self as storage, Entry, Error, Followed, Page, Range, Revision, Storage};

use crate::server::Server;
use crate::write::admission::listers::Lister;

/// What the tasks are called.
pub(super) const TASK: &str = "admission-listers";

/// Takes in all objects of a lister. Returns the revision they are of.
pub(super) async fn load(server: &Server, lister: &Lister) -> Result<Revision, Error> {
    let page = server.storage.range(Range::prefix(&lister.prefix)).await?;
    take(server, lister, &page);
    Ok(page.revision)
}

fn take(server: &Server, lister: &Lister, page: &Page) {
    let objects = page.entries.iter().filter_map(|entry| Some((Arc::clone(entry), read(server, entry)?)));
    lister.replace(objects, page.revision);
}

/// Follows what changes after a revision that was taken in, in the lister at this place; without one, takes in everything first.
pub(super) async fn follow(server: Arc<Server>, at: usize, loaded: Option<Revision>) {
    let listers = server.writer.listers.all();
    let Some(lister) = listers.get(at) else { return };
    let mut following = storage::follow(&*server.storage, lister.plural, &lister.prefix).after(loaded);
    while let Some(followed) = following.next().await {
        match followed {
            Followed::Snapshot(page) => take(&server, lister, &page),
            Followed::Event(event) => {
                match event.entry() {
                    Some(entry) => {
                        if let Some(object) = read(&server, entry) {
                            lister.set(entry, object);
                        }
                    }
                    None => lister.remove(event.key(), event.revision),
                }
                lister.reached(event.revision);
            }
            Followed::Progress(_) => {}
        }
    }
}

/// Reads an object. Of one that cannot be read, what was known before stays so: it may be what keeps something out.
fn read(server: &Server, entry: &Entry) -> Option<Value> {
    let resource = server.registry().of_key(&entry.key)?;
    let found = server.supervisor.caught(TASK, &entry.key, || resource.read(entry))?;
    found.inspect_err(|error| tracing::error!(%error, "object that admission looks up cannot be read")).ok()
}
