//! Replacements.

use super::{based_on, check_precondition, create, forget_version, set_namespace};
use crate::object::meta;
use crate::status_error::StatusError;
use crate::write::request::{Current, Draft, Moment};
use crate::write::{Incoming, Subresource, WriteRequest};

/// Refuses to replace an object that does not exist, unless the resource allows to create it so.
pub(super) fn check_missing(request: &WriteRequest<'_>, incoming: &Incoming) -> Result<(), StatusError> {
    let WriteRequest { target, subresource, .. } = request;
    let may_create = *subresource == Subresource::Main
        && target.resource.allows_create_on_update()
        && meta::uid(&incoming.object).is_empty();
    if may_create { Ok(()) } else { Err(target.not_found()) }
}

/// The object that was sent, in place of the current one.
pub(super) fn next(
    request: &WriteRequest<'_>,
    incoming: &Incoming,
    current: &Current,
    moment: &Moment,
) -> Result<Draft, StatusError> {
    let (target, mut object) = (&request.target, incoming.object.clone());
    let Some(old) = &current.object else {
        forget_version(&mut object)?;
        set_namespace(target, &mut object)?;
        create::set_system_fields(&mut object, moment);
        return Ok(Draft::new(object, incoming.warnings.clone()));
    };
    check_precondition(target, "UID", meta::uid(&object), meta::uid(old))?;
    Ok(Draft { warnings: incoming.warnings.clone(), ..based_on(request, current, object)? })
}
