use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::TypeId;
use watchkeeper_core::Key;

/// A kind of object whose type is known at compile time: the types of k8s-openapi, and custom resources that derive it.
///
/// Implemented for everything that fits; there is nothing to implement by hand.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

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
    let meta = object.meta();
    Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
}

/// What a kind is called, for messages.
pub(crate) fn kind_name<K: Kind>() -> String {
    K::kind(&()).into_owned()
}

/// A kind with its group: different kinds may share a name.
pub(crate) fn full_kind<K: Kind>() -> String {
    format!("{}/{}", K::api_version(&()), K::kind(&()))
}

/// Whether objects of the kind live in namespaces.
pub(crate) fn is_namespaced<K: Kind>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>()
}

/// Whether objects of the kind live outside namespaces.
pub(crate) fn is_cluster_scoped<K: Kind>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>()
}

/// An object in a message: its kind and its key, nothing else of it.
pub(crate) fn describe<K: Kind>(key: &Key) -> String {
    format!("{} {key}", K::kind(&()))
}

pub(crate) fn describe_object<K: Kind>(object: &K) -> String {
    describe::<K>(&key_of(object))
}
