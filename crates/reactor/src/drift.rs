//! Watches applied objects for changes and deletions by others.

use std::sync::Arc;

use serde_json::Value;
use watchkeeper_client::Client;
use watchkeeper_core::{Change, Delivery, Error};
use watchkeeper_informer::{Informer, Object};

use crate::action::{Action, Apply, Stray, group_kind};
use crate::reaction::Reaction;
use crate::source::ClusterKind;

/// Watches the children of one kind that a reaction has made, and has those put right that others change. Ends when it is dropped.
///
/// A cluster that does not let us watch them is told of once; then nothing is put right.
pub(crate) async fn watch(reaction: Arc<Reaction>, client: Client, api_version: String, kind: String) {
    let Action::Apply(apply) = &reaction.action else { return };
    let source = ClusterKind::children(&api_version, &kind, &apply.labels(), client);
    let name = format!("children of {}", reaction.name);
    let informer =
        Informer::<Value>::builder().name(name).metrics(&reaction.shared.metrics.informers).start(source);
    let (mut changes, mut status) = (informer.subscribe("drift"), informer.watch_status());
    let (group_kind, mut told) = (group_kind(&api_version, &kind), false);
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(change) => take(&reaction, apply, &group_kind, &change),
                None => return,
            },
            Ok(()) = status.changed() => {
                let denied = status.borrow().iter().find_map(|source| match &source.error {
                    Some(Error::Denied(why)) => Some(why.clone()),
                    _ => None,
                });
                if let Some(why) = denied.filter(|_| !std::mem::replace(&mut told, true)) {
                    tracing::warn!("{}: what others do to its {kind} objects is not put right: {why}", reaction.name);
                }
            }
        }
    }
}

fn take(reaction: &Reaction, apply: &Apply, group_kind: &str, change: &Change<Object<Value>>) {
    if change.delivery != Delivery::Live {
        return;
    }
    let Some(child) = change.newest() else { return };
    let version = change.new.as_ref().map(|child| child.version().to_string());
    let stray = Stray { kind: group_kind.to_owned(), key: change.key.clone(), version };
    if apply.wrote(&stray) {
        return;
    }
    let Ok(state) = child.get() else { return };
    if let Some(origin) = apply.origin_of(&state["metadata"]["annotations"]) {
        reaction.stray(origin, stray);
    }
}
