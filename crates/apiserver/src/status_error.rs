//! What a client is told when something cannot be done.

use serde_json::{Value, json};
use watchkeeper_schema::managed::Conflicts;
use watchkeeper_schema::{FieldError, invalid_message};
use watchkeeper_storage::Error as StorageError;
use watchkeeper_wire::{Status, StatusCause, StatusDetails, reason};

use crate::request::rejected::Rejected;

/// A request that failed, as the `Status` object that says so.
///
/// Clients decide by the code and the reason, print the message word for word, and look for causes by field: all of it
/// is interface, and is as kube-apiserver has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    details: Option<Box<StatusDetails>>,
    /// What a webhook adds to it.
    foreign: Option<Box<Foreign>>,
    /// A token to go on with, for lists whose snapshot has been forgotten.
    pub(crate) token: Option<String>,
    /// Whether the status does not say that it is one.
    is_bare: bool,
}

/// What a webhook adds to the failure of a request.
#[derive(Clone, Debug, Default, PartialEq)]
struct Foreign {
    /// A reason of its own; empty if it has none.
    reason: String,
    warnings: Vec<String>,
}

/// What a failure is about: a resource by its group and plural, or a kind by its group and name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) group: &'a str,
    pub(crate) name: &'a str,
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.group {
            "" => f.write_str(self.name),
            group => write!(f, "{}.{group}", self.name),
        }
    }
}

impl StatusError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            foreign: None,
            token: None,
            is_bare: false,
        }
    }

    fn about(mut self, subject: Subject<'_>, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = subject.group.into();
        details.kind = subject.name.into();
        details.name = name.into();
        self
    }

    /// Tells the client when to try again.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds.into();
        self
    }

    /// Adds what exactly was wrong.
    #[must_use]
    pub(crate) fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        let cause = StatusCause { reason: reason.into(), message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    pub(crate) fn not_found(resource: Subject<'_>, name: &str) -> Self {
        Self::new(404, reason::NOT_FOUND, format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// The path leads to something known, but nothing is served there.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, reason::NOT_FOUND, "the server could not find the requested resource")
            .about(Subject { group: "", name: "" }, "")
    }

    pub(crate) fn already_exists(resource: Subject<'_>, name: &str) -> Self {
        Self::new(409, reason::ALREADY_EXISTS, format!("{resource} {name:?} already exists"))
            .about(resource, name)
    }

    /// The server picked names, and all of them were taken.
    pub(crate) fn no_unique_name(resource: Subject<'_>, name: &str) -> Self {
        let message = format!(
            "{resource} {name:?} already exists, the server was not able to generate a unique name for the object"
        );
        Self::new(409, reason::ALREADY_EXISTS, message).about(resource, name).retry_after(1)
    }

    pub(crate) fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {subject} {name:?}: {why}");
        Self::new(409, reason::CONFLICT, message).about(subject, name)
    }

    /// The version sent is not the newest one.
    pub(crate) fn modified(resource: Subject<'_>, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(crate) fn forbidden(resource: Subject<'_>, name: &str, why: &str) -> Self {
        let message = match (resource.name, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(403, reason::FORBIDDEN, message).about(resource, name)
    }

    pub(crate) fn invalid(kind: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let message = invalid_message(kind.group, kind.name, name, errors);
        errors.iter().fold(Self::new(422, reason::INVALID, message).about(kind, name), |failure, error| {
            failure.cause(error.reason.cause(), error.body(), &error.field)
        })
    }

    /// A patch that does not fit the object; the text says nothing about it, as in kube-apiserver.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, reason::INVALID, message).about(Subject { group: "", name: "" }, "")
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, reason::BAD_REQUEST, message)
    }

    pub(crate) fn method_not_allowed(resource: Subject<'_>, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {:?}", resource.to_string());
        Self::new(405, reason::METHOD_NOT_ALLOWED, message).about(resource, "")
    }

    /// Something is there already, and on its way out.
    pub(crate) fn still_exists(resource: Subject<'_>, name: &str) -> Self {
        let mut failure = Self::already_exists(resource, name);
        failure.message.insert_str(0, "object is being deleted: ");
        failure
    }

    /// A write to a server that only shows what is stored.
    pub(crate) fn read_only() -> Self {
        let message = "this server is read-only: it shows what is stored and changes nothing";
        Self::new(405, reason::METHOD_NOT_ALLOWED, message)
    }

    /// A method that no path like this has.
    pub(crate) fn unknown_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, reason::METHOD_NOT_ALLOWED, message).about(Subject { group: "", name: "" }, "")
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, reason::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// A patch of a kind that nobody knows; said by another part of kube-apiserver than the rest.
    pub(crate) fn unknown_media_type() -> Self {
        Self::unsupported_media_type("415: Unsupported Media Type").about(Subject { group: "", name: "" }, "")
    }

    /// The router knows none of the media types asked for; said before anybody looks at the rest of the request.
    pub(crate) fn not_routed(is_list: bool) -> Self {
        let streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let message = format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf{}",
            if is_list { streams } else { "" }
        );
        Self::new(406, reason::NOT_ACCEPTABLE, message).about(Subject { group: "", name: "" }, "")
    }

    /// Metadata of one object was asked for where there is a list of this Go type.
    pub(crate) fn not_one(kind: &str) -> Self {
        let message =
            format!("you requested PartialObjectMetadata, but the requested object is a list ({kind})");
        Self::new(406, reason::NOT_ACCEPTABLE, message)
    }

    /// Fields that others manage.
    pub(crate) fn apply_conflict(conflicts: &Conflicts) -> Self {
        let failure = Self::new(409, reason::CONFLICT, conflicts.to_string());
        conflicts.causes().into_iter().fold(failure, |failure, cause| {
            failure.cause(reason::FIELD_MANAGER_CONFLICT, cause.message, &cause.field)
        })
    }

    pub(crate) fn too_large(message: &str) -> Self {
        Self::new(413, reason::REQUEST_ENTITY_TOO_LARGE, format!("Request entity too large: {message}"))
    }

    /// Something is not to be done now.
    pub(crate) fn too_many_requests(message: &str, retry_after: u32) -> Self {
        Self::new(429, reason::TOO_MANY_REQUESTS, message).retry_after(retry_after)
    }

    /// The version asked for has been forgotten.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, reason::EXPIRED, message)
    }

    /// The version asked for has not happened yet, and did not within the time a client is made to wait.
    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, reason::TIMEOUT, message).retry_after(1).cause(
            reason::RESOURCE_VERSION_TOO_LARGE,
            "Too large resource version",
            "",
        )
    }

    /// The request took longer than it may. In kube-apiserver, a filter says so, which leaves out of the status what it is.
    pub(crate) fn too_slow() -> Self {
        let why = "request did not complete within the allotted timeout";
        let failure = Self::new(504, reason::TIMEOUT, format!("Timeout: {why}"));
        Self { is_bare: true, ..failure.about(Subject { group: "", name: "" }, "") }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(500, reason::INTERNAL_ERROR, format!("Internal error occurred: {message}"))
            .cause("", message, "")
    }

    /// What a webhook says of a write that it refuses, with its own code, reason and details.
    pub(crate) fn of_webhook(code: u16, reason: &str, message: String, details: &Value) -> Self {
        let mut failure = Self::new(code, "", message);
        failure.foreign.get_or_insert_default().reason = reason.to_owned();
        failure.details = serde_json::from_value(details.clone()).ok().map(Box::new);
        failure
    }

    /// The same with warnings.
    #[must_use]
    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.foreign.get_or_insert_default().warnings = warnings;
        self
    }

    /// The same with these warnings, unless it has some.
    #[must_use]
    pub(crate) fn with_more_warnings(self, warnings: &[String]) -> Self {
        match self.warnings().is_empty() && !warnings.is_empty() {
            true => self.with_warnings(warnings.to_vec()),
            false => self,
        }
    }

    /// Warnings that the client gets with it.
    pub(crate) fn warnings(&self) -> &[String] {
        self.foreign.as_ref().map_or(&[], |foreign| &foreign.warnings)
    }

    /// An error that kube-apiserver passes on as it is: a code and a message, no reason.
    pub(crate) fn untyped(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// There is nothing behind this server that could answer. Nobody is told to try again, as by kube-apiserver.
    pub(crate) fn no_backend(message: impl Into<String>) -> Self {
        Self::new(503, reason::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, reason::SERVICE_UNAVAILABLE, message).retry_after(1)
    }

    /// The `Status` object.
    pub(crate) fn status(&self) -> Value {
        let foreign = self.foreign.as_ref().map(|foreign| foreign.reason.as_str());
        let reason = foreign.filter(|reason| !reason.is_empty()).unwrap_or(self.reason).to_owned();
        let status = Status {
            code: Some(self.code),
            reason,
            message: self.message.clone(),
            details: self.details.as_deref().cloned(),
        };
        let mut status = status.to_value(self.token.as_deref());
        if let Some(fields) = status.as_object_mut().filter(|_| self.is_bare) {
            fields.retain(|name, _| name != "kind" && name != "apiVersion");
        }
        status
    }

    /// How long the client is asked to wait.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }
}

/// Requests that cannot be understood.
impl From<Rejected> for StatusError {
    fn from(rejected: Rejected) -> Self {
        let failure = Self::new(rejected.code(), rejected.reason(), rejected.message());
        match rejected {
            Rejected::Invalid { kind, name, errors } => {
                Self::invalid(Subject { group: "meta.k8s.io", name: kind }, &name, &errors)
            }
            Rejected::Internal(message) => Self::internal(message),
            _ => failure,
        }
    }
}

/// The `Status` of something that went well and has nothing else to show.
pub(crate) fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}

/// The `Status` of something that is gone for good.
pub(crate) fn deleted(resource: Subject<'_>, name: &str, uid: &str) -> Value {
    let details = StatusDetails {
        name: name.into(),
        group: resource.group.into(),
        kind: resource.name.into(),
        uid: uid.into(),
        ..StatusDetails::default()
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value()})
}

impl From<StorageError> for StatusError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Compacted { oldest } => Self::expired(format!(
                "The provided resource version is too old; the oldest available one is {oldest}. Please list without it."
            )),
            StorageError::Future { current } => Self::version_too_large(0, current),
            StorageError::TooLarge(reason) => Self::too_large(&reason),
            StorageError::Unknown { .. } => {
                let message = format!("the storage did not answer in time: {error}");
                Self::new(504, reason::TIMEOUT, message).retry_after(1)
            }
            StorageError::Full { .. }
            | StorageError::Unavailable { .. }
            | StorageError::Halted { .. }
            | StorageError::Closed => Self::unavailable(format!("the storage is not available: {error}")),
            error => Self::internal(error.to_string()),
        }
    }
}
