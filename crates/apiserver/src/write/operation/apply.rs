//! Server-side apply.

use serde_json::Value;
use watchkeeper_schema::json::{self, Decoded};
use watchkeeper_schema::managed::{self, ApplyError, Request};
use watchkeeper_schema::{Error, yaml};

use super::{based_on, create, forget_version, no_name, set_namespace};
use crate::object::meta;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::write::request::{Current, Draft, Moment};
use crate::write::{Incoming, Subresource, WriteRequest, ownership};

/// All that a manager has to say about an object.
pub(crate) struct Applying {
    object: Value,
    strict_errors: Vec<String>,
    /// Whether fields are taken from those who manage them.
    force: bool,
}

impl Applying {
    /// Reads the body of a request.
    pub(crate) fn read(resource: &Resource, body: &[u8], force: bool) -> Result<Self, StatusError> {
        let applying = Self::read_any(body, force)?;
        resource.check_kind(&applying.object, || applying.object.to_string().into())?;
        Ok(applying)
    }

    /// The same for the Scale of an object.
    pub(crate) fn read_scale(body: &[u8], force: bool) -> Result<Self, StatusError> {
        let applying = Self::read_any(body, force)?;
        let text = |field: &str| applying.object[field].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if (version, kind) != ("autoscaling/v1", "Scale") {
            let slash = if version.contains('/') { "" } else { "/" };
            return Err(StatusError::bad_request(format!(
                "invalid object type: {slash}{version}, Kind={kind}"
            )));
        }
        Ok(applying)
    }

    fn read_any(body: &[u8], force: bool) -> Result<Self, StatusError> {
        let decoded = match plain_json(body) {
            Some(decoded) => decoded,
            None => yaml::decode(body).map_err(|error| match error {
                Error::TooLarge => StatusError::too_large(&error.to_string()),
                error => StatusError::bad_request(format!("error decoding YAML: {error}")),
            })?,
        };
        if !decoded.value.is_object() {
            return Err(StatusError::bad_request("error decoding YAML: the body is not an object"));
        }
        Ok(Self { object: decoded.value, strict_errors: decoded.strict_errors, force })
    }
}

/// Reads a body that is JSON, as what most clients call YAML is, and says the same as YAML: nothing in it is there twice, and no
/// number has a fraction or an exponent. Reading YAML takes several times as long.
fn plain_json(body: &[u8]) -> Option<Decoded> {
    fn is_plain(value: &Value) -> bool {
        match value {
            Value::Number(number) => !number.is_f64(),
            Value::Array(items) => items.iter().all(is_plain),
            Value::Object(fields) => fields.values().all(is_plain),
            _ => true,
        }
    }
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let decoded = is_object.then(|| json::decode(body).ok()).flatten()?;
    (decoded.strict_errors.is_empty() && is_plain(&decoded.value)).then_some(decoded)
}

impl From<ApplyError> for StatusError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflicts(conflicts) => Self::apply_conflict(&conflicts),
            ApplyError::Failed(Error::NotApplicable(message)) => Self::bad_request(message),
            ApplyError::Failed(error) => Self::untyped(error.to_string()),
        }
    }
}

impl Applying {
    pub(super) fn object(&self) -> &Value {
        &self.object
    }

    pub(super) fn is_forced(&self) -> bool {
        self.force
    }

    /// Refuses to apply to an object that does not exist, if the request means an existing one.
    pub(super) fn check_missing(&self, request: &WriteRequest<'_>) -> Result<(), StatusError> {
        let (target, uid) = (&request.target, meta::uid(&self.object));
        if request.subresource != Subresource::Main {
            return Err(target.not_found());
        }
        if uid.is_empty() {
            return Ok(());
        }
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        Err(StatusError::conflict(target.resource.subject(), &target.name, &why))
    }

    /// The current object with what is applied merged into it, or a new object.
    pub(super) fn next(
        &self,
        request: &WriteRequest<'_>,
        current: &Current,
        moment: &Moment,
    ) -> Result<Draft, StatusError> {
        let Incoming { mut object, warnings } = self.merged(request, current.object.as_ref(), moment)?;
        if current.object.is_some() {
            return Ok(Draft { warnings, ..based_on(request, current, object)? });
        }
        if meta::name(&self.object).is_empty() {
            return Err(no_name(&request.target));
        }
        forget_version(&mut object)?;
        set_namespace(&request.target, &mut object)?;
        create::set_system_fields(&mut object, moment);
        Ok(Draft::new(object, warnings))
    }

    fn merged(
        &self,
        request: &WriteRequest<'_>,
        live: Option<&Value>,
        moment: &Moment,
    ) -> Result<Incoming, StatusError> {
        let WriteRequest { target, subresource, context, .. } = request;
        let merge = |request: &Request<'_>| managed::apply(request, live, &self.object, self.force);
        let applied = ownership::as_manager(&target.resource, *subresource, &context.manager, moment, merge);
        Incoming::of(&target.resource, applied?.object, self.strict_errors.clone(), context.field_validation)
    }
}
