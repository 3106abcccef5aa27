//! Where objects of a kind are in the API, as URIs.

use watchkeeper_core::Key;
use watchkeeper_wire::ResourcePath;

use crate::kind::Scope;

/// Where a kind is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: ResourcePath,
    cluster_scoped: bool,
}

impl Place {
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

    fn place<K: Kind>() -> Place {
        KindInfo::of::<K>().place
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let key = Key::new(Some("shop"), "cart");
        assert_eq!(place::<ConfigMap>().object(&key), "/api/v1/namespaces/shop/configmaps/cart");
        let deployments = place::<Deployment>();
        assert_eq!(deployments.collection(None), "/apis/apps/v1/deployments");
        assert_eq!(
            deployments.subresource(&key, "scale"),
            "/apis/apps/v1/namespaces/shop/deployments/cart/scale"
        );
        assert_eq!(place::<Namespace>().object(&Key::new(None, "a")), "/api/v1/namespaces/a");
    }
}
