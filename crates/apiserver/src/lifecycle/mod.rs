//! What happens by itself: definitions come into force, namespaces and definitions that are deleted are emptied, namespaces
//! get what every namespace has, and events are forgotten.

mod api_services;
mod collector;
mod definitions;
mod expiry;
mod hooks;
mod namespaces;
mod provided;

use std::sync::Arc;

use crate::server::{Error, Server};
use provided::Provided;

/// Reads what is there and starts to follow what changes.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Error> {
    definitions::load(server).await?;
    server.spawn(Box::pin(definitions::follow(Arc::clone(server))));
    server.spawn(Box::pin(definitions::clean(Arc::clone(server))));
    server.spawn(Box::pin(api_services::run(Arc::clone(server))));
    if server.options.namespace_deletion {
        server.spawn(Box::pin(namespaces::run(Arc::clone(server))));
    }
    if server.options.garbage_collection {
        server.spawn(Box::pin(collector::run(Arc::clone(server))));
    }
    if server.options.service_accounts {
        server.spawn(Box::pin(provided::run(Arc::clone(server), Provided::Account)));
    }
    if let Some(certificates) = server.options.certificate_authority.clone() {
        server.spawn(Box::pin(provided::run(Arc::clone(server), Provided::Certificates(certificates))));
    }
    server.spawn(Box::pin(expiry::run(Arc::clone(server), server.options.event_lifetime)));
    Ok(())
}
