//! From what a request wants to a valid next state of the object: prepared, given addresses, validated.

use serde_json::Value;

use super::operation::{Operation, delete};
use super::request::{Current, Intent, Moment, Planned};
use super::{Draft, Subresource, WriteRequest, Writer, warnings};
use crate::object::meta;
use crate::status_error::StatusError;
use crate::write::certificates;

impl Writer {
    /// Works out what becomes of the stored object.
    pub(super) fn strategy(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        moment: &Moment,
        draft: Draft,
    ) -> Result<Planned, StatusError> {
        let Draft { object, warnings, .. } = draft;
        let mut planned = match (&request.operation, &current.object) {
            (Operation::Delete(options), Some(old)) => delete::plan(request, old, options, moment),
            (Operation::Evict(eviction), Some(old)) => eviction.plan(request, old, object, moment)?,
            (Operation::Bind(_), Some(old)) => {
                let planned = self.changed_object(request, current, old, object.clone(), moment)?;
                Planned { asked: object, ..planned }
            }
            (_, Some(old)) => self.changed_object(request, current, old, object, moment)?,
            (_, None) => self.new_object(request, object)?,
        };
        planned.warnings.splice(..0, warnings);
        Ok(planned)
    }

    fn new_object(&self, request: &WriteRequest<'_>, mut object: Value) -> Result<Planned, StatusError> {
        let WriteRequest { target, context, .. } = request;
        let resource = &target.resource;
        self.access.check_escalation(target, &object, None, context.author.client())?;
        resource.prepare_create(&mut object);
        certificates::name_requester(resource, &mut object, context.author.client());
        let reservation = self.allocate(resource, &mut object, None, context.dry_run)?;
        let errors = resource.validate(&object);
        if !errors.is_empty() {
            return Err(StatusError::invalid(resource.kind_subject(), &target.name, &errors));
        }
        let warnings = warnings::of(resource, &object, None);
        Ok(Planned { object, asked: Value::Null, intent: Intent::Put, reservation, warnings })
    }

    fn changed_object(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        old: &Value,
        wanted: Value,
        moment: &Moment,
    ) -> Result<Planned, StatusError> {
        let WriteRequest { target, context, subresource, .. } = request;
        let resource = &target.resource;
        let mut new = request.operation.laid_into(request, current, old, wanted, moment)?;
        self.access.check_escalation(target, &new, Some(old), context.author.client())?;
        certificates::stamp_conditions(resource, *subresource, &mut new, old, &moment.stamp);
        resource.prepare_update(*subresource, &mut new, old);
        // Only the object itself is given anything: its subresources keep the spec.
        let reservation = match subresource {
            Subresource::Main => self.allocate(resource, &mut new, Some(old), context.dry_run)?,
            _ => None,
        };
        keep_system_fields(&mut new, old);
        let errors = resource.validate_update(*subresource, &new, old);
        if !errors.is_empty() {
            return Err(StatusError::invalid(resource.kind_subject(), &target.name, &errors));
        }
        let warnings = warnings::of(resource, &new, Some(old));
        Ok(Planned { object: new, asked: Value::Null, intent: Intent::Put, reservation, warnings })
    }
}

/// Keeps the metadata that only the server sets.
fn keep_system_fields(new: &mut Value, old: &Value) {
    for field in ["uid", "name"] {
        if meta::text(new, field).is_empty() {
            meta::copy(new, old, field);
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "selfLink"] {
        meta::copy(new, old, field);
    }
    if meta::get(new, "deletionGracePeriodSeconds").is_none() {
        meta::copy(new, old, "deletionGracePeriodSeconds");
    }
}
