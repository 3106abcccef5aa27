//! What some kinds need besides what all of them do.

use serde_json::Value;
use tokio::sync::MutexGuard;
use watchkeeper_storage::Revision;

use crate::access::Authorization;
use crate::definition::{self, Names};
use crate::failure::Failure;
use crate::meta;
use crate::resource::Resource;
use crate::server::Server;
use crate::write::Place;

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The right to write something that no two objects may have.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

impl Server {
    /// Waits for the turn to write an object, if it is of a kind where that matters.
    pub(crate) async fn turn(&self, resource: &Resource) -> Option<Turn<'_>> {
        if resource.is_definitions() { Some(self.turns.lock().await) } else { None }
    }

    /// Says in the status of a definition which of its names it gets, and that this server said so.
    pub(crate) fn judge_names(&self, resource: &Resource, object: &mut Value) {
        let registry = self.registry();
        let group = object["spec"]["group"].as_str().unwrap_or_default().to_owned();
        let name = meta::name(object).to_owned();
        let builtin = watchkeeper_kinds::all().iter().filter(|kind| kind.group == group).map(|kind| Names {
            plural: kind.plural.into(),
            singular: kind.singular.into(),
            kind: kind.kind.into(),
            list_kind: kind.list_kind(),
            short_names: kind.short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: Vec::new(),
        });
        let custom = registry.definitions.values().map(|installed| &installed.definition);
        let custom = custom
            .filter(|other| other.group == group && other.name != name)
            .map(|other| other.names.clone());
        let others: Vec<Names> = builtin.chain(custom).collect();
        let before = object.clone();
        if definition::conditions(object, &others, &self.options.clock.stamp()) {
            self.manage_judged(resource, object, &before);
        }
    }

    /// Before an object is deleted.
    pub(crate) fn before_delete(&self, place: &Place, _object: &Value) -> Result<(), Failure> {
        if place.resource.is_core("namespaces") && IMMORTAL.contains(&place.name.as_str()) {
            let why = "this namespace may not be deleted";
            return Err(Failure::forbidden(place.resource.subject(), &place.name, why));
        }
        Ok(())
    }

    /// After something was written: a definition, a role, a binding is in force before its writer hears of it.
    pub(crate) async fn after_write(&self, resource: &Resource, revision: Revision) {
        if resource.is_definitions() {
            self.registrar.reach(revision).await;
        }
        if resource.group == crate::access::GROUP && self.options.authorization != Authorization::None {
            let mut stopping = self.stopping();
            tokio::select! {
                () = self.access.reach(revision) => {}
                // Nobody follows any more.
                () = stopping.wait() => {}
            }
        }
    }
}
