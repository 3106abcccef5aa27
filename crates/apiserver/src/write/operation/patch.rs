//! Changing parts of objects.

use serde_json::Value;
use watchkeeper_kinds::Kind;
use watchkeeper_schema::patch::{self, JsonPatch};
use watchkeeper_schema::{Error, FieldError, Path, json, strict_message};

use super::{based_on, check_target};
use crate::request::media::PatchFormat;
use crate::request::write_options::FieldValidation;
use crate::resource::Resource;
use crate::status_error::{StatusError, Subject};
use crate::write::decode::judge;
use crate::write::request::{Current, Draft};
use crate::write::{Incoming, WriteContext, WriteRequest};

/// A change to an object, as a client describes it.
pub(crate) enum Patch {
    /// Operations on places in the object (RFC 6902).
    Json(JsonPatch),
    /// An object that is laid over it (RFC 7386).
    Merge { patch: Value, strict_errors: Vec<String> },
    /// An object that is laid over it, lists merged by the rules of the kind.
    Strategic { patch: Value, strict_errors: Vec<String> },
}

impl Patch {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8], format: PatchFormat) -> Result<Self, StatusError> {
        let prefix = if format == PatchFormat::Strategic { "" } else { "error decoding patch: " };
        let object = || {
            let decoded =
                json::decode(body).map_err(|error| StatusError::bad_request(format!("{prefix}{error}")))?;
            if !decoded.value.is_object() {
                let found = match decoded.value {
                    serde_json::Value::Array(_) => "array",
                    serde_json::Value::String(_) => "string",
                    serde_json::Value::Number(_) => "number",
                    _ => "bool",
                };
                let message = format!(
                    "{prefix}json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
                );
                return Err(StatusError::bad_request(message));
            }
            Ok((decoded.value, decoded.strict_errors))
        };
        match format {
            PatchFormat::Json => match JsonPatch::decode(body) {
                Ok(patch) => Ok(Self::Json(patch)),
                Err(Error::TooManyOperations { .. }) => Err(StatusError::too_large(
                    &JsonPatch::decode(body).err().map(|error| error.to_string()).unwrap_or_default(),
                )),
                Err(error) => Err(StatusError::bad_request(format!("error decoding patch: {error}"))),
            },
            PatchFormat::Merge => object().map(|(patch, strict_errors)| Self::Merge { patch, strict_errors }),
            PatchFormat::Strategic => {
                object().map(|(patch, strict_errors)| Self::Strategic { patch, strict_errors })
            }
            PatchFormat::Apply => {
                Err(StatusError::unsupported_media_type("apply patches are read elsewhere"))
            }
        }
    }

    fn apply(&self, resource: &Resource, object: &Value) -> Result<Value, StatusError> {
        let applied = match self {
            Self::Json(patch) => patch.apply(object),
            Self::Merge { patch, .. } => patch::merge(object.clone(), patch),
            Self::Strategic { patch, .. } => return resource.merge_strategically(object, patch),
        };
        applied.map_err(|error| match error {
            Error::NotAPatch(_) => StatusError::bad_request(error.to_string()),
            Error::TooLarge => StatusError::too_large(&error.to_string()),
            _ => StatusError::unprocessable(),
        })
    }

    /// A Scale with the change made.
    pub(super) fn apply_to_scale(&self, scale: &Value) -> Result<Value, StatusError> {
        let applied = match self {
            Self::Json(patch) => patch.apply(scale),
            Self::Merge { patch, .. } | Self::Strategic { patch, .. } => patch::merge(scale.clone(), patch),
        };
        applied.map_err(|_| StatusError::unprocessable())
    }

    fn strict_errors(&self) -> Vec<String> {
        match self {
            Self::Json(patch) => patch.strict_errors().to_vec(),
            Self::Merge { strict_errors, .. } | Self::Strategic { strict_errors, .. } => {
                strict_errors.clone()
            }
        }
    }

    /// The current object with the change made.
    pub(super) fn next(
        &self,
        request: &WriteRequest<'_>,
        old: &Value,
        current: &Current,
    ) -> Result<Draft, StatusError> {
        let Incoming { object, warnings } = self.patched(&request.target.resource, old, request.context)?;
        check_target(&request.target, &object)?;
        Ok(Draft { warnings, ..based_on(request, current, object)? })
    }

    /// An object with the change made, as if a client had sent it.
    fn patched(
        &self,
        resource: &Resource,
        current: &Value,
        context: &WriteContext,
    ) -> Result<Incoming, StatusError> {
        let mut object = self.apply(resource, current)?;
        if !object.is_object() {
            return Err(StatusError::unprocessable());
        }
        let invalid = |detail: String| {
            let shown = match self {
                Self::Strategic { patch, .. }
                    if detail.starts_with("unrecognized type") || detail.starts_with("cannot ") =>
                {
                    watchkeeper_go::fmt::value(patch)
                }
                // Made anew, without what was dropped from it since: that is rare, and keeping it is not for free.
                _ => self.apply(resource, current).map(|object| object.to_string()).unwrap_or_default(),
            };
            let error = FieldError::invalid(&Path::root().child("patch"), shown, detail);
            StatusError::invalid(Subject { group: "", name: "" }, "", &[error])
        };
        if let Err(failure) = resource.check_kind(&object, || object.to_string().into()) {
            // It is read as what it says it is before anybody asks whether it should be that.
            let read = other_kind(&object).map(|kind| kind.coerce(&mut object));
            return Err(match read {
                Some(Err(error)) => invalid(error.to_string()),
                _ => failure,
            });
        }
        let unknown =
            resource.coerce(&mut object).map_err(|problem| match (self, unrestorable(&problem)) {
                (Self::Strategic { .. }, Some(detail)) => invalid(detail),
                _ => invalid(problem),
            })?;
        let strict_errors = self.strict_errors();
        let warnings = match context.field_validation {
            FieldValidation::Strict => match strict_message(&strict_errors, &unknown) {
                Some(message) => return Err(invalid(message)),
                None => Vec::new(),
            },
            lenient => judge(strict_errors, unknown, lenient).map_err(StatusError::bad_request)?,
        };
        resource.default(&mut object);
        Ok(Incoming { object, warnings })
    }
}

/// A field of the wrong type, in the words of those who make Go values of JSON that was read already. `problem` is the same in those
/// of the decoder: `json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string`.
fn unrestorable(problem: &str) -> Option<String> {
    let (found, wanted) = problem.rsplit_once(" of type ")?;
    let found = found.strip_prefix("json: cannot unmarshal ")?.split_once(" into ")?.0;
    let kind = match found {
        "array" => "slice",
        "object" => "map",
        number if number.starts_with("number") && number.contains(['.', 'e', 'E']) => "float64",
        number if number.starts_with("number") => "int64",
        other => other,
    };
    Some(match wanted {
        map if map.starts_with("map[") => format!("cannot restore map from {kind}"),
        list if list.starts_with("[]") => format!("cannot restore slice from {kind}"),
        structure if watchkeeper_kinds::is_structure(structure) => {
            format!("cannot restore struct from: {kind}")
        }
        // A type with a name of its own is a text.
        wanted if kind == "int64" && (wanted == "string" || wanted.contains('.')) => {
            format!("cannot convert int64 to {wanted}")
        }
        wanted if wanted.contains('.') => "unrecognized type: string".to_owned(),
        wanted => format!("unrecognized type: {wanted}"),
    })
}

/// The built-in kind that an object says it is of.
fn other_kind(object: &Value) -> Option<&'static Kind> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    watchkeeper_kinds::find_kind(group, version, text("kind"))
}
