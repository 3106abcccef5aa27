use http::Method;
use watchkeeper_description::{Requested, Verbs};

/// A request in the words of Kubernetes. Fields that do not apply are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The number of the request, counted from 1.
    pub number: u64,
    /// The user.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; for what is not a resource, the
    /// method in small letters.
    pub verb: &'static str,
    /// The path.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// The API group; empty for the core one.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The resource: `configmaps`.
    pub resource: String,
    /// The subresource: `status`.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

impl Call {
    /// Reads a request.
    pub(crate) fn read<B>(request: &http::Request<B>, user: &str, number: u64) -> Self {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let target = request.uri().path_and_query().map_or(path, |target| target.as_str());
        let asked = Requested::read(request.method().as_str(), target);
        let verb = match asked.resource {
            "" => unnamed(request.method()),
            _ => asked.verb.names().next().unwrap_or("other"),
        };
        Self {
            number,
            user: user.into(),
            verb,
            path: path.into(),
            query: query.into(),
            group: asked.group.into(),
            version: asked.version.into(),
            resource: asked.resource.into(),
            subresource: asked.subresource.into(),
            namespace: asked.namespace.into(),
            name: asked.name.into(),
        }
    }

    /// As authorization sees it, if it does so with this verb.
    pub(crate) fn requested(&self, verb: Verbs) -> Requested<'_> {
        let Self { group, version, resource, subresource, namespace, name, .. } = self;
        Requested { verb, group, version, resource, subresource, namespace, name }
    }

    /// Whether the request is a write.
    pub fn is_write(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether the request is about this resource, or this subresource if there is a slash: `pods`, `pods/status`.
    pub fn is_of(&self, resource: &str) -> bool {
        match resource.split_once('/') {
            Some((resource, subresource)) => self.resource == resource && self.subresource == subresource,
            None => self.resource == resource && self.subresource.is_empty(),
        }
    }

    /// What whoever may not do this is told.
    pub(crate) fn forbidden(&self) -> String {
        let Self { user, verb, path, group, namespace, name, .. } = self;
        if self.resource.is_empty() {
            return format!("forbidden: User {user:?} cannot {verb} path {path:?}");
        }
        let qualified = match group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        };
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        let subject = if name.is_empty() { qualified } else { format!("{qualified} {name:?}") };
        let scope = match namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "{subject} is forbidden: User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
        )
    }
}

/// What is done with what is not a resource.
fn unnamed(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "get",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, uri: &str) -> Call {
        Call::read(&http::Request::builder().method(method).uri(uri).body(()).unwrap(), "me", 1)
    }

    #[test]
    fn requests_are_read_as_rbac_reads_them() {
        for (method, uri, verb, place) in [
            ("GET", "/api/v1/pods", "list", "/pods//"),
            ("GET", "/api/v1/pods?watch=true&x=1", "watch", "/pods//"),
            ("GET", "/api/v1/watch/namespaces/n/pods", "watch", "n/pods//"),
            ("POST", "/api/v1/namespaces/n/pods", "create", "n/pods//"),
            ("PUT", "/apis/apps/v1/namespaces/n/deployments/d/status", "update", "n/deployments/d/status"),
            ("PATCH", "/api/v1/namespaces/n", "patch", "/namespaces/n/"),
            ("PUT", "/api/v1/namespaces/n/finalize", "update", "/namespaces/n/finalize"),
            ("DELETE", "/apis/example.com/v1/widgets", "deletecollection", "/widgets//"),
            ("DELETE", "/apis/example.com/v1/widgets/w", "delete", "/widgets/w/"),
            ("GET", "/version", "get", "///"),
        ] {
            let call = read(method, uri);
            assert_eq!(call.verb, verb, "{uri}");
            let Call { namespace, resource, name, subresource, .. } = call;
            assert_eq!(format!("{namespace}/{resource}/{name}/{subresource}"), place, "{uri}");
        }
        assert!(read("PUT", "/api/v1/namespaces/n/pods/p/status").is_of("pods/status"));
        assert!(!read("PUT", "/api/v1/namespaces/n/pods/p/status").is_of("pods"));
    }

    #[test]
    fn who_is_denied_is_told_what() {
        assert_eq!(
            read("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l").forbidden(),
            "leases.coordination.k8s.io \"l\" is forbidden: User \"me\" cannot update resource \"leases\" in API group \
             \"coordination.k8s.io\" in the namespace \"n\""
        );
        assert_eq!(
            read("GET", "/api/v1/nodes").forbidden(),
            "nodes is forbidden: User \"me\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
        );
    }
}
