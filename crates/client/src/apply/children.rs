use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use watchkeeper_core::{Key, Uid};

use crate::apply::child::{self, Wanted};
use crate::client::Client;
use crate::error::Error;
use crate::kind::dynamic::{DynamicKind, DynamicObject};
use crate::kind::owner::controller_reference;
use crate::kind::{Kind, Scope, key_of};
use crate::state::KindState;
use crate::write::Outcome;

/// The set of objects that an owner wants to have, of any number of kinds. Awaiting it applies and prunes them.
///
/// - Each object is [applied](Client::apply), with the owner as its controller. An empty namespace becomes the owner's.
/// - An object of that name which nobody controls is adopted. One that somebody else controls is left alone:
///   [`Error::Controlled`].
/// - Objects of the kinds in the set that the owner controls and that are not in the set are deleted, once everything in
///   the set is there. Kinds of which nothing is wanted now, but may have been earlier, are named with
///   [`prunes`](Self::prunes).
/// - If nothing differs, nothing is sent.
///
/// All kinds must be [declared](Client::declare), since the cache is what knows the children there are.
///
/// If something in the set cannot be applied, the rest is applied nevertheless, nothing is deleted, and the first error is
/// returned.
pub struct Children<'a> {
    client: &'a Client,
    owner: Result<Parent, Error>,
    wanted: Vec<Wanted>,
    /// The kinds of which everything goes that is not wanted.
    pruned: Vec<Arc<KindState>>,
    /// What is wrong before anything was sent.
    failed: Option<Error>,
    keys: BTreeSet<(String, Key)>,
}

struct Parent {
    what: String,
    namespace: Option<String>,
    reference: OwnerReference,
}

/// The kind and key of a child.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Child {
    /// The kind of the child.
    pub kind: String,
    /// The namespace and name of the child.
    pub key: Key,
}

/// The result of applying a set of children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcomes {
    /// Children that did not exist.
    pub created: Vec<Child>,
    /// Children that differed and were changed.
    pub changed: Vec<Child>,
    /// Children that were as wanted. No request was sent for them.
    pub unchanged: Vec<Child>,
    /// Children that were not wanted and were deleted.
    pub pruned: Vec<Child>,
}

impl Outcomes {
    /// Whether any child was created, changed or pruned.
    pub fn is_changed(&self) -> bool {
        !(self.created.is_empty() && self.changed.is_empty() && self.pruned.is_empty())
    }
}

/// What can be handed to [`Children::apply`]: a reference to one object, an array or a `Vec` of some, or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of children",
    label = "cannot be applied as children",
    note = "one object is applied as `&object` or `[object]`, several as an array or a `Vec`, perhaps one as an `Option`"
)]
pub trait ChildSet {
    /// The kind of the objects.
    type Kind: Kind;
    /// The objects.
    fn objects(self) -> Vec<Self::Kind>;
}

impl<K: Kind> ChildSet for &K {
    type Kind = K;
    fn objects(self) -> Vec<K> {
        vec![self.clone()]
    }
}

impl<K: Kind, const N: usize> ChildSet for [K; N] {
    type Kind = K;
    fn objects(self) -> Vec<K> {
        self.into()
    }
}

impl<K: Kind> ChildSet for Vec<K> {
    type Kind = K;
    fn objects(self) -> Vec<K> {
        self
    }
}

impl<K: Kind> ChildSet for Option<K> {
    type Kind = K;
    fn objects(self) -> Vec<K> {
        self.into_iter().collect()
    }
}

impl Client {
    /// The whole set of objects that an owner wants to have.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
    /// # use watchkeeper_client::{Client, Error};
    /// # async fn example(client: &Client, owner: &ConfigMap, page: ConfigMap, service: Service) -> Result<(), Error> {
    /// let outcomes = client.children(owner).apply([page]).apply(&service).prunes::<Secret>().await?;
    /// println!("{} created, {} pruned", outcomes.created.len(), outcomes.pruned.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn children<O: Kind>(&self, owner: &O) -> Children<'_> {
        let parent = controller_reference(owner).map(|reference| Parent {
            what: format!("{} {}", reference.kind, key_of(owner)),
            namespace: owner.meta().namespace.clone().filter(|namespace| !namespace.is_empty()),
            reference,
        });
        Children {
            client: self,
            owner: parent,
            wanted: Vec::new(),
            pruned: Vec::new(),
            failed: None,
            keys: BTreeSet::new(),
        }
    }
}

impl Children<'_> {
    /// Adds objects to the set. Other children of their kind are pruned.
    ///
    /// A [`DynamicObject`] is of the kind that it names. So an empty set of them names none: see
    /// [`prunes_dynamic`](Self::prunes_dynamic).
    #[must_use]
    pub fn apply<S: ChildSet>(mut self, set: S) -> Self {
        if TypeId::of::<S::Kind>() != TypeId::of::<DynamicObject>() {
            self = self.prunes::<S::Kind>();
        }
        for object in set.objects() {
            let child = self.client.kind_state_of(&object).and_then(|kind| self.child(&kind, &object));
            match child {
                Ok(child) => {
                    let kind = Arc::clone(&child.kind);
                    self.wanted.push(child);
                    self = self.prunes_any(kind);
                }
                Err(error) => drop(self.failed.get_or_insert(error)),
            }
        }
        self
    }

    /// Prunes children of this kind that are not in the set, also if the set has none of this kind.
    #[must_use]
    pub fn prunes<K: Kind>(self) -> Self {
        let kind = self.client.kind_state::<K>();
        self.prunes_any(kind)
    }

    /// As [`prunes`](Self::prunes), for a kind that is known at run time only.
    #[must_use]
    pub fn prunes_dynamic(self, kind: &DynamicKind) -> Self {
        let kind = self.client.dynamic(kind).kind_state::<DynamicObject>();
        self.prunes_any(kind)
    }

    fn prunes_any(mut self, kind: Arc<KindState>) -> Self {
        if !self.pruned.iter().any(|pruned| Arc::ptr_eq(pruned, &kind)) {
            self.pruned.push(kind);
        }
        self
    }

    /// Applies and prunes the children, as awaiting the set does.
    pub async fn done(self) -> Result<Outcomes, Error> {
        self.await
    }

    /// The object with its namespace and its controller, if the owner may own it.
    fn child(&mut self, kind: &Arc<KindState>, object: &dyn Any) -> Result<Wanted, Error> {
        let parent = self.owner.as_ref().map_err(Error::clone)?;
        let meta = kind.info.meta(object);
        let own = meta.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = match kind.info.scope {
            Scope::Namespaced => own.or(parent.namespace.as_deref()),
            Scope::Cluster | Scope::Unknown => own,
        };
        let key = Key::new(namespace, meta.name.as_deref().unwrap_or_default());
        if parent.namespace.is_some() && namespace != parent.namespace.as_deref() {
            let child = kind.info.describe(&key);
            return Err(Error::CannotOwn { owner: parent.what.clone(), child });
        }
        if !self.keys.insert((kind.info.full_name(), key.clone())) {
            let child = kind.info.describe(&key);
            return Err(Error::Twice { owner: parent.what.clone(), child });
        }
        let mut value = kind.info.encode(object)?;
        let metadata = &mut value["metadata"];
        metadata["namespace"] = namespace.into();
        let mut owners = match metadata["ownerReferences"].take() {
            Value::Array(owners) => owners,
            _ => Vec::new(),
        };
        owners.retain(|owner| owner["uid"] != *parent.reference.uid);
        owners.push(json!(parent.reference));
        metadata["ownerReferences"] = owners.into();
        let owner = parent.reference.uid.clone();
        Ok(Wanted { kind: Arc::clone(kind), key, value, owner })
    }

    async fn make_so(self) -> Result<Outcomes, Error> {
        let Self { client, owner, wanted, pruned, failed, keys } = self;
        let parent = owner?;
        if let Some(error) = failed {
            return Err(error);
        }
        let mut outcomes = Outcomes::default();
        let mut first_error = None;
        for child in wanted {
            match child.apply(client).await {
                Ok((child, Outcome::Created)) => outcomes.created.push(child),
                Ok((child, Outcome::Changed)) => outcomes.changed.push(child),
                Ok((child, Outcome::Unchanged)) => outcomes.unchanged.push(child),
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        if let Some(error) = first_error {
            return Err(error);
        }
        let uid = Uid::from(parent.reference.uid.as_str());
        for kind in pruned {
            outcomes.pruned.extend(child::prune(client, &kind, &uid, &keys).await?);
        }
        Ok(outcomes)
    }
}

impl<'a> IntoFuture for Children<'a> {
    type Output = Result<Outcomes, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make_so())
    }
}
