use http::Method;

/// What a request asks for, in the words of Kubernetes. What does not apply is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Requests are counted from 1.
    pub number: u64,
    /// Who asks.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; for what is not a resource, the
    /// method in small letters.
    pub verb: &'static str,
    /// The path.
    pub path: String,
    /// What follows the question mark.
    pub query: String,
    /// The API group; empty for the core one.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The resource: `configmaps`.
    pub resource: String,
    /// What of the object: `status`.
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
        let mut call =
            Self { number, user: user.into(), path: path.into(), query: query.into(), ..Self::default() };
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["api", version, rest @ ..] => {
                call.version = (*version).into();
                rest
            }
            ["apis", group, version, rest @ ..] => {
                (call.group, call.version) = ((*group).into(), (*version).into());
                rest
            }
            _ => &[],
        };
        let (watched, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            rest => (query.split('&').any(|pair| matches!(pair, "watch=1" | "watch=true" | "watch")), rest),
        };
        let rest = match rest {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status" | "finalize"]) => {
                call.namespace = (*namespace).into();
                rest
            }
            rest => rest,
        };
        let part = |index: usize| rest.get(index).map(|part| (*part).to_owned()).unwrap_or_default();
        (call.resource, call.name, call.subresource) = (part(0), part(1), part(2));
        call.verb = verb(request.method(), call.resource.is_empty(), call.name.is_empty(), watched);
        call
    }

    /// Whether it would change something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether it is about this resource, or this subresource if there is a slash: `pods`, `pods/status`.
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

fn verb(method: &Method, no_resource: bool, no_name: bool, watched: bool) -> &'static str {
    match *method {
        Method::GET if no_resource => "get",
        Method::GET | Method::HEAD if watched => "watch",
        Method::GET | Method::HEAD if no_name => "list",
        Method::GET | Method::HEAD => "get",
        Method::POST if no_resource => "post",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if no_name => "deletecollection",
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
