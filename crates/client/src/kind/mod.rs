//! Kinds of objects: what is known of their types, their paths, names and owners.

pub(crate) mod dynamic;
pub(crate) mod named;
pub(crate) mod owner;
mod path;

use std::any::{Any, TypeId};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, SubResourceScope};
use kube_core::{ApiResource, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use watchkeeper_core::{Key, Version};
use watchkeeper_informer::AnyValue;

use crate::error::Error;
use crate::kind::dynamic::{DynamicKind, DynamicObject};
use crate::kind::path::ScopedPath;

/// A kind of object: the types of k8s-openapi, custom resources, and [`DynamicObject`] for those that have no Rust type.
///
/// Implemented for everything that fits; there is nothing to implement by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of object",
    label = "is not a kind",
    note = "the kinds of Kubernetes are types of the `k8s_openapi` crate; a custom resource is made with `#[watchkeeper::kind(..)]`, which \
            makes a type named after `kind = \"..\"` of the struct that is its spec"
)]
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A [`Kind`] whose type says which kind it is: all but [`DynamicObject`].
///
/// What is declared before there is an object, such as a controller, a cache or a right, is declared of such a type, or by a function
/// that is given a [`DynamicKind`]. Implemented for everything that fits; there is nothing to implement by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of object",
    label = "is not a kind",
    note = "the kinds of Kubernetes are types of the `k8s_openapi` crate; a custom resource is made with `#[watchkeeper::kind(..)]`, which \
            makes a type named after `kind = \"..\"` of the struct that is its spec"
)]
pub trait StaticKind: Kind {}

impl<K: Kind> StaticKind for K where K::Scope: StaticScope {}

/// The scope of a type that says which kind it is.
#[diagnostic::on_unimplemented(
    message = "the kind of these objects is known at run time only",
    label = "does not say which kind is meant",
    note = "give the `DynamicKind` to the function of the same purpose with `dynamic` in its name: `Controller::dynamic`, \
            `Manager::cache_dynamic`, `Webhook::dynamic`, `owns_dynamic`, `reads_live_dynamic`"
)]
pub trait StaticScope {}

#[diagnostic::do_not_recommend]
impl StaticScope for NamespaceResourceScope {}
#[diagnostic::do_not_recommend]
impl StaticScope for ClusterResourceScope {}
#[diagnostic::do_not_recommend]
impl StaticScope for SubResourceScope {}

/// The key of an object: its namespace and its name.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_client::key_of;
/// let mut map = ConfigMap::default();
/// map.metadata.namespace = Some("shop".into());
/// map.metadata.name = Some("cart".into());
/// assert_eq!(key_of(&map).to_string(), "shop/cart");
/// ```
pub fn key_of<K: Kind>(object: &K) -> Key {
    key_in(object.meta())
}

/// The `apiVersion` and the `kind` of an object: of its type, or of a [`DynamicObject`] its own.
pub fn kind_of<K: Kind>(object: &K) -> (String, String) {
    match (object as &dyn Any).downcast_ref::<DynamicObject>() {
        Some(object) => (object.api_version.clone(), object.kind.clone()),
        None => (K::api_version(&()).into_owned(), K::kind(&()).into_owned()),
    }
}

/// A kind, as everything below the typed functions knows it: where it is, what it is called, and what can be done with values
/// of its type. Only the functions in here are compiled for each kind.
pub(crate) struct KindInfo {
    /// What it is called, for messages.
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) path: ScopedPath,
    pub(crate) scope: Scope,
    /// `pods`, `deployments.apps`.
    pub(crate) resource: String,
    /// What a source of it asks for.
    pub(crate) api: ApiResource,
    decode: fn(&[u8]) -> Result<AnyValue, String>,
    encode: fn(&dyn Any) -> serde_json::Result<Value>,
    meta: fn(&dyn Any) -> &ObjectMeta,
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
    /// The type does not tell.
    Unknown,
}

impl KindInfo {
    pub(crate) fn of<K: Kind>() -> Self {
        Self::new::<K>(ApiResource::erase::<K>(&()), Scope::of::<K>())
    }

    /// A kind that is known at run time only.
    pub(crate) fn dynamic(kind: &DynamicKind) -> Self {
        Self::new::<DynamicObject>(kind.resource(), kind.scope())
    }

    fn new<K: Kind>(api: ApiResource, scope: Scope) -> Self {
        let ApiResource { group, plural, .. } = &api;
        Self {
            kind: api.kind.clone(),
            api_version: api.api_version.clone(),
            scope,
            path: ScopedPath::new(group, &api.version, plural, scope),
            resource: if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") },
            decode: |json| Ok(Arc::new(watchkeeper_informer::decode::<K>(json)?)),
            encode: |value| serde_json::to_value(of_its_kind::<K>(value)),
            meta: |value| of_its_kind::<K>(value).meta(),
            api,
        }
    }

    /// Fails for a [`DynamicObject`] of which nobody said what it is.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.api.plural.is_empty() {
            let missing = "this client does not know which kind is meant: use Client::dynamic";
            return Err(Error::Incomplete { object: self.kind.clone(), missing });
        }
        Ok(())
    }

    /// A kind with its group: different kinds may share a name.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.api_version, self.kind)
    }

    /// An object in a message: its kind and its key, nothing else of it.
    pub(crate) fn describe(&self, key: &Key) -> String {
        format!("{} {key}", self.kind)
    }

    /// Decodes an object, or says which field of which object is wrong.
    pub(crate) fn decode(&self, json: &[u8], object: &str) -> Result<AnyValue, Error> {
        (self.decode)(json).map_err(|detail| Error::Decode { object: object.to_owned(), detail })
    }

    /// The object as JSON.
    pub(crate) fn encode(&self, object: &dyn Any) -> Result<Value, Error> {
        (self.encode)(object).map_err(|error| Error::Decode {
            object: self.describe(&self.key(object)),
            detail: format!("its type does not encode: {error}"),
        })
    }

    pub(crate) fn meta<'a>(&self, object: &'a dyn Any) -> &'a ObjectMeta {
        (self.meta)(object)
    }

    pub(crate) fn key(&self, object: &dyn Any) -> Key {
        key_in(self.meta(object))
    }
}

impl Scope {
    fn of<K: Kind>() -> Self {
        let scope = TypeId::of::<K::Scope>();
        if scope == TypeId::of::<NamespaceResourceScope>() {
            Self::Namespaced
        } else if scope == TypeId::of::<ClusterResourceScope>() {
            Self::Cluster
        } else {
            Self::Unknown
        }
    }
}

/// A value as what it is. What a kind's functions are given was decoded by that kind.
fn of_its_kind<K: Kind>(value: &dyn Any) -> &K {
    match value.downcast_ref() {
        Some(object) => object,
        None => unreachable!("a value of a kind is of its type"),
    }
}

/// The same, to be kept.
pub(crate) fn typed<K: Kind>(value: AnyValue) -> Arc<K> {
    match value.downcast() {
        Ok(object) => object,
        Err(_) => unreachable!("a value of a kind is of its type"),
    }
}

fn key_in(meta: &ObjectMeta) -> Key {
    Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
}

pub(crate) fn version_in(meta: &ObjectMeta) -> Version {
    Version::from(meta.resource_version.as_deref().unwrap_or_default())
}
