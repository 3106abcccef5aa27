//! Creates.

use serde_json::Value;
use watchkeeper_storage::Entry;

use super::set_namespace;
use crate::object::meta;
use crate::resource::ObjectRef;
use crate::status_error::StatusError;
use crate::write::request::{Draft, Moment};
use crate::write::{Incoming, WriteRequest};

/// How many generated names are tried.
const NAMES: usize = 8;

/// The most characters of `generateName` that are used; the rest of a name is random.
const LONGEST_PREFIX: usize = 58;

/// The name of a new object: its own, or a generated one.
pub(super) fn name(object: &Value) -> String {
    match (meta::name(object), meta::text(object, "generateName")) {
        ("", prefix) if !prefix.is_empty() => generated(prefix),
        (name, _) => name.to_owned(),
    }
}

fn generated(prefix: &str) -> String {
    let end = prefix.char_indices().nth(LONGEST_PREFIX).map_or(prefix.len(), |(at, _)| at);
    format!("{}{}", &prefix[..end], crate::object::random::suffix())
}

/// The new object, with the metadata that every object has.
pub(super) fn next(
    request: &WriteRequest<'_>,
    incoming: &Incoming,
    moment: &Moment,
) -> Result<Draft, StatusError> {
    let Incoming { object, warnings } = incoming.clone();
    let mut draft = Draft::new(object, warnings);
    let target = &request.target;
    set_namespace(target, &mut draft.object)?;
    if !target.name.is_empty() {
        meta::set(&mut draft.object, "name", target.name.as_str());
    }
    set_system_fields(&mut draft.object, moment);
    Ok(draft)
}

/// Sets the metadata that every new object has, and removes what it cannot have.
pub(in crate::write) fn set_system_fields(object: &mut Value, moment: &Moment) {
    for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::remove(object, field);
    }
    meta::set(object, "creationTimestamp", moment.stamp.as_str());
    meta::set(object, "uid", crate::object::random::uid());
}

/// Refuses to create an object that exists, unless another name can be generated for it.
pub(in crate::write) fn exists(
    incoming: &Incoming,
    target: &ObjectRef,
    current: Option<&Entry>,
    attempt: usize,
) -> Result<(), StatusError> {
    let is_generated =
        meta::name(&incoming.object).is_empty() && !meta::text(&incoming.object, "generateName").is_empty();
    match is_generated {
        true if attempt < NAMES => Ok(()),
        true => Err(StatusError::no_unique_name(target.resource.subject(), &target.name)),
        false => Err(already_exists(target, current)),
    }
}

/// The answer to the creation of an object that exists.
pub(in crate::write) fn already_exists(target: &ObjectRef, current: Option<&Entry>) -> StatusError {
    let resource = &target.resource;
    let is_deleting = current
        .and_then(|entry| resource.read_stored_metadata(entry).ok())
        .is_some_and(|object| meta::is_deleting(&object));
    if is_deleting {
        StatusError::still_exists(resource.subject(), &target.name)
    } else {
        StatusError::already_exists(resource.subject(), &target.name)
    }
}
