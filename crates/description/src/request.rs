use std::fmt;

use crate::Verbs;
use crate::rights::{Right, target};

/// A request as authorization sees it. Fields that do not apply are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested<'a> {
    /// The verb; none if RBAC has no verb for the request.
    pub verb: Verbs,
    /// The API group; empty for the core one.
    pub group: &'a str,
    /// The version of the group.
    pub version: &'a str,
    /// The resource: `configmaps`. Empty if it is about none, such as discovery.
    pub resource: &'a str,
    /// The part of the object: `status`.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The object.
    pub name: &'a str,
}

impl<'a> Requested<'a> {
    /// Reads a request by its method and its path with query.
    ///
    /// ```
    /// use watchkeeper_description::{Requested, Verbs};
    /// let request = Requested::read("PATCH", "/apis/apps/v1/namespaces/shop/deployments/cart/status?force=true");
    /// assert_eq!((request.verb, request.resource), (Verbs::PATCH, "deployments"));
    /// assert_eq!((request.namespace, request.name, request.subresource), ("shop", "cart", "status"));
    /// ```
    pub fn read(method: &str, target: &'a str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let api = match parts.next() {
            Some("api") => parts.next().map(|version| ("", version)),
            Some("apis") => parts.next().zip(parts.next()),
            _ => None,
        };
        let rest: Vec<&str> = if api.is_some() { parts.collect() } else { Vec::new() };
        let (group, version) = api.unwrap_or_default();
        let (watched, rest) = match rest.as_slice() {
            ["watch", rest @ ..] => (true, rest),
            rest => (query.split('&').any(|pair| matches!(pair, "watch=1" | "watch=true" | "watch")), rest),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status" | "finalize"]) => {
                (*namespace, rest)
            }
            rest => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default();
        let (resource, name, subresource) = (part(0), part(1), part(2));
        let verb = verb(method, name.is_empty(), watched);
        Self { verb, group, version, resource, subresource, namespace, name }
    }

    /// Whether everybody may do this: discovery, health, and questions about oneself.
    pub(crate) fn is_free(&self) -> bool {
        self.resource.is_empty()
            || self.group == "authorization.k8s.io" && self.resource.starts_with("selfsubject")
            || self.group == "authentication.k8s.io" && self.resource.starts_with("selfsubject")
    }
}

fn verb(method: &str, no_name: bool, watched: bool) -> Verbs {
    match method {
        "GET" | "HEAD" if watched => Verbs::WATCH,
        "GET" | "HEAD" if no_name => Verbs::LIST,
        "GET" | "HEAD" => Verbs::GET,
        "POST" => Verbs::CREATE,
        "PUT" => Verbs::UPDATE,
        "PATCH" => Verbs::PATCH,
        "DELETE" if no_name => Verbs::DELETE_COLLECTION,
        "DELETE" => Verbs::DELETE,
        _ => Verbs::NONE,
    }
}

/// A request that the program has not declared, and what to write so that it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Undeclared {
    verb: Verbs,
    group: String,
    plural: String,
    subresource: String,
    /// The kind, if it is known.
    kind: Option<String>,
    /// Where it may be done, if elsewhere.
    elsewhere: bool,
}

impl Undeclared {
    pub(crate) fn new(request: &Requested<'_>, rights: &[Right]) -> Self {
        let mut same = rights.iter().filter(|right| {
            right.resource.group == request.group && right.resource.plural == request.resource
        });
        let elsewhere = same
            .clone()
            .any(|right| right.subresource == request.subresource && right.verbs.contains(request.verb));
        Self {
            verb: request.verb,
            group: request.group.to_owned(),
            plural: request.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            kind: same.next().map(|right| right.resource.kind.clone()),
            elsewhere,
        }
    }

    /// Sets the kind of the resource.
    #[must_use]
    pub fn of_kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// The line to add to a controller or to the manager.
    fn line(&self) -> String {
        let kind = self.kind.as_deref().unwrap_or("K");
        let read = Verbs::READ.contains(self.verb);
        match (self.subresource.as_str(), read) {
            ("", true) => format!(".reads_live::<{kind}>()"),
            ("", false) => format!(".writes::<{kind}>({})", self.verb.source()),
            ("status", false) if self.verb == Verbs::PATCH => format!(".writes_status::<{kind}>()"),
            (subresource, _) => {
                format!(".uses_subresource::<{kind}>({subresource:?}, {})", self.verb.source())
            }
        }
    }
}

impl fmt::Display for Undeclared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = target(&self.plural, &self.subresource);
        let group = if self.group.is_empty() { String::new() } else { format!(" of {}", self.group) };
        if self.elsewhere {
            return write!(
                f,
                "this program has not declared that it may {} {what}{group} here, only in other namespaces or of other names: \
                 its cache of them is limited",
                self.verb
            );
        }
        write!(
            f,
            "this program has not declared that it may {} {what}{group}: add {} to the controller, or to the manager",
            self.verb,
            self.line()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_rbac_reads_them() {
        for (method, uri, verb, place) in [
            ("GET", "/api/v1/pods", "list", "//pods//"),
            ("GET", "/api/v1/pods?watch=true&x=1", "watch", "//pods//"),
            ("GET", "/api/v1/watch/namespaces/n/pods", "watch", "/n/pods//"),
            ("POST", "/api/v1/namespaces/n/pods", "create", "/n/pods//"),
            (
                "PUT",
                "/apis/apps/v1/namespaces/n/deployments/d/status",
                "update",
                "apps/n/deployments/d/status",
            ),
            ("PATCH", "/api/v1/namespaces/n", "patch", "//namespaces/n/"),
            ("PUT", "/api/v1/namespaces/n/finalize", "update", "//namespaces/n/finalize"),
            ("DELETE", "/apis/example.com/v1/widgets", "deletecollection", "example.com//widgets//"),
            ("DELETE", "/apis/example.com/v1/widgets/w", "delete", "example.com//widgets/w/"),
            ("GET", "/version", "list", "////"),
            ("GET", "/apis/apps/v1", "list", "apps////"),
        ] {
            let request = Requested::read(method, uri);
            assert_eq!(request.verb.to_string(), verb, "{uri}");
            let Requested { group, namespace, resource, name, subresource, .. } = request;
            assert_eq!(format!("{group}/{namespace}/{resource}/{name}/{subresource}"), place, "{uri}");
        }
    }
}
