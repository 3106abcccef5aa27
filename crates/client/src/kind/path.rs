//! Paths of the objects of a kind in the API.

use watchkeeper_core::Key;
use watchkeeper_wire::ResourcePath;

use crate::kind::Scope;

/// The path of a kind. Drops the namespace of keys if the kind is cluster-scoped.
#[derive(Clone, Debug)]
pub(crate) struct ScopedPath {
    path: ResourcePath,
    cluster_scoped: bool,
}

impl ScopedPath {
    pub(crate) fn new(group: &str, version: &str, plural: &str, scope: Scope) -> Self {
        Self { path: ResourcePath::new(group, version, plural), cluster_scoped: scope == Scope::Cluster }
    }

    /// All objects, or those of a namespace.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        self.path.collection(self.within(namespace))
    }

    /// One object.
    pub(crate) fn object(&self, key: &Key) -> String {
        self.path.object(self.within(key.namespace()), key.name())
    }

    /// A part of an object that has a path of its own.
    pub(crate) fn subresource(&self, key: &Key, name: &str) -> String {
        self.path.subresource(self.within(key.namespace()), key.name(), name)
    }

    /// The namespace, unless the kind is in none.
    fn within<'a>(&self, namespace: Option<&'a str>) -> Option<&'a str> {
        namespace.filter(|_| !self.cluster_scoped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{Kind, KindInfo};
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    fn path<K: Kind>() -> ScopedPath {
        KindInfo::of::<K>().path
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let key = Key::new(Some("shop"), "cart");
        assert_eq!(path::<ConfigMap>().object(&key), "/api/v1/namespaces/shop/configmaps/cart");
        let deployments = path::<Deployment>();
        assert_eq!(deployments.collection(None), "/apis/apps/v1/deployments");
        assert_eq!(
            deployments.subresource(&key, "scale"),
            "/apis/apps/v1/namespaces/shop/deployments/cart/scale"
        );
        assert_eq!(path::<Namespace>().object(&Key::new(None, "a")), "/api/v1/namespaces/a");
    }
}
