//! What happens by itself: definitions come into force, namespaces and definitions that are deleted are emptied.

mod collector;
mod definitions;
mod hooks;
mod namespaces;

use std::sync::Arc;

use crate::server::{Error, Server};

/// Reads what is there and starts to follow what changes.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Error> {
    definitions::load(server).await?;
    server.spawn(Box::pin(definitions::follow(Arc::clone(server))));
    server.spawn(Box::pin(definitions::clean(Arc::clone(server))));
    if server.options.namespace_deletion {
        server.spawn(Box::pin(namespaces::run(Arc::clone(server))));
    }
    if server.options.garbage_collection {
        server.spawn(Box::pin(collector::run(Arc::clone(server))));
    }
    Ok(())
}
