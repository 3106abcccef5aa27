//! APIServices: who serves which group and version.
//!
//! What this server serves itself is registered by itself, as kube-apiserver does: the built-in versions when it starts,
//! those of definitions for as long as they are served. An APIService of somebody else's server is kept, and its condition
//! says why it is not available: requests are not forwarded yet.

mod availability;
mod registered;

use std::collections::HashSet;

use watchkeeper_storage::{Range, Storage};

use crate::beginnings::Change;
use crate::server::{Error, Server};
pub(crate) use availability::{Backend, condition, set_condition};
pub(crate) use registered::{Registered, builtin, custom};

pub(crate) const GROUP: &str = "apiregistration.k8s.io";
pub(crate) const PLURAL: &str = "apiservices";

/// Who is said to have written what this server registers.
pub(crate) const MANAGER: &str = "kube-apiserver";

/// The built-in versions that are not registered.
pub(crate) async fn missing(server: &Server) -> Result<Vec<Change>, Error> {
    let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Ok(Vec::new()) };
    let page = server.storage.range(Range::prefix(&resource.prefix)).await?;
    let present: HashSet<&str> = page.entries.iter().map(|entry| &*entry.key).collect();
    let mut changes = Vec::new();
    for registered in builtin() {
        let key = resource.key(None, &registered.name());
        if present.contains(key.as_str()) {
            continue;
        }
        let object =
            server.writer.new_stored(&resource, registered.object(), MANAGER).map_err(|failure| {
                Error::Bootstrap { what: format!("apiservice {}", registered.name()), why: failure.message }
            })?;
        changes.push(Change { key, replaces: None, value: resource.encode(&object) });
    }
    Ok(changes)
}
