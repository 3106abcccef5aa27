//! What those are told who may not do something.

use http::Method;

use crate::failure::{Failure, Subject};
use crate::front::Identity;
use crate::request::path::ResourceTarget;
use crate::request::query::Query;
use crate::resource::Resource;
use crate::write::Place;

/// Somebody may not do this to a resource.
pub(crate) fn resource(
    identity: &Identity,
    method: &Method,
    target: &ResourceTarget,
    query: &Query,
) -> Failure {
    let verb = target.verb(method, query.flag("watch").unwrap_or_default());
    let resource = match &target.subresource {
        Some(subresource) => format!("{}/{subresource}", target.resource),
        None => target.resource.clone(),
    };
    let scope = match target.namespace.as_deref().filter(|_| target.resource != "namespaces") {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User {:?} cannot {verb} resource {resource:?} in API group {:?} {scope}",
        identity.user, target.group
    );
    let subject = Subject { group: &target.group, name: &target.resource };
    Failure::forbidden(subject, target.name.as_deref().unwrap_or_default(), &why)
}

/// Somebody may not look at a path.
pub(crate) fn path(identity: &Identity, method: &Method, path: &str) -> Failure {
    let verb = method.as_str().to_lowercase();
    let why = format!("User {:?} cannot {verb} path {path:?}", identity.user);
    Failure::forbidden(Subject { group: "", name: "" }, "", &why)
}

/// Whether a subresource is a way into something that a node runs.
pub(crate) fn needs_node(resource: &Resource, subresource: &str) -> bool {
    let what = (resource.plural.as_str(), subresource);
    let is_one = match what {
        ("pods", part) => matches!(part, "attach" | "exec" | "log" | "portforward" | "proxy"),
        ("nodes" | "services", part) => part == "proxy",
        _ => false,
    };
    is_one && resource.group.is_empty()
}

/// There are no nodes behind this server, so nothing runs that could be looked into.
pub(crate) fn no_node(place: &Place, subresource: &str) -> Failure {
    Failure::bad_request(format!(
        "{} {:?}: {subresource} is not available: no node runs anything here, this server only keeps objects",
        place.resource.subject(),
        place.name
    ))
}
