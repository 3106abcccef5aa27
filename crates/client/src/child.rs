//! One child, and one kind of children: a set holds many kinds, and nobody here knows their types.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_core::{Key, Uid};

use crate::children::Child;
use crate::client::Client;
use crate::delete::{Doomed, Propagation};
use crate::desired::Part;
use crate::error::Error;
use crate::kind::version_in;
use crate::known::Known;
use crate::list::owned;
use crate::owner::controller_in;
use crate::write::Outcome;

/// A child that is wanted.
pub(crate) struct Wanted {
    pub(crate) known: Arc<Known>,
    pub(crate) key: Key,
    /// The object, its owner in it.
    pub(crate) value: Value,
    /// The uid of the owner.
    pub(crate) owner: String,
}

impl Wanted {
    pub(crate) async fn apply(self, client: &Client) -> Result<(Child, Outcome), Error> {
        let Self { known, key, value, owner } = self;
        let kind = &known.kind;
        if let Some(current) = client.get_any(&known, &key).await?
            && let Some(controller) = controller_in(kind.meta(&*current))
            && controller.uid != owner
        {
            let controller = format!("{} {}", controller.kind, controller.name);
            return Err(Error::Controlled { object: kind.describe(&key), controller });
        }
        let (_, outcome) = client.apply_any(&known, &key, value, Part::Main, true).await?;
        Ok((Child { kind: kind.kind.clone(), key }, outcome))
    }
}

/// Deletes what the owner controls of the kind and does not want; says what that was.
pub(crate) async fn prune(
    client: &Client,
    known: &Known,
    owner: &Uid,
    wanted: &BTreeSet<(String, Key)>,
) -> Result<Vec<Child>, Error> {
    let mut pruned = Vec::new();
    for child in owned(client, known, owner).await? {
        let (meta, key) = (known.kind.meta(&*child), known.kind.key(&*child));
        let controls = controller_in(meta).is_some_and(|by| Uid::from(by.uid.as_str()) == *owner);
        let going = meta.deletion_timestamp.is_some();
        if !controls || going || wanted.contains(&(known.kind.full_name(), key.clone())) {
            continue;
        }
        let uid = meta.uid.clone().map(|uid| (uid, version_in(meta)));
        let delete =
            Doomed { key: key.clone(), uid, propagation: Some(Propagation::Background), grace: None };
        match delete.send(client, known).await {
            Ok(_) => pruned.push(Child { kind: known.kind.kind.clone(), key }),
            // Gone already, or another object by now: not ours to delete.
            Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pruned)
}
