use std::fmt::Write as _;

/// The path of a resource in the API, and of its objects.
///
/// Names are escaped, so that none of them leads to another place.
///
/// ```
/// use watchkeeper_wire::ResourcePath;
/// let deployments = ResourcePath::new("apps", "v1", "deployments");
/// assert_eq!(deployments.collection(None), "/apis/apps/v1/deployments");
/// assert_eq!(deployments.object(Some("shop"), "cart"), "/apis/apps/v1/namespaces/shop/deployments/cart");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath {
    /// `/api/v1` or `/apis/<group>/<version>`.
    root: String,
    plural: String,
}

impl ResourcePath {
    /// The path of a resource by its plural name; the core group is `""`.
    pub fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { root: Self::version(group, version), plural: plural.to_owned() }
    }

    /// The path of a version of a group: `/api/v1`, `/apis/apps/v1`.
    pub fn version(group: &str, version: &str) -> String {
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
    }

    /// The path of all objects, or of those in a namespace.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        let mut path = self.root.clone();
        if let Some(namespace) = namespace {
            path.push_str("/namespaces");
            push(&mut path, namespace);
        }
        push(&mut path, &self.plural);
        path
    }

    /// The path of one object.
    pub fn object(&self, namespace: Option<&str>, name: &str) -> String {
        let mut path = self.collection(namespace);
        push(&mut path, name);
        path
    }

    /// The path of a subresource of an object.
    pub fn subresource(&self, namespace: Option<&str>, name: &str, subresource: &str) -> String {
        let mut path = self.object(namespace, name);
        push(&mut path, subresource);
        path
    }
}

/// Adds a segment to a path.
fn push(path: &mut String, segment: &str) {
    path.push('/');
    encode(segment, path);
}

/// A path that grows by query parameters.
///
/// ```
/// use watchkeeper_wire::Uri;
/// let mut uri = Uri::new("/api/v1/pods");
/// uri.pair("labelSelector", "a in (b,c)");
/// uri.pair("limit", "2");
/// assert_eq!(uri.as_str(), "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&limit=2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    text: String,
    has_query: bool,
}

impl Uri {
    /// A path without parameters.
    pub fn new(path: impl Into<String>) -> Self {
        Self { text: path.into(), has_query: false }
    }

    /// Adds a parameter. The value is escaped, the name is not.
    pub fn pair(&mut self, name: &str, value: &str) {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        encode(value, &mut self.text);
    }

    /// The text of a request line.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Percent-encodes everything that RFC 3986 does not let stand anywhere.
pub fn encode(text: &str, into: &mut String) {
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

    #[test]
    fn paths_are_those_of_the_api() {
        let config_maps = ResourcePath::new("", "v1", "configmaps");
        assert_eq!(config_maps.object(Some("shop"), "cart"), "/api/v1/namespaces/shop/configmaps/cart");
        assert_eq!(ResourcePath::new("", "v1", "namespaces").object(None, "a"), "/api/v1/namespaces/a");
        let scale = ResourcePath::new("apps", "v1", "deployments").subresource(Some("shop"), "cart", "scale");
        assert_eq!(scale, "/apis/apps/v1/namespaces/shop/deployments/cart/scale");
    }

    #[test]
    fn names_and_values_cannot_break_out_of_their_place() {
        let config_maps = ResourcePath::new("", "v1", "configmaps");
        assert_eq!(
            config_maps.object(Some("a/b"), "../c?d"),
            "/api/v1/namespaces/a%2Fb/configmaps/..%2Fc%3Fd"
        );
        let mut uri = Uri::new("/x");
        uri.pair("a", "b&c=d");
        uri.pair("e", "ü");
        assert_eq!(uri.as_str(), "/x?a=b%26c%3Dd&e=%C3%BC");
    }
}
