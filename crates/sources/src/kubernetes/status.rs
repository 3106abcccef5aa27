//! Error responses of the API server as errors of a feed: 410 is `Expired`, 403 is `Denied`.
//!
//! Kubernetes says no in three ways: with an HTTP status code, with a `Status` object in the body of such an answer,
//! and with a `Status` object inside a watch that is under way. All three end here and become one [`Error`].

use watchkeeper_core::Error;
use watchkeeper_core::text::bounded;
use watchkeeper_wire::{Refusal, Status};

/// The error of a feed that was told this in answer to `request`.
pub(super) fn error(status: &Status, request: &str) -> Error {
    let text = text(status, request);
    if status.is_version_too_large() {
        return Error::Expired(text);
    }
    match status.refusal() {
        // Of a conflict: the object has changed since.
        Refusal::Expired | Refusal::Conflict => Error::Expired(text),
        Refusal::Throttled => Error::Throttled { after: status.retry_after(), reason: text },
        Refusal::Unavailable if status.code == Some(503) && status.retry_after().is_some() => {
            Error::Throttled { after: status.retry_after(), reason: text }
        }
        Refusal::Denied => Error::Denied(text),
        Refusal::NotFound => Error::Missing(text),
        Refusal::RequestTimeout | Refusal::Unavailable | Refusal::Unexpected => {
            Error::Unavailable { answered: true, reason: text }
        }
        _ => Error::Fatal(text),
    }
}

fn text(status: &Status, request: &str) -> String {
    let mut text = request.to_owned();
    if let Some(code) = status.code {
        text.push_str(&format!(": {code}"));
    }
    if !status.reason.is_empty() {
        text.push_str(&format!(" {}", bounded(&status.reason)));
    }
    if !status.message.is_empty() {
        text.push_str(&format!(": {}", bounded(&status.message)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn told(json: &str) -> Error {
        error(&Status::read(json.as_bytes()), "watch /api/v1/pods")
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
            assert_eq!(error(&status, "list /x").class(), class, "{code}");
        }
    }

    #[test]
    fn a_reason_is_enough_where_the_code_is_missing() {
        assert_eq!(told(r#"{"reason":"Expired"}"#).class(), "expired");
        assert_eq!(told(r#"{"reason":"Gone","code":null}"#).class(), "expired");
        assert_eq!(told(r#"{"reason":"TooManyRequests"}"#).class(), "throttled");
        assert_eq!(told(r#"{"reason":"Forbidden"}"#).class(), "denied");
        assert_eq!(told(r#"{"reason":"InternalError"}"#).class(), "unavailable");
        assert_eq!(told("<html>").class(), "unavailable");
    }

    #[test]
    fn a_version_that_the_server_has_not_reached_is_not_available() {
        let by_cause = r#"{"code":504,"reason":"Timeout","message":"slow",
            "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"m"}],"retryAfterSeconds":1}}"#;
        let by_message = r#"{"code":400,"message":"Too large resource version: 9, current: 3"}"#;
        assert_eq!(told(by_cause).class(), "expired");
        assert_eq!(told(by_message).class(), "expired");
    }

    #[test]
    fn the_wait_comes_from_the_body_or_the_header_and_has_a_limit() {
        let in_body = r#"{"code":429,"details":{"retryAfterSeconds":7}}"#;
        let after = |error| match error {
            Error::Throttled { after, .. } => after,
            other => panic!("{other}"),
        };
        assert_eq!(after(told(in_body)), Some(Duration::from_secs(7)));
        let header = |seconds| error(&Status::default().with_code(503).with_retry_after(Some(seconds)), "x");
        assert_eq!(after(header(9)), Some(Duration::from_secs(9)));
        assert_eq!(after(header(u64::MAX)), Some(Duration::from_secs(3600)));
        assert_eq!(header(0).class(), "unavailable");
    }

    #[test]
    fn the_text_names_the_request_and_is_short() {
        let json = format!(r#"{{"code":403,"reason":"Forbidden","message":"no\n{}"}}"#, "x".repeat(10_000));
        let text = told(&json).to_string();
        assert!(text.starts_with("denied: watch /api/v1/pods: 403 Forbidden: no xxx"), "{text}");
        assert!(text.len() < 600);
    }
}
