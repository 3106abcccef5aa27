//! The APIServices of definitions come and go with what they define.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_storage::{self as storage, Followed, Storage};

use crate::api_services::{GROUP, MANAGER, PLURAL, Registered, builtin, custom};
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

/// Keeps APIServices as they should be, until the storage is closed.
pub(super) async fn run(server: Arc<Server>) {
    let own = prefix(GROUP, PLURAL);
    let mut definitions = server.registrar.changes();
    let mut following = storage::follow(&*server.storage, "APIServices", &own);
    let mut keeper = Keeper { server: &server, wanted: BTreeMap::new(), has_failed: false };
    let mut is_start = true;
    loop {
        tokio::select! {
            changed = definitions.changed() => {
                if changed.is_err() {
                    return;
                }
                keeper.follow_definitions().await;
            }
            followed = following.next() => match followed {
                Some(Followed::Snapshot(page)) => {
                    keeper.wanted = custom(&server.registry());
                    let present = page.entries.iter().filter_map(|entry| entry.key.strip_prefix(own.as_str()));
                    let wanted = keeper.wanted.keys().cloned();
                    let names: BTreeSet<String> = present.map(str::to_owned).chain(wanted).collect();
                    for name in names {
                        keeper.keep(&name, is_start).await;
                    }
                    is_start = false;
                }
                Some(Followed::Event(event)) => {
                    let name = event.key().strip_prefix(own.as_str()).unwrap_or_default().to_owned();
                    keeper.keep(&name, false).await;
                }
                Some(Followed::Progress(_)) => {}
                None => return,
            },
        }
        if std::mem::take(&mut keeper.has_failed) {
            tokio::time::sleep(RETRY_DELAY).await;
            // All of it is looked at again.
            following.again();
        }
    }
}

/// What is known of APIServices while they are followed.
struct Keeper<'a> {
    server: &'a Server,
    /// What definitions define.
    wanted: BTreeMap<String, Registered>,
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

    /// Makes an APIService what it should be. One that others changed meanwhile is looked at again when that is heard of.
    async fn keep(&mut self, name: &str, is_start: bool) {
        // One at which this panics stays as it is.
        let supervisor = &self.server.supervisor;
        let kept = supervisor.caught_async(TASK, &name, self.try_keep(name, is_start)).await;
        match kept.unwrap_or(Ok(())) {
            Ok(()) => {}
            Err(failure) if failure.code < 500 => {}
            Err(failure) => {
                tracing::warn!(name, failure = %failure.message, "APIService could not be updated");
                self.has_failed = true;
            }
        }
    }

    async fn try_keep(&self, name: &str, is_start: bool) -> Result<(), StatusError> {
        let server = self.server;
        let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Ok(()) };
        let place = ObjectRef { resource, namespace: None, name: name.to_owned() };
        let wanted = self.wanted.get(name);
        let Some(entry) = server.storage.get(&place.key(), None).await?.entry else {
            if let Some(wanted) = wanted {
                server.writer.create_as(MANAGER, GROUP, "v1", PLURAL, None, wanted.object()).await?;
            }
            return Ok(());
        };
        let object = place.resource.read(&entry)?;
        if Registered::is_managed(&object, is_start) {
            let at_start = || builtin().find(|registered| is_start && registered.name() == name);
            let Some(wanted) = wanted.cloned().or_else(at_start) else {
                let options =
                    DeleteOptions { uid: Some(meta::uid(&object).to_owned()), ..DeleteOptions::default() };
                server.writer.delete(&place, &options).await?;
                return Ok(());
            };
            if object["spec"] != wanted.spec() {
                let spec = wanted.spec();
                let correct = |object: &mut Value| object["spec"] = spec.clone();
                server.writer.modify_as(MANAGER, &place, Subresource::Main, correct).await?;
            }
            return Ok(());
        }
        Ok(())
    }
}
