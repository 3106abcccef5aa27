//! From what a request was authorized to do to what is done.

use std::sync::Arc;

use watchkeeper_kinds::Kind;

use crate::access::Authorized;
use crate::access::denial;
use crate::registry::Registry;
use crate::request::action::{ResourceAction, Verb};
use crate::request::path::Scope;
use crate::resource::{ObjectRef, Resource};
use crate::status_error::StatusError;
use crate::write::Subresource;

/// Where a request leads.
pub(crate) struct Route {
    pub(crate) resource: Arc<Resource>,
    pub(crate) operation: Operation,
}

/// What is done: everything that a handler needs to know about the method and the path.
#[derive(Clone)]
pub(crate) enum Operation {
    List(Collection),
    Watch(Collection),
    DeleteCollection(Collection),
    Create(Collection),
    Get(ObjectRef),
    Update(ObjectRef, Subresource),
    Patch(ObjectRef, Subresource),
    Delete(ObjectRef),
    GetScale(ObjectRef),
    UpdateScale(ObjectRef),
    PatchScale(ObjectRef),
    /// Puts a pod on a node.
    Bind(ObjectRef),
    /// Deletes a pod, unless it is needed.
    Evict(ObjectRef),
    /// Issues a token of a ServiceAccount.
    IssueToken(ObjectRef),
    /// Shows what the parts of the cluster say about themselves, or that one of them does.
    Components(Option<String>),
    /// Refuses to watch what is made up when it is asked for.
    NoWatch,
    /// Looks into something that a node runs, by the subresource of this name.
    Connect(ObjectRef, String),
}

/// The objects of a resource, in a namespace or in all.
#[derive(Clone)]
pub(crate) struct Collection {
    pub(crate) namespace: Option<String>,
    /// The only object that is meant.
    pub(crate) only: Option<String>,
}

/// Nothing is done, for one of these reasons.
pub(crate) enum Unrouted {
    /// Nothing at all is served under the path: a text, not a `Status`.
    NoSuchPage,
    /// Something is, but not this.
    StatusError(StatusError),
}

impl From<StatusError> for Unrouted {
    fn from(failure: StatusError) -> Self {
        Self::StatusError(failure)
    }
}

impl Registry {
    /// Finds the resource that an action is about.
    pub(crate) fn resource_of(&self, action: &ResourceAction) -> Result<Arc<Resource>, Unrouted> {
        if let Some(resource) = self.find(&action.group, &action.version, &action.resource) {
            return Ok(resource);
        }
        let is_builtin = self.group(&action.group).is_some_and(|group| group.is_builtin());
        Err(if is_builtin { StatusError::no_such_path().into() } else { Unrouted::NoSuchPage })
    }
}

impl Route {
    /// What an action that was authorized does with a resource.
    ///
    /// Whatever is not listed here is not served: a verb that makes no sense for a collection, an object or a subresource
    /// is refused, as is a path that puts a resource where it is not. In kube-apiserver, built-in resources have routes by
    /// path and method, and custom resources are served by verb. So they refuse in different words.
    pub(crate) fn find(action: Authorized, resource: Arc<Resource>) -> Result<Self, Unrouted> {
        let action = action.into_inner();
        let operation = match resource.builtin_kind() {
            Some(kind) => builtin(kind, &resource, action)?,
            None => custom(&resource, action)?,
        };
        Ok(Self { resource, operation })
    }
}

fn builtin(
    kind: &'static Kind,
    resource: &Arc<Resource>,
    action: ResourceAction,
) -> Result<Operation, StatusError> {
    let ResourceAction { verb, is_head, scope, name, selected, subresource, rest, .. } = action;
    let is_one = name.is_some() || subresource.is_some();
    let namespace = match scope {
        Scope::Cluster if is_one && resource.namespaced => return Err(StatusError::no_such_path()),
        Scope::Cluster => None,
        // A namespace is in itself only for those who judge the request.
        Scope::Itself(_) if resource.is_core("namespaces") => None,
        Scope::Namespace(_) | Scope::Itself(_) if !resource.namespaced => {
            return Err(StatusError::no_such_path());
        }
        Scope::Namespace(namespace) | Scope::Itself(namespace) => Some(namespace),
    };
    // The path has an empty segment where the namespace belongs: only lists and watches can do without.
    let is_missing = namespace.as_deref() == Some("");
    let goes_on = subresource.as_deref() == Some("proxy");
    // Slashes at the end say nothing.
    let has_rest = rest.is_some_and(|rest| !rest.trim_matches('/').is_empty());
    if verb == Verb::Proxy || (has_rest && !goes_on) {
        return Err(StatusError::no_such_path());
    }
    let operation = match (name, subresource) {
        (None, None) => {
            let everywhere = resource.namespaced && namespace.is_none();
            let namespace = namespace.filter(|_| !is_missing);
            of_collection(verb, resource, everywhere, Collection { namespace, only: selected })
        }
        (name, None) if verb == Verb::Watch && resource.is_stored() => {
            let namespace = namespace.filter(|_| !is_missing);
            Ok(Operation::Watch(Collection { namespace, only: name }))
        }
        (name, None) => {
            let check = check_name(name.as_deref());
            let place =
                ObjectRef { resource: Arc::clone(resource), namespace, name: name.unwrap_or_default() };
            of_object(verb, place).and_then(|operation| check.map(|()| operation))
        }
        (name, Some(part)) => {
            let verb = if name.is_some() { verb } else { verb.of_one() };
            let check = check_name(name.as_deref());
            let place =
                ObjectRef { resource: Arc::clone(resource), namespace, name: name.unwrap_or_default() };
            of_subresource(kind, verb, place, part).and_then(|operation| check.map(|()| operation))
        }
    };
    match operation? {
        // The routes know no HEAD.
        _ if is_head => Err(StatusError::unknown_method()),
        operation @ (Operation::List(_) | Operation::Watch(_)) => Ok(operation),
        _ if is_missing => Err(StatusError::bad_request("Namespace parameter required.")),
        operation => Ok(operation),
    }
}

/// `everywhere` is whether the path of a namespaced resource names no namespace.
fn of_collection(
    verb: Verb,
    resource: &Resource,
    everywhere: bool,
    collection: Collection,
) -> Result<Operation, StatusError> {
    match verb {
        Verb::List if resource.is_made_up() => Ok(Operation::Components(None)),
        Verb::Watch if resource.is_made_up() => Ok(Operation::NoWatch),
        _ if resource.is_made_up() => Err(StatusError::unknown_method()),
        // Reviews and the like are made and not kept.
        _ if !resource.is_stored() && (everywhere || verb == Verb::Miswatch) => {
            Err(StatusError::no_such_path())
        }
        Verb::Create if !everywhere => Ok(Operation::Create(collection)),
        _ if !resource.is_stored() => Err(StatusError::unknown_method()),
        Verb::List => Ok(Operation::List(collection)),
        Verb::Watch => Ok(Operation::Watch(collection)),
        Verb::DeleteCollection if !everywhere && resource.verbs().contains(&"deletecollection") => {
            Ok(Operation::DeleteCollection(collection))
        }
        _ => Err(StatusError::unknown_method()),
    }
}

fn of_object(verb: Verb, place: ObjectRef) -> Result<Operation, StatusError> {
    match verb {
        Verb::Get if place.resource.is_made_up() => Ok(Operation::Components(Some(place.name))),
        _ if place.resource.is_made_up() => Err(StatusError::unknown_method()),
        _ if !place.resource.is_stored() => Err(StatusError::no_such_path()),
        Verb::Get => Ok(Operation::Get(place)),
        Verb::Update => Ok(Operation::Update(place, Subresource::Main)),
        Verb::Patch => Ok(Operation::Patch(place, Subresource::Main)),
        Verb::Delete => Ok(Operation::Delete(place)),
        _ => Err(StatusError::unknown_method()),
    }
}

fn of_subresource(
    kind: &'static Kind,
    verb: Verb,
    place: ObjectRef,
    name: String,
) -> Result<Operation, StatusError> {
    let connects = denial::connect_verbs(&place.resource, &name);
    let verbs = connects.or_else(|| kind.subresource(&name).map(|subresource| subresource.verbs));
    match verbs {
        Some(_) if verb.is_watch() => return Err(StatusError::no_such_path()),
        Some(verbs) if verbs.contains(&verb.text()) => {}
        Some(_) => return Err(StatusError::unknown_method()),
        None => return Err(StatusError::no_such_path()),
    }
    if connects.is_some() {
        return Ok(Operation::Connect(place, name));
    }
    match (name.as_str(), verb) {
        ("binding", Verb::Create) => return Ok(Operation::Bind(place)),
        ("eviction", Verb::Create) => return Ok(Operation::Evict(place)),
        ("token", Verb::Create) => return Ok(Operation::IssueToken(place)),
        _ => {}
    }
    of_part(verb, place, &name).ok_or_else(StatusError::unknown_method)
}

/// Reads and writes of a part of an object.
fn of_part(verb: Verb, place: ObjectRef, name: &str) -> Option<Operation> {
    match (name, verb) {
        ("scale", Verb::Get) => return Some(Operation::GetScale(place)),
        ("scale", Verb::Update) => return Some(Operation::UpdateScale(place)),
        ("scale", Verb::Patch) => return Some(Operation::PatchScale(place)),
        _ => {}
    }
    match (Subresource::of(name)?, verb) {
        (_, Verb::Get) => Some(Operation::Get(place)),
        (part, Verb::Update) => Some(Operation::Update(place, part)),
        (part, Verb::Patch) => Some(Operation::Patch(place, part)),
        _ => None,
    }
}

fn custom(resource: &Arc<Resource>, action: ResourceAction) -> Result<Operation, Unrouted> {
    let ResourceAction { verb, scope, name, selected, subresource, .. } = action;
    let scope = if scope == Scope::Namespace(String::new()) { Scope::Cluster } else { scope };
    let namespace = match scope {
        Scope::Cluster if resource.namespaced && !matches!(verb, Verb::List | Verb::Watch) => {
            return Err(Unrouted::NoSuchPage);
        }
        Scope::Cluster => None,
        Scope::Namespace(namespace) | Scope::Itself(namespace) if resource.namespaced => Some(namespace),
        Scope::Namespace(_) | Scope::Itself(_) => return Err(Unrouted::NoSuchPage),
    };
    if let Some(part) = subresource {
        let check = check_name(name.as_deref());
        let place = ObjectRef { resource: Arc::clone(resource), namespace, name: name.unwrap_or_default() };
        if !resource.has_subresource(&part) {
            return Err(place.not_found().into());
        }
        let operation = of_part(verb, place, &part).ok_or_else(|| resource.unknown_verb(verb))?;
        return Ok(check.map(|()| operation)?);
    }
    let (is_named, check) = (name.is_some(), check_name(name.as_deref()));
    let place = |name: Option<String>, namespace| {
        check.map(|()| ObjectRef {
            resource: Arc::clone(resource),
            namespace,
            name: name.unwrap_or_default(),
        })
    };
    Ok(match verb {
        // Whatever the method is: it was judged as a watch, and a watch is all it gets.
        Verb::Watch | Verb::Miswatch => Operation::Watch(Collection { namespace, only: name.or(selected) }),
        Verb::List => Operation::List(Collection { namespace, only: selected }),
        Verb::DeleteCollection => Operation::DeleteCollection(Collection { namespace, only: None }),
        Verb::Create if !is_named => Operation::Create(Collection { namespace, only: None }),
        Verb::Get => Operation::Get(place(name, namespace)?),
        Verb::Update => Operation::Update(place(name, namespace)?, Subresource::Main),
        Verb::Patch => Operation::Patch(place(name, namespace)?, Subresource::Main),
        Verb::Delete => Operation::Delete(place(name, namespace)?),
        Verb::Create | Verb::Proxy | Verb::Unknown => return Err(resource.unknown_verb(verb).into()),
    })
}

/// Refuses the names that no object has: a segment of the path that is missing or empty, `.` and `..`.
fn check_name(name: Option<&str>) -> Result<(), StatusError> {
    match name {
        None => Err(StatusError::bad_request("name must be provided")),
        Some(name @ ("." | "..")) => {
            Err(StatusError::bad_request(format!("Name parameter invalid: {name:?}: may not be '{name}'")))
        }
        Some(_) => Ok(()),
    }
}
