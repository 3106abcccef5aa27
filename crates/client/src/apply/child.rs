//! One child, and one kind of children: a set holds many kinds, and nobody here knows their types.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_core::{Key, Uid};

use crate::apply::children::Child;
use crate::client::Client;
use crate::error::Error;
use crate::kind::owner::controller_in;
use crate::kind::version_in;
use crate::read::list::owned;
use crate::state::KindState;
use crate::state::desired::Part;
use crate::write::Outcome;
use crate::write::delete::{Doomed, Propagation};

/// A child that is wanted.
pub(crate) struct Wanted {
    pub(crate) kind: Arc<KindState>,
    pub(crate) key: Key,
    /// The object, its owner in it.
    pub(crate) value: Value,
    /// The uid of the owner.
    pub(crate) owner: String,
}

impl Wanted {
    pub(crate) async fn apply(self, client: &Client) -> Result<(Child, Outcome), Error> {
        let Self { kind, key, value, owner } = self;
        let info = &kind.info;
        if let Some(current) = client.get_any(&kind, &key).await?
            && let Some(controller) = controller_in(info.meta(&*current))
            && controller.uid != owner
        {
            let controller = format!("{} {}", controller.kind, controller.name);
            return Err(Error::Controlled { object: info.describe(&key), controller });
        }
        let (_, outcome) = client.apply_any(&kind, &key, value, Part::Main, true).await?;
        Ok((Child { kind: info.kind.clone(), key }, outcome))
    }
}

/// Deletes what the owner controls of the kind and does not want; says what that was.
pub(crate) async fn prune(
    client: &Client,
    kind: &KindState,
    owner: &Uid,
    wanted: &BTreeSet<(String, Key)>,
) -> Result<Vec<Child>, Error> {
    let mut pruned = Vec::new();
    for child in owned(client, kind, owner).await? {
        let (meta, key) = (kind.info.meta(&*child), kind.info.key(&*child));
        let controls = controller_in(meta).is_some_and(|by| Uid::from(by.uid.as_str()) == *owner);
        let going = meta.deletion_timestamp.is_some();
        if !controls || going || wanted.contains(&(kind.info.full_name(), key.clone())) {
            continue;
        }
        let uid = meta.uid.clone().map(|uid| (uid, version_in(meta)));
        let delete =
            Doomed { key: key.clone(), uid, propagation: Some(Propagation::Background), grace: None };
        match delete.send(client, kind).await {
            Ok(_) => pruned.push(Child { kind: kind.info.kind.clone(), key }),
            // Gone already, or another object by now: not ours to delete.
            Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pruned)
}
