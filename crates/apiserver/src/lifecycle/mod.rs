//! What happens by itself: definitions come into force, namespaces and definitions that are deleted are emptied, namespaces
//! get what every namespace has, and events are forgotten.
//!
//! What follows the storage for the sake of requests runs on every server; what writes runs on the one that leads.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod allocation;
mod api_services;
mod crds;
mod expiry;
mod garbage_collector;
mod listers;
mod namespace_defaults;
mod namespaces;
mod resource_quotas;
mod role_aggregation;
mod roles;
mod webhooks;

use std::sync::Arc;

use crate::access::Authorization;
use crate::server::{Error, Server};
use namespace_defaults::Provided;

/// Reads what is there and starts to follow what changes.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Error> {
    crds::load(server).await?;
    server.spawn(crds::FOLLOW, crds::follow);
    let cleaning = crds::Cleaning::default();
    server.spawn_led(crds::CLEAN, move |server| crds::clean(server, cleaning.clone()));
    let mut allocated = Some(allocation::load(server).await?);
    server.spawn(allocation::TASK, move |server| allocation::follow(server, allocated.take()));
    let mut configured = Some(webhooks::load(server).await?);
    server.spawn(webhooks::TASK, move |server| webhooks::follow(server, configured.take()));
    server.spawn_led(api_services::TASK, api_services::run);
    if server.options.namespace_deletion {
        let cleaning = namespaces::Cleaning::default();
        server.spawn_led(namespaces::TASK, move |server| namespaces::run(server, cleaning.clone()));
    }
    if server.options.garbage_collection {
        server.spawn_led(garbage_collector::TASK, garbage_collector::run);
    }
    if server.options.service_accounts {
        let account = Provided::Account;
        server.spawn_led(account.task(), move |server| namespace_defaults::run(server, account.clone()));
    }
    if let Some(certificates) = server.options.certificate_authority.clone() {
        let certificates = Provided::Certificates(certificates);
        server.spawn_led(certificates.task(), move |server| {
            namespace_defaults::run(server, certificates.clone())
        });
    }
    server.spawn_led(expiry::TASK, |server| {
        let lifetime = server.options.event_lifetime;
        expiry::run(server, lifetime)
    });
    Ok(())
}

/// Reads what admission plug-ins look up and starts to follow it.
pub(crate) async fn start_listers(server: &Arc<Server>) -> Result<(), Error> {
    for (at, lister) in server.writer.listers.all().into_iter().enumerate() {
        let mut loaded = Some(listers::load(server, lister).await?);
        server.spawn(listers::TASK, move |server| listers::follow(server, at, loaded.take()));
    }
    if server.options.resource_quotas {
        server.spawn_led(resource_quotas::TASK, resource_quotas::run);
    }
    Ok(())
}

/// Reads roles and bindings and starts to follow them, unless nobody asks for them.
pub(crate) async fn start_roles(server: &Arc<Server>) -> Result<(), Error> {
    if server.options.authorization == Authorization::None {
        return Ok(());
    }
    let mut loaded = Some(roles::load(server).await?);
    server.spawn(roles::TASK, move |server| roles::follow(server, loaded.take()));
    if server.options.role_aggregation {
        server.spawn_led(role_aggregation::TASK, role_aggregation::run);
    }
    Ok(())
}
