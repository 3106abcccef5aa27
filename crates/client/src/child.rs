//! One child and one kind of children, with their types erased: a set holds many kinds.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use futures_util::future::BoxFuture;
use watchkeeper_core::{Key, Uid};

use crate::children::Child;
use crate::client::Client;
use crate::delete::Propagation;
use crate::error::Error;
use crate::kind::{Kind, describe, full_kind, key_of, kind_name};
use crate::owner::controller_of;
use crate::write::Outcome;

/// A child that is wanted.
pub(crate) trait Wanted: Send {
    fn apply<'c>(self: Box<Self>, client: &'c Client) -> BoxFuture<'c, Result<(Child, Outcome), Error>>
    where
        Self: 'c;
}

/// A kind of which children may be there that are not wanted.
pub(crate) trait Pruned: Send {
    fn kind(&self) -> String;

    /// Deletes what the owner controls of the kind and does not want; says what that was.
    fn prune<'c>(
        &'c self,
        client: &'c Client,
        owner: &'c Uid,
        wanted: &'c BTreeSet<(String, Key)>,
    ) -> BoxFuture<'c, Result<Vec<Child>, Error>>;
}

pub(crate) struct Applying<K> {
    pub(crate) key: Key,
    pub(crate) object: K,
    /// The uid of the owner.
    pub(crate) owner: String,
}

impl<K: Kind> Wanted for Applying<K> {
    fn apply<'c>(self: Box<Self>, client: &'c Client) -> BoxFuture<'c, Result<(Child, Outcome), Error>>
    where
        Self: 'c,
    {
        Box::pin(async move {
            let Self { key, object, owner } = *self;
            if let Some(current) = client.get::<K>(&key).await?
                && let Some(controller) = controller_of(&*current)
                && controller.uid != owner
            {
                let controller = format!("{} {}", controller.kind, controller.name);
                return Err(Error::Controlled { object: describe::<K>(&key), controller });
            }
            let written = client.apply(&object).await?;
            Ok((Child { kind: kind_name::<K>(), key }, written.outcome))
        })
    }
}

pub(crate) struct Pruning<K>(PhantomData<fn() -> K>);

impl<K> Default for Pruning<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Kind> Pruned for Pruning<K> {
    fn kind(&self) -> String {
        full_kind::<K>()
    }

    fn prune<'c>(
        &'c self,
        client: &'c Client,
        owner: &'c Uid,
        wanted: &'c BTreeSet<(String, Key)>,
    ) -> BoxFuture<'c, Result<Vec<Child>, Error>> {
        Box::pin(async move {
            let mut pruned = Vec::new();
            for child in client.list::<K>().owned_by(owner).await? {
                let key = key_of(&*child);
                let controls = controller_of(&*child).is_some_and(|by| Uid::from(by.uid.as_str()) == *owner);
                let going = child.meta().deletion_timestamp.is_some();
                if !controls || going || wanted.contains(&(full_kind::<K>(), key.clone())) {
                    continue;
                }
                match client.delete(&*child).propagation(Propagation::Background).await {
                    Ok(_) => pruned.push(Child { kind: kind_name::<K>(), key }),
                    // Gone already, or another object by now: not ours to delete.
                    Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(pruned)
        })
    }
}
