//! What happens by itself: definitions come into force, namespaces and definitions that are deleted are emptied, namespaces
//! get what every namespace has, claims and volumes that nobody uses any more go, events are forgotten, and the past is packed.
//!
//! What follows the storage for the sake of requests runs on every server; what writes runs on the one that leads.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod aggregation;
mod allocation;
mod api_services;
mod crds;
mod expiry;
mod flow_control;
mod garbage_collector;
mod listers;
mod namespace_defaults;
mod namespaces;
mod packing;
mod resource_quotas;
mod role_aggregation;
mod roles;
mod storage_protection;
mod token_files;
mod webhooks;

use std::sync::Arc;

use crate::access::Authorization;
use crate::advertise;
use crate::server::{Error, Server};
use namespace_defaults::Provided;
use storage_protection::Protected;

/// Reads what is there and starts to follow what changes.
pub(crate) async fn start(server: &Arc<Server>) -> Result<(), Error> {
    crds::load(server).await?;
    server.spawn(crds::FOLLOW, crds::follow);
    if let Some(tokens) = server.options.tokens.clone().filter(|tokens| tokens.has_files()) {
        server.spawn(token_files::TASK, move |_| token_files::follow(Arc::clone(&tokens)));
    }
    let mut allocated = Some(allocation::load(server).await?);
    server.spawn(allocation::TASK, move |server| allocation::follow(server, allocated.take()));
    let mut configured = Some(webhooks::load(server).await?);
    server.spawn(webhooks::TASK, move |server| webhooks::follow(server, configured.take()));
    server.spawn(flow_control::TASK, flow_control::follow);
    server.spawn(packing::TASK, packing::run);
    if !server.options.read_only {
        start_writing(server);
    }
    Ok(())
}

/// Starts what writes, on one of the servers that share a storage.
fn start_writing(server: &Arc<Server>) {
    let cleaning = crds::Cleaning::default();
    server.spawn_led(crds::CLEAN, move |server| crds::clean(server, cleaning.clone()));
    server.spawn_led(api_services::TASK, api_services::run);
    server.spawn(aggregation::FOLLOW, aggregation::follow);
    server.spawn_led(aggregation::CHECK, aggregation::check);
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
    let published = server.options.root_ca_publishing;
    if let Some(certificates) = server.options.certificate_authority.clone().filter(|_| published) {
        let certificates = Provided::Certificates(certificates);
        server.spawn_led(certificates.task(), move |server| {
            namespace_defaults::run(server, certificates.clone())
        });
    }
    start_storage_protection(server);
    server.spawn_led(flow_control::STATUS, flow_control::keep_statuses);
    if server.storage.is_shared() {
        server.spawn_led(advertise::TASK, advertise::show_servers);
    }
    server.spawn_led(expiry::TASK, expiry::run);
}

fn start_storage_protection(server: &Arc<Server>) {
    for (protected, is_on) in [
        (Protected::Claims, server.options.claim_protection),
        (Protected::Volumes, server.options.volume_protection),
        (Protected::AttributeClasses, server.options.volume_attributes_class_protection),
    ] {
        if is_on {
            server.spawn_led(protected.task(), move |server| storage_protection::run(server, protected));
        }
    }
}

/// Says how other servers can believe this one, and keeps it said.
pub(crate) async fn publish_front_proxy(server: &Arc<Server>) -> Result<(), Error> {
    aggregation::publish(server).await.map_err(|failure| Error::Bootstrap {
        what: "configmap kube-system/extension-apiserver-authentication".into(),
        why: failure.message,
    })?;
    server.spawn(aggregation::PUBLISH, aggregation::keep_published);
    Ok(())
}

/// Reads flow schemas and levels: the first request is to find them.
pub(crate) async fn load_flow_control(server: &Arc<Server>) -> Result<(), Error> {
    flow_control::load(server).await?;
    Ok(())
}

/// Reads what admission plug-ins look up and starts to follow it.
pub(crate) async fn start_listers(server: &Arc<Server>) -> Result<(), Error> {
    for (at, lister) in server.writer.listers.all().into_iter().enumerate() {
        let mut loaded = Some(listers::load(server, lister).await?);
        server.spawn(listers::TASK, move |server| listers::follow(server, at, loaded.take()));
    }
    if server.options.resource_quotas && !server.options.read_only {
        server.spawn_led(resource_quotas::TASK, resource_quotas::run);
    }
    Ok(())
}

/// Reads roles and bindings and starts to follow them, unless nobody asks for them.
pub(crate) async fn start_roles(server: &Arc<Server>) -> Result<(), Error> {
    if server.options.authorization != Authorization::Rbac {
        return Ok(());
    }
    let mut loaded = Some(roles::load(server).await?);
    server.spawn(roles::TASK, move |server| roles::follow(server, loaded.take()));
    if server.options.role_aggregation && !server.options.read_only {
        server.spawn_led(role_aggregation::TASK, role_aggregation::run);
    }
    Ok(())
}
