//! What a write wants: the operations, each a pure function of the request and the stored object.

pub(super) mod apply;
mod bind;
pub(super) mod create;
pub(super) mod delete;
mod patch;
mod replace;
pub(super) mod scale;

use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

pub(crate) use apply::Applying;
pub(crate) use delete::{Eviction, FOREGROUND, ORPHAN};
pub(crate) use patch::Patch;
pub(crate) use scale::ScaleChange;

use super::request::{Current, Draft, Moment};
use super::{Incoming, WriteRequest, version};
use crate::object::meta;
use crate::request::delete_options::DeleteOptions;
use crate::resource::ObjectRef;
use crate::status_error::{StatusError, Subject};

/// A change that the server makes to one of its objects.
pub(crate) type Change<'a> = dyn Fn(&mut Value) + Send + Sync + 'a;

/// What is to become of an object.
pub(crate) enum Operation<'a> {
    /// The object is created. Its name is in it, or generated.
    Create(Incoming),
    /// The object, or a subresource of it, is replaced.
    Replace(Incoming),
    Patch(&'a Patch),
    Apply(&'a Applying),
    /// The number of replicas is set through the Scale.
    Scale(&'a ScaleChange),
    /// A Pod is assigned to the node of a Binding.
    Bind(&'a Value),
    Delete(&'a DeleteOptions),
    /// A Pod is deleted through the Eviction API.
    Evict(&'a Eviction),
    /// The server changes its own object.
    Change(&'a Change<'a>),
}

impl Operation<'_> {
    /// Refuses a request that contradicts itself.
    pub(super) fn check(&self, target: &ObjectRef) -> Result<(), StatusError> {
        match self {
            Self::Create(incoming) => check_namespace(target, &incoming.object),
            Self::Replace(incoming) => {
                check_target(target, &incoming.object)?;
                if meta::name(&incoming.object).is_empty() { Err(no_name(target)) } else { Ok(()) }
            }
            Self::Apply(applying) => check_target(target, applying.object()),
            Self::Bind(binding) => bind::check(binding),
            _ => Ok(()),
        }
    }

    /// The name of an object that is to be created: its own, or one that is generated anew each time.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Create(incoming) => Some(create::name(&incoming.object)),
            _ => None,
        }
    }

    /// Whether the name of a new object is generated.
    pub(super) fn generates_name(&self) -> bool {
        matches!(self, Self::Create(incoming) if meta::name(&incoming.object).is_empty())
    }

    /// Whether the object is deleted.
    pub(super) fn is_deletion(&self) -> bool {
        matches!(self, Self::Delete(_) | Self::Evict(_))
    }

    /// The resourceVersion that a new object must not have.
    pub(super) fn unexpected_version(&self) -> Option<u64> {
        let Self::Create(incoming) = self else { return None };
        let version = meta::version_number(meta::text(&incoming.object, "resourceVersion"));
        version.ok().filter(|version| *version > 0)
    }

    /// Whether a subresource is created: as in kube-apiserver, admission is asked before it is looked whether the object exists.
    pub(super) fn creates_part(&self) -> bool {
        matches!(self, Self::Bind(_) | Self::Evict(_))
    }

    /// Refuses the operation if it cannot create the object, which does not exist.
    pub(super) fn check_missing(&self, request: &WriteRequest<'_>) -> Result<(), StatusError> {
        match self {
            Self::Create(_) => Ok(()),
            Self::Replace(incoming) => replace::check_missing(request, incoming),
            Self::Apply(applying) => applying.check_missing(request),
            _ => Err(request.target.not_found()),
        }
    }

    /// What the operation makes of the stored object.
    pub(super) fn next(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        moment: &Moment,
    ) -> Result<Draft, StatusError> {
        match (self, &current.object) {
            (Self::Create(incoming), _) => create::next(request, incoming, moment),
            (Self::Replace(incoming), _) => replace::next(request, incoming, current, moment),
            (Self::Apply(applying), _) => applying.next(request, current, moment),
            (Self::Patch(patch), Some(old)) => patch.next(request, old, current),
            (Self::Scale(change), Some(old)) => change.next(request, old, moment),
            (Self::Bind(binding), _) => Ok(Draft::of((*binding).clone())),
            (Self::Delete(options), Some(old)) => delete::next(request, current, old, options),
            (Self::Evict(eviction), _) => Ok(eviction.next()),
            (Self::Change(change), Some(old)) => {
                let mut object = old.clone();
                change(&mut object);
                based_on(request, current, object)
            }
            (_, None) => Err(request.target.not_found()),
        }
    }

    /// The stored object with the object of the request in it, which for most operations is the same.
    pub(super) fn laid_into(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        old: &Value,
        wanted: Value,
        moment: &Moment,
    ) -> Result<Value, StatusError> {
        match self {
            Self::Scale(_) => scale::laid_into(request, current, old, &wanted, moment),
            Self::Bind(_) => bind::laid_into(&request.target, old, &wanted, &moment.stamp),
            _ => Ok(wanted),
        }
    }

    /// The answer to a write during which others were faster all the time.
    pub(super) fn exhausted(&self, target: &ObjectRef) -> StatusError {
        match self {
            Self::Create(_) => StatusError::unavailable(
                "the namespace or the CRD changed too often while the object was being created; retry",
            ),
            _ => StatusError::modified(target.resource.subject(), &target.name),
        }
    }
}

/// A draft that is based on the current object: in its namespace and of its version.
fn based_on(request: &WriteRequest<'_>, current: &Current, object: Value) -> Result<Draft, StatusError> {
    let mut draft = Draft::of(object);
    check_version(&request.target, &mut draft.object, current)?;
    set_namespace(&request.target, &mut draft.object)?;
    Ok(draft)
}

/// Sets the namespace of the request.
fn set_namespace(target: &ObjectRef, object: &mut Value) -> Result<(), StatusError> {
    check_namespace(target, object)?;
    match target.namespace.as_deref().filter(|_| target.resource.namespaced) {
        Some(namespace) if meta::text(object, "namespace").is_empty() => {
            meta::set(object, "namespace", namespace);
        }
        Some(_) => {}
        None => meta::remove(object, "namespace"),
    }
    Ok(())
}

/// Refuses an object in another namespace than that of the request.
fn check_namespace(target: &ObjectRef, object: &Value) -> Result<(), StatusError> {
    let said = meta::text(object, "namespace");
    let is_right = match target.namespace.as_deref().filter(|_| target.resource.namespaced) {
        Some(namespace) => said.is_empty() || said == namespace,
        // Clients send `default` for cluster-scoped objects, too.
        None => said.is_empty() || said == "default",
    };
    if is_right { Ok(()) } else { Err(other_namespace()) }
}

fn other_namespace() -> StatusError {
    StatusError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// Refuses an object whose name or namespace is not that of the request.
fn check_target(target: &ObjectRef, object: &Value) -> Result<(), StatusError> {
    let name = meta::name(object);
    if !name.is_empty() && name != target.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let said = meta::text(object, "namespace");
    match &target.namespace {
        Some(namespace) if !said.is_empty() && said != namespace => Err(other_namespace()),
        _ => Ok(()),
    }
}

/// Refuses an object of a subresource that is about another object than the path.
pub(crate) fn check_name(target: &ObjectRef, object: &Value, kind: &str) -> Result<(), StatusError> {
    if meta::name(object) == target.name {
        return Ok(());
    }
    Err(StatusError::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// The answer to an object without a name.
fn no_name(target: &ObjectRef) -> StatusError {
    StatusError::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        target.name
    ))
}

/// Removes the resourceVersion of an object that is created by a replacement or an apply. It must be one nevertheless.
fn forget_version(object: &mut Value) -> Result<(), StatusError> {
    meta::version_number(meta::text(object, "resourceVersion")).map_err(StatusError::untyped)?;
    meta::remove(object, "resourceVersion");
    Ok(())
}

/// Refuses an object that is based on another version than the current one.
fn check_version(target: &ObjectRef, object: &mut Value, current: &Current) -> Result<(), StatusError> {
    let Some(entry) = &current.entry else { return Ok(()) };
    let resource = &target.resource;
    let sent = meta::version_number(meta::text(object, "resourceVersion")).map_err(StatusError::untyped)?;
    match sent {
        0 if resource.allows_unconditional_update() => {}
        0 => {
            let at = Path::root().child("metadata").child("resourceVersion");
            let error = FieldError::invalid(&at, 0, "must be specified for an update");
            let subject = Subject { group: &resource.group, name: &resource.plural };
            return Err(StatusError::invalid(subject, &target.name, &[error]));
        }
        sent if sent == entry.modified => {}
        _ => return Err(StatusError::modified(resource.subject(), &target.name)),
    }
    meta::set(object, "resourceVersion", version(entry));
    Ok(())
}

/// Refuses a precondition in the metadata of the request that the current object does not meet; an empty one is met.
fn check_precondition(target: &ObjectRef, what: &str, asked: &str, found: &str) -> Result<(), StatusError> {
    if asked.is_empty() || asked == found {
        return Ok(());
    }
    let key = target.upstream_key();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: {what} in precondition: {asked}, {what} in object meta: {found}"
    );
    Err(StatusError::conflict(target.resource.subject(), &target.name, &why))
}
