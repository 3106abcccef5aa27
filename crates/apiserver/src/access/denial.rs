//! What those are told who may not do something.

use watchkeeper_rbac::{About, Request};

use crate::authentication::Identity;
use crate::resource::{ObjectRef, Resource};
use crate::status_error::{StatusError, Subject};

/// Somebody may not do this. `reason` is what is known beyond that no rule allows it.
pub(crate) fn denied(identity: &Identity, request: &Request<'_>, reason: &str) -> StatusError {
    let (user, verb) = (&identity.user, request.verb);
    let (subject, name, what) = match request.about {
        About::Path(path) => {
            (Subject { group: "", name: "" }, "", format!("User {user:?} cannot {verb} path {path:?}"))
        }
        About::Resource { group, resource, subresource, namespace, name } => {
            let whole = match subresource {
                "" => resource.to_owned(),
                subresource => format!("{resource}/{subresource}"),
            };
            let scope = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            let what =
                format!("User {user:?} cannot {verb} resource {whole:?} in API group {group:?} {scope}");
            (Subject { group, name: resource }, name, what)
        }
    };
    // No answer looks like HTML, whatever names are in it.
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let why = if reason.is_empty() { what } else { format!("{what}: {reason}") };
    StatusError::forbidden(subject, name, &why)
}

/// The verbs of a subresource that is a way into something that a node runs; `None` if it is another one.
pub(crate) fn connect_verbs(resource: &Resource, subresource: &str) -> Option<&'static [&'static str]> {
    if !resource.group.is_empty() || resource.builtin_kind().is_none() {
        return None;
    }
    match (resource.plural.as_str(), subresource) {
        ("pods", "log") => Some(&["get"]),
        ("pods", "attach" | "exec" | "portforward") => Some(&["create", "get"]),
        ("pods" | "nodes" | "services", "proxy") => Some(&["create", "delete", "get", "patch", "update"]),
        _ => None,
    }
}

/// There are no nodes behind this server, so nothing runs that could be looked into.
pub(crate) fn no_node(place: &ObjectRef, subresource: &str) -> StatusError {
    StatusError::bad_request(format!(
        "{} {:?}: {subresource} is not available: no node runs anything here, this server only keeps objects",
        place.resource.subject(),
        place.name
    ))
}
