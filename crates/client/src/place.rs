//! Where objects of a kind are in the API, as URIs.

use std::fmt::Write as _;

use watchkeeper_core::Key;

use crate::kind::Scope;

/// Where a kind is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// `/api/v1` or `/apis/<group>/<version>`.
    root: String,
    plural: String,
    cluster_scoped: bool,
}

impl Place {
    pub(crate) fn new(group: &str, version: &str, plural: &str, scope: Scope) -> Self {
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        Self { root, plural: plural.to_owned(), cluster_scoped: scope == Scope::Cluster }
    }

    /// All objects, or those of a namespace.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let mut path = self.root.clone();
        if let Some(namespace) = namespace.filter(|_| !self.cluster_scoped) {
            path.push_str("/namespaces/");
            encode(namespace, &mut path);
        }
        path.push('/');
        encode(&self.plural, &mut path);
        path
    }

    /// One object.
    pub(crate) fn object(&self, key: &Key) -> String {
        let mut path = self.collection(key.namespace());
        path.push('/');
        encode(key.name(), &mut path);
        path
    }

    /// A part of an object that has a path of its own.
    pub(crate) fn subresource(&self, key: &Key, name: &str) -> String {
        let mut path = self.object(key);
        path.push('/');
        encode(name, &mut path);
        path
    }
}

/// A URI that grows by parameters.
pub(crate) struct Uri(String, bool);

impl Uri {
    pub(crate) fn new(path: String) -> Self {
        Self(path, false)
    }

    pub(crate) fn pair(&mut self, name: &str, value: &str) {
        self.0.push(if self.1 { '&' } else { '?' });
        self.1 = true;
        self.0.push_str(name);
        self.0.push('=');
        encode(value, &mut self.0);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Percent-encodes everything that may not stand anywhere.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => into.push(byte as char),
            // Writing to a string does not fail.
            _ => drop(write!(into, "%{byte:02X}")),
        }
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

    #[test]
    fn names_and_values_cannot_break_out_of_their_place() {
        assert_eq!(
            place::<ConfigMap>().object(&Key::new(Some("a/b"), "../c?d")),
            "/api/v1/namespaces/a%2Fb/configmaps/..%2Fc%3Fd"
        );
        let mut uri = Uri::new("/x".into());
        uri.pair("a", "b&c=d");
        uri.pair("e", "ü");
        assert_eq!(uri.as_str(), "/x?a=b%26c%3Dd&e=%C3%BC");
    }
}
