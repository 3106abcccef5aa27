//! Objects as clients send them.

use serde_json::Value;
use watchkeeper_schema::json::Decoded;
use watchkeeper_schema::{Error, json, strict_message, unknown_field, yaml};

use super::document_order::in_document_order;
use crate::crd::object::summary;
use crate::request::media::BodyFormat;
use crate::request::write_options::FieldValidation;
use crate::resource::Resource;
use crate::status_error::StatusError;

/// An object that was sent: of the right kind, of the right shape, with everything unknown dropped and missing fields
/// filled in.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

impl Incoming {
    /// Reads the body of a request.
    pub(crate) fn read(
        resource: &Resource,
        body: &[u8],
        format: BodyFormat,
        field_validation: FieldValidation,
    ) -> Result<Self, StatusError> {
        let decoded = match format {
            BodyFormat::Json => json::decode(body),
            BodyFormat::Yaml => yaml::decode(body),
            BodyFormat::Protobuf => protobuf(body),
        };
        let decoded = decoded.map_err(|error| undecodable(resource, body, error))?;
        // What is not an object is refused for its kind, which it does not have.
        resource.check_kind(&decoded.value, || match format {
            BodyFormat::Json => String::from_utf8_lossy(body),
            BodyFormat::Yaml | BodyFormat::Protobuf => decoded.value.to_string().into(),
        })?;
        if format == BodyFormat::Json && resource.builtin_kind().is_some() {
            return Self::ordered(resource, decoded, body, field_validation);
        }
        Self::of(resource, decoded.value, decoded.strict_errors, field_validation)
    }

    /// Reads an object of a built-in kind, of which everything is said in the order of the document.
    fn ordered(
        resource: &Resource,
        decoded: Decoded,
        body: &[u8],
        field_validation: FieldValidation,
    ) -> Result<Self, StatusError> {
        let Decoded { value: mut object, strict_errors } = decoded;
        let unknown = Self::shape(resource, &mut object)?;
        let mut said: Vec<String> =
            unknown.iter().map(|path| unknown_field(path)).chain(strict_errors).collect();
        if said.len() > 1 {
            said = in_document_order(said, body);
        }
        let warnings =
            judge(said, Vec::new(), field_validation).map_err(|problem| misshapen(resource, &problem))?;
        resource.default(&mut object);
        Ok(Self { object, warnings })
    }

    /// Makes an object one of a resource; returns what is unknown in it.
    fn shape(resource: &Resource, object: &mut Value) -> Result<Vec<String>, StatusError> {
        if !object.is_object() {
            return Err(StatusError::bad_request("the body is not an object"));
        }
        object["kind"] = resource.kind.as_str().into();
        object["apiVersion"] = resource.api_version.as_str().into();
        resource.coerce(object).map_err(|error| misshapen(resource, &error))
    }

    /// Reads an object that is known to be JSON.
    pub(crate) fn of(
        resource: &Resource,
        mut object: Value,
        strict_errors: Vec<String>,
        field_validation: FieldValidation,
    ) -> Result<Self, StatusError> {
        let unknown = Self::shape(resource, &mut object)?;
        let warnings = judge(strict_errors, in_order(resource, unknown), field_validation)
            .map_err(|problem| misshapen(resource, &problem))?;
        resource.default(&mut object);
        Ok(Self { object, warnings })
    }
}

/// Unknown fields in the order in which the decoder of the kind comes by them: metadata first.
fn in_order(resource: &Resource, mut unknown: Vec<String>) -> Vec<String> {
    if resource.builtin_kind().is_some() {
        unknown.sort_by_key(|path| !path.starts_with("metadata."));
    }
    unknown
}

/// What is said about fields that are unknown or given twice.
pub(crate) fn judge(
    strict_errors: Vec<String>,
    unknown: Vec<String>,
    field_validation: FieldValidation,
) -> Result<Vec<String>, String> {
    match field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => {
            Ok(strict_errors.into_iter().chain(unknown.iter().map(|path| unknown_field(path))).collect())
        }
        FieldValidation::Strict => match strict_message(&strict_errors, &unknown) {
            None => Ok(Vec::new()),
            Some(message) => Err(message),
        },
    }
}

/// The answer to a body that cannot be decoded.
fn undecodable(resource: &Resource, body: &[u8], error: Error) -> StatusError {
    if error == Error::TooLarge {
        return StatusError::too_large(&error.to_string());
    }
    let error = error.to_string();
    let problem = match error.strip_prefix("error converting YAML to JSON: ") {
        Some(problem) if resource.builtin_kind().is_some() => problem.to_owned(),
        _ => format!("couldn't get version/kind; json parse error: {error}"),
    };
    StatusError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {problem} ({})",
        resource.kind,
        summary(&String::from_utf8_lossy(body)),
    ))
}

/// The answer to an object that has a field of the wrong type, or one that should not be there.
fn misshapen(resource: &Resource, problem: &str) -> StatusError {
    StatusError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {problem}",
        resource.kind, resource.version, resource.kind
    ))
}

/// Reads a body that is of no resource of its own.
pub(crate) fn decode(body: &[u8], format: BodyFormat) -> Result<Value, StatusError> {
    let decoded = match format {
        BodyFormat::Json => json::decode(body),
        BodyFormat::Yaml => yaml::decode(body),
        BodyFormat::Protobuf => protobuf(body),
    };
    let unreadable = |error: &str| {
        StatusError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    };
    match decoded.map(|decoded| decoded.value) {
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(value) if !value.is_object() => Err(unreadable("the body is not an object")),
        Ok(value) => Ok(value),
        Err(Error::TooLarge) => Err(StatusError::too_large(&Error::TooLarge.to_string())),
        Err(error) => Err(unreadable(&error.to_string())),
    }
}

/// Reads a body of this kind, in one of these versions. The body may leave out `kind` and `apiVersion`.
pub(crate) fn decode_as(
    body: &[u8],
    format: BodyFormat,
    kind: &str,
    versions: &[&str],
) -> Result<Value, StatusError> {
    let object = decode(body, format)?;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (given, version) = (text("kind"), text("apiVersion"));
    if (given.is_empty() || given == kind) && (version.is_empty() || versions.contains(&version)) {
        return Ok(object);
    }
    let given = if given.is_empty() { kind } else { given };
    let short = version.rsplit('/').next().unwrap_or_default();
    Err(StatusError::bad_request(format!(
        "{given} in version {short:?} cannot be handled as a {kind}: no kind {given:?} is registered for version {version:?}"
    )))
}

/// Reads an object that typed clients sent.
fn protobuf(body: &[u8]) -> Result<Decoded, Error> {
    let value = watchkeeper_kinds::protobuf::decode(body).map_err(|error| match error {
        watchkeeper_kinds::Error::TooLarge => Error::TooLarge,
        error => Error::Syntax(error.to_string()),
    })?;
    Ok(Decoded { value, strict_errors: Vec::new() })
}
