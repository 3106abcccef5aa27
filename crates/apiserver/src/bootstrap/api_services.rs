//! The APIServices of the built-in versions.

use std::collections::HashSet;

use watchkeeper_storage::{Range, Storage};

use super::change::Change;
use crate::api_services::{GROUP, MANAGER, PLURAL, builtin};
use crate::server::{Error, Server};

/// The built-in versions that are not registered.
pub(super) async fn missing(server: &Server) -> Result<Vec<Change>, Error> {
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
