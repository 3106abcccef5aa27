use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::{Refusal, reason};

/// The longest wait that a client lets a server ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// A `metav1.Status` about a failure: what a server answers instead of an object.
///
/// Clients decide by the code and the reason, print the message word for word, and look for causes by field.
///
/// ```
/// use watchkeeper_wire::{Refusal, Status};
/// let status = Status::read(br#"{"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such pod"}"#);
/// assert_eq!(status.refusal(), Refusal::NotFound);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The HTTP status code, if the body has one.
    pub code: Option<u16>,
    /// One of [`reason`](crate::reason), another word, or nothing.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// The text for people.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// The object of the failure, and its causes.
    pub details: Option<StatusDetails>,
}

/// The `details` of a [`Status`]: what it is about, and what exactly is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusDetails {
    /// The name of the object.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The group of the resource or kind.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// The resource by its plural, or the kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// The incarnation of the object.
    #[serde(deserialize_with = "or_default")]
    pub uid: String,
    /// The causes.
    #[serde(deserialize_with = "or_default")]
    pub causes: Vec<StatusCause>,
    /// The seconds that the client is asked to wait; 0 if it is not.
    #[serde(deserialize_with = "or_default")]
    pub retry_after_seconds: u64,
}

/// One thing that is wrong: mostly one field of an object. Prints as the field and the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// The reason: `FieldValueInvalid`.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// The text for people.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// The field at fault.
    #[serde(deserialize_with = "or_default")]
    pub field: String,
}

/// Takes `null` for a field that is not there.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Status {
    /// Reads a `Status`. Bytes that are none make an empty one: a proxy may have answered in the server's place.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Sets the code of the HTTP response, which counts more than the one in the body.
    #[must_use]
    pub fn with_code(self, code: u16) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Sets the seconds of a `Retry-After` header, if there is one.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: Option<u64>) -> Self {
        if let Some(seconds) = seconds {
            self.details.get_or_insert_default().retry_after_seconds = seconds;
        }
        self
    }

    /// The meaning of the failure for a client. A `Status` without a code means what its reason does.
    pub fn refusal(&self) -> Refusal {
        match self.reason.as_str() {
            reason::EXPIRED | reason::GONE => Refusal::Expired,
            known => Refusal::of(self.code.unwrap_or_else(|| reason::code(known)), known),
        }
    }

    /// Whether the server has not reached the version that was asked for, as happens after a switch between servers.
    pub fn is_version_too_large(&self) -> bool {
        self.causes().iter().any(|cause| cause.reason == reason::RESOURCE_VERSION_TOO_LARGE)
            || self.message.contains("Too large resource version")
    }

    /// The causes.
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| &details.causes)
    }

    /// The time that the client is asked to wait: an hour at most, whatever the server says.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
    }

    /// The object, as a server sends it. `token` is where a list may go on whose state has been forgotten.
    pub fn to_value(&self, token: Option<&str>) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = token {
            metadata.insert("continue".into(), token.into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure", "message": self.message,
        });
        if let Some(code) = self.code {
            status["code"] = code.into();
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl StatusDetails {
    /// The object, without what is empty.
    pub fn to_value(&self) -> Value {
        let mut fields =
            texts([("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]);
        if !self.causes.is_empty() {
            fields.insert("causes".into(), self.causes.iter().map(StatusCause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            fields.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(fields)
    }
}

impl StatusCause {
    /// The object, without what is empty.
    pub fn to_value(&self) -> Value {
        Value::Object(texts([("reason", &self.reason), ("message", &self.message), ("field", &self.field)]))
    }
}

impl fmt::Display for StatusCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

fn texts<const N: usize>(fields: [(&str, &String); N]) -> Map<String, Value> {
    let said = fields.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(name, text)| (name.to_owned(), text.as_str().into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Status {
        Status::read(json.as_bytes())
    }

    #[test]
    fn a_reason_is_enough_where_the_code_is_missing() {
        assert_eq!(read(r#"{"reason":"Expired","code":500}"#).refusal(), Refusal::Expired);
        assert_eq!(read(r#"{"reason":"Gone","code":null}"#).refusal(), Refusal::Expired);
        assert_eq!(read(r#"{"reason":"TooManyRequests"}"#).refusal(), Refusal::Throttled);
        assert_eq!(read("{}").refusal(), Refusal::Unavailable);
        assert_eq!(read(r#"{"reason":"NotFound"}"#).with_code(403).refusal(), Refusal::Denied);
    }

    #[test]
    fn null_is_as_good_as_nothing_and_what_is_no_status_is_empty() {
        let null = read(
            r#"{"code":null,"reason":null,"message":null,"details":{"causes":null,"retryAfterSeconds":null}}"#,
        );
        assert_eq!((null.retry_after(), null.causes()), (None, &[][..]));
        for other in ["<html>", "[]", "7", r#"{"code":"x"}"#] {
            assert_eq!(read(other), Status::default(), "{other}");
        }
    }

    #[test]
    fn a_version_that_the_server_has_not_reached_is_told_by_cause_or_by_message() {
        assert!(
            read(r#"{"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#).is_version_too_large()
        );
        assert!(read(r#"{"message":"Too large resource version: 9, current: 3"}"#).is_version_too_large());
        assert!(
            !read(r#"{"reason":"Timeout","details":{"causes":[{"message":"slow"}]}}"#).is_version_too_large()
        );
    }

    #[test]
    fn the_wait_comes_from_the_body_or_the_header_and_has_a_limit() {
        let in_body = read(r#"{"details":{"retryAfterSeconds":7}}"#);
        assert_eq!(in_body.retry_after(), Some(Duration::from_secs(7)));
        let header = |seconds| in_body.clone().with_retry_after(Some(seconds)).retry_after();
        assert_eq!(header(9), Some(Duration::from_secs(9)));
        assert_eq!((header(u64::MAX), header(0)), (Some(MAX_RETRY_AFTER), None));
        assert_eq!(in_body.clone().with_retry_after(None), in_body);
    }

    #[test]
    fn what_is_written_is_read() {
        let cause = StatusCause { reason: "a".into(), message: "b".into(), field: String::new() };
        let details = StatusDetails {
            name: "n".into(),
            causes: vec![cause],
            retry_after_seconds: 3,
            ..StatusDetails::default()
        };
        let status =
            Status { code: Some(422), reason: "Invalid".into(), message: "m".into(), details: Some(details) };
        let written = status.to_value(Some("t"));
        assert_eq!(read(&written.to_string()), status);
        assert_eq!(
            written,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {"continue": "t"}, "status": "Failure", "message": "m",
                "code": 422, "reason": "Invalid",
                "details": {"name": "n", "causes": [{"reason": "a", "message": "b"}], "retryAfterSeconds": 3},
            })
        );
    }
}
