//! The APIServices of definitions come and go with what they define; those of other servers say whether they are available.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_storage::{Error, Range, Storage, Update};

use crate::api_services::{
    Backend, GROUP, MANAGER, PLURAL, Registered, builtin, condition, custom, set_condition,
};
use crate::following::until_closed;
use crate::object::meta;
use crate::request::delete_options::DeleteOptions;
use crate::resource::ObjectRef;
use crate::resource::prefix;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

/// What the task is called.
pub(super) const TASK: &str = "api-services";

/// How long to wait before trying again what failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The label by which an EndpointSlice says whose it is.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Keeps APIServices as they should be, until the storage is closed.
pub(super) async fn run(server: Arc<Server>) {
    let mut is_start = true;
    until_closed("the APIServices", || follow(&server, std::mem::take(&mut is_start))).await;
}

async fn follow(server: &Server, is_start: bool) -> Result<(), Error> {
    let mut definitions = server.registrar.changes();
    let own = prefix(GROUP, PLURAL);
    let page = server.storage.range(Range::prefix(&own)).await?;
    let wanted = custom(&server.registry());
    let mut keeper = Keeper { server, wanted, remote: BTreeSet::new(), has_failed: false };
    let present = page.entries.iter().filter_map(|entry| entry.key.strip_prefix(own.as_str()));
    let names: BTreeSet<String> = present.map(str::to_owned).chain(keeper.wanted.keys().cloned()).collect();
    for name in names {
        keeper.keep(&name, is_start).await;
    }
    let mut services = server.storage.watch(&own, page.revision).await?;
    let mut backends = [
        server.storage.watch(&prefix("", "services"), page.revision).await?,
        server.storage.watch(&prefix("discovery.k8s.io", "endpointslices"), page.revision).await?,
    ];
    let [addresses, slices] = &mut backends;
    while !keeper.has_failed {
        tokio::select! {
            changed = definitions.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                keeper.follow_definitions().await;
            }
            update = services.next() => {
                let Some(update) = update else { return Ok(()) };
                let Update::Event(event) = update? else { continue };
                let name = event.key().strip_prefix(own.as_str()).unwrap_or_default().to_owned();
                keeper.keep(&name, false).await;
            }
            update = addresses.next() => {
                let Some(update) = update else { return Ok(()) };
                keeper.backend_changed(&update?).await;
            }
            update = slices.next() => {
                let Some(update) = update else { return Ok(()) };
                keeper.backend_changed(&update?).await;
            }
        }
    }
    // All of it is looked at again.
    tokio::time::sleep(RETRY_DELAY).await;
    Ok(())
}

/// What is known of APIServices while they are followed.
struct Keeper<'a> {
    server: &'a Server,
    /// What definitions define.
    wanted: BTreeMap<String, Registered>,
    /// The names of those that are served by others.
    remote: BTreeSet<String>,
    /// Whether one could not be made what it should be, and nobody would say when to try again.
    has_failed: bool,
}

impl Keeper<'_> {
    async fn follow_definitions(&mut self) {
        let next = custom(&self.server.registry());
        let before = std::mem::replace(&mut self.wanted, next);
        let names: BTreeSet<&String> = before.keys().chain(self.wanted.keys()).collect();
        let is_changed = |name: &&String| before.contains_key(*name) != self.wanted.contains_key(*name);
        let changed: Vec<String> = names.into_iter().filter(is_changed).cloned().collect();
        for name in changed {
            self.keep(&name, false).await;
        }
    }

    /// Looks again at the APIServices whose Service or endpoints may have changed.
    async fn backend_changed(&mut self, update: &Update) {
        if matches!(update, Update::Event(_)) {
            for name in self.remote.clone() {
                self.keep(&name, false).await;
            }
        }
    }

    /// Makes an APIService what it should be. One that others changed meanwhile is looked at again when that is heard of.
    async fn keep(&mut self, name: &str, is_start: bool) {
        // One at which this panics stays as it is.
        let supervisor = &self.server.supervisor;
        let kept = supervisor.caught_async(TASK, &name, self.try_keep(name, is_start)).await;
        match kept.unwrap_or(Ok(false)) {
            Ok(true) => {
                self.remote.insert(name.to_owned());
            }
            Ok(false) => {
                self.remote.remove(name);
            }
            Err(failure) if failure.code < 500 => {}
            Err(failure) => {
                tracing::warn!(name, failure = %failure.message, "APIService could not be updated");
                self.has_failed = true;
            }
        }
    }

    /// Returns whether it is served by another server.
    async fn try_keep(&self, name: &str, is_start: bool) -> Result<bool, StatusError> {
        let server = self.server;
        let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Ok(false) };
        let place = ObjectRef { resource, namespace: None, name: name.to_owned() };
        let wanted = self.wanted.get(name);
        let Some(entry) = server.storage.get(&place.key(), None).await?.entry else {
            if let Some(wanted) = wanted {
                server.writer.create_as(MANAGER, GROUP, "v1", PLURAL, None, wanted.object()).await?;
            }
            return Ok(false);
        };
        let object = place.resource.read(&entry)?;
        if Registered::is_managed(&object, is_start) {
            let at_start = || builtin().find(|registered| is_start && registered.name() == name);
            let Some(wanted) = wanted.cloned().or_else(at_start) else {
                let options =
                    DeleteOptions { uid: Some(meta::uid(&object).to_owned()), ..DeleteOptions::default() };
                server.writer.delete(&place, &options).await?;
                return Ok(false);
            };
            if object["spec"] != wanted.spec() {
                let spec = wanted.spec();
                let correct = |object: &mut Value| object["spec"] = spec.clone();
                server.writer.modify_as(MANAGER, &place, Subresource::Main, correct).await?;
            }
            return Ok(false);
        }
        if !object["spec"]["service"].is_object() {
            return Ok(false);
        }
        let condition = condition(&object["spec"], &self.backend(&object["spec"]["service"]).await?);
        let now = server.options.clock.stamp();
        let say = |object: &mut Value| set_condition(object, condition.clone(), &now);
        server.writer.modify_as(MANAGER, &place, Subresource::Status, say).await?;
        Ok(true)
    }

    /// What is behind the Service that an APIService names.
    async fn backend(&self, service: &Value) -> Result<Backend, StatusError> {
        let text = |name: &str| service[name].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let (server, registry) = (self.server, self.server.registry());
        let mut backend = Backend { service: None, slices: Vec::new() };
        if let Some(services) = registry.find("", "v1", "services")
            && let Some(entry) = server.storage.get(&services.key(Some(&namespace), &name), None).await?.entry
        {
            backend.service = Some(services.read(&entry)?);
        }
        if let Some(slices) = registry.find("discovery.k8s.io", "v1", "endpointslices") {
            let page = server.storage.range(Range::prefix(&slices.prefix_in(Some(&namespace)))).await?;
            for entry in page.entries {
                let slice = slices.read(&entry)?;
                if slice["metadata"]["labels"][SERVICE_NAME] == name.as_str() {
                    backend.slices.push(slice);
                }
            }
        }
        Ok(backend)
    }
}
