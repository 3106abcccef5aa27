//! What a server's refusal means for the reader of a feed.
//!
//! Kubernetes says no in three ways: with an HTTP status code, with a `Status` object in the body of such an answer,
//! and with a `Status` object inside a watch that is under way. All three end here and become one [`Error`].

use std::time::Duration;

use serde::Deserialize;
use watchkeeper_core::Error;
use watchkeeper_core::text::bounded;

/// No server is taken at its word for longer than this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// The fields of a `Status` that decide anything. Absent and `null` are the same.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Status {
    pub(super) code: Option<u16>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    details: Option<Details>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<Cause>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Cause {
    reason: Option<String>,
}

impl Status {
    /// What the bytes say, or nothing if they are not a `Status`: a proxy may have answered in the server's place.
    pub(super) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// With the code of the HTTP answer, which counts more than the one in the body.
    pub(super) fn with_code(self, code: u16) -> Self {
        Self { code: Some(code), ..self }
    }

    /// With the seconds of a `Retry-After` header.
    pub(super) fn with_retry_after(mut self, seconds: Option<u64>) -> Self {
        if seconds.is_some() {
            self.details.get_or_insert_default().retry_after_seconds = seconds;
        }
        self
    }

    /// Whether the server has not yet seen the version that was asked for, as happens after a switch between servers.
    fn is_ahead_of_the_server(&self) -> bool {
        let causes = self.details.iter().flat_map(|details| details.causes.iter().flatten());
        causes.into_iter().any(|cause| cause.reason.as_deref() == Some("ResourceVersionTooLarge"))
            || self.message.as_deref().is_some_and(|message| message.contains("Too large resource version"))
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds.filter(|&seconds| seconds > 0)?;
        Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
    }

    /// The error of a feed that was told this in answer to `request`.
    pub(super) fn into_error(self, request: &str) -> Error {
        let text = self.text(request);
        let reason = self.reason.as_deref().unwrap_or_default();
        if self.is_ahead_of_the_server() {
            return Error::Expired(text);
        }
        match self.code.unwrap_or_else(|| code_of(reason)) {
            410 => Error::Expired(text),
            _ if matches!(reason, "Expired" | "Gone") => Error::Expired(text),
            429 => Error::Throttled { after: self.retry_after(), reason: text },
            503 if self.retry_after().is_some() => {
                Error::Throttled { after: self.retry_after(), reason: text }
            }
            401 | 403 => Error::Denied(text),
            404 => Error::Missing(text),
            408 => Error::Unavailable { answered: true, reason: text },
            400..=499 => Error::Fatal(text),
            _ => Error::Unavailable { answered: true, reason: text },
        }
    }

    fn text(&self, request: &str) -> String {
        let mut text = request.to_owned();
        if let Some(code) = self.code {
            text.push_str(&format!(": {code}"));
        }
        if let Some(reason) = self.reason.as_deref().filter(|reason| !reason.is_empty()) {
            text.push_str(&format!(" {}", bounded(reason)));
        }
        if let Some(message) = self.message.as_deref().filter(|message| !message.is_empty()) {
            text.push_str(&format!(": {}", bounded(message)));
        }
        text
    }
}

/// The code that belongs to a reason, for a `Status` without one.
fn code_of(reason: &str) -> u16 {
    match reason {
        "BadRequest" => 400,
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "NotFound" => 404,
        "MethodNotAllowed" => 405,
        "NotAcceptable" => 406,
        "Invalid" => 422,
        "TooManyRequests" => 429,
        "ServiceUnavailable" => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> Error {
        Status::read(json.as_bytes()).into_error("watch /api/v1/pods")
    }

    #[test]
    fn each_code_is_what_the_reader_can_do_about_it() {
        for (code, class) in [
            (400, "fatal"),
            (401, "denied"),
            (403, "denied"),
            (404, "missing"),
            (405, "fatal"),
            (406, "fatal"),
            (408, "unavailable"),
            (410, "expired"),
            (422, "fatal"),
            (429, "throttled"),
            (500, "unavailable"),
            (503, "unavailable"),
            (504, "unavailable"),
            (302, "unavailable"),
        ] {
            let status = Status::default().with_code(code);
            assert_eq!(status.into_error("list /x").class(), class, "{code}");
        }
    }

    #[test]
    fn a_reason_is_enough_where_the_code_is_missing() {
        assert_eq!(error(r#"{"reason":"Expired"}"#).class(), "expired");
        assert_eq!(error(r#"{"reason":"Gone","code":null}"#).class(), "expired");
        assert_eq!(error(r#"{"reason":"TooManyRequests"}"#).class(), "throttled");
        assert_eq!(error(r#"{"reason":"Forbidden"}"#).class(), "denied");
        assert_eq!(error(r#"{"reason":"InternalError"}"#).class(), "unavailable");
        assert_eq!(error("<html>").class(), "unavailable");
    }

    #[test]
    fn a_version_that_the_server_has_not_reached_is_not_available() {
        let by_cause = r#"{"code":504,"reason":"Timeout","message":"slow",
            "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"m"}],"retryAfterSeconds":1}}"#;
        let by_message = r#"{"code":400,"message":"Too large resource version: 9, current: 3"}"#;
        assert_eq!(error(by_cause).class(), "expired");
        assert_eq!(error(by_message).class(), "expired");
    }

    #[test]
    fn the_wait_comes_from_the_body_or_the_header_and_has_a_limit() {
        let in_body = r#"{"code":429,"details":{"retryAfterSeconds":7}}"#;
        let after = |error| match error {
            Error::Throttled { after, .. } => after,
            other => panic!("{other}"),
        };
        assert_eq!(after(error(in_body)), Some(Duration::from_secs(7)));
        let header =
            |seconds| Status::default().with_code(503).with_retry_after(Some(seconds)).into_error("x");
        assert_eq!(after(header(9)), Some(Duration::from_secs(9)));
        assert_eq!(after(header(u64::MAX)), Some(MAX_RETRY_AFTER));
        assert_eq!(header(0).class(), "unavailable");
    }

    #[test]
    fn the_text_names_the_request_and_is_short() {
        let json = format!(r#"{{"code":403,"reason":"Forbidden","message":"no\n{}"}}"#, "x".repeat(10_000));
        let text = error(&json).to_string();
        assert!(text.starts_with("denied: watch /api/v1/pods: 403 Forbidden: no xxx"), "{text}");
        assert!(text.len() < 600);
    }
}
