//! The priority levels and flow schemas that every server has.

use super::change::Change;
use crate::flow_control::{GROUP, PRODUCER};
use crate::object::meta;
use crate::server::{Error, Server};

/// Those that are missing. What somebody changed is left as it is.
pub(super) async fn missing(server: &Server) -> Result<Vec<Change>, Error> {
    let (levels, schemas) = watchkeeper_kinds::flow_control_objects();
    let levels = levels.into_iter().map(|object| ("prioritylevelconfigurations", object));
    let schemas = schemas.into_iter().map(|object| ("flowschemas", object));
    let mut changes = Vec::new();
    for (plural, object) in levels.chain(schemas) {
        let what = format!("{plural} {}", meta::name(&object));
        let Some(resource) = server.registry().find(GROUP, "v1", plural) else { continue };
        let key = resource.key(None, meta::name(&object));
        if server.storage.get(&key, None).await?.entry.is_some() {
            continue;
        }
        let made = server
            .writer
            .new_stored(&resource, object, PRODUCER)
            .map_err(|failure| Error::Bootstrap { what, why: failure.message })?;
        changes.push(Change { key, replaces: None, value: resource.encode(&made) });
    }
    Ok(changes)
}
