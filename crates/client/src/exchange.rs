//! One request and its answer: what was said, and what a refusal means.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use serde::de::DeserializeOwned;
use watchkeeper_connection::{Body, Subject};
use watchkeeper_core::text::{bounded, causes};
use watchkeeper_sources::kubernetes::Connection;
use watchkeeper_wire::{Refusal, Status, StatusCause, Uri, reason};

use crate::error::Error;

/// How long an answer may take, its body included.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// How large an answer may be.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// What is asked.
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// Which object, for messages.
    pub(crate) object: String,
}

/// A good answer.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Bytes,
}

/// Why there is no good answer.
pub(crate) enum Failure {
    /// The server says no: nothing was changed.
    Refused(Error),
    /// It is not known whether it was done.
    Unknown(String),
}

impl Ask {
    pub(crate) fn get(uri: Uri, object: String) -> Self {
        Self { method: Method::GET, uri, content_type: "application/json", body: Vec::new(), object }
    }

    /// Sends it and reads the whole answer.
    pub(crate) async fn send(
        self,
        connection: &Connection,
        user_agent: Option<&HeaderValue>,
    ) -> Result<Answer, Failure> {
        let Self { method, uri, content_type, body, object } = self;
        let mut request =
            Request::builder().method(method).uri(uri.as_str()).header(ACCEPT, "application/json");
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(agent) = user_agent {
            request = request.header(USER_AGENT, agent);
        }
        let request = request.extension(Subject(object.clone()));
        let request = request.body(Bytes::from(body)).map_err(|error| {
            Failure::Refused(Error::Refused { object: object.clone(), code: 0, message: error.to_string() })
        })?;
        let asked = async {
            let response = connection.send(request).await;
            let response = response.map_err(|error| Failure::Unknown(bounded(&causes(&error))))?;
            read(response, &object).await
        };
        match tokio::time::timeout(RESPONSE_TIMEOUT, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::Unknown(format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs()))),
        }
    }
}

async fn read(response: Response<Body>, object: &str) -> Result<Answer, Failure> {
    let (parts, body) = response.into_parts();
    let code = parts.status.as_u16();
    let body = match Limited::new(body, MAX_ANSWER).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            return Err(Failure::Unknown(format!("the answer broke off: {}", bounded(&causes(&*error)))));
        }
    };
    if parts.status.is_success() {
        return Ok(Answer { code, body });
    }
    let retry_after =
        parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Err(failure(&Status::read(&body).with_retry_after(retry_after), code, object))
}

/// What a refusal means for the request.
fn failure(status: &Status, code: u16, object: &str) -> Failure {
    let object = object.to_owned();
    let message = match status.message.as_str() {
        "" => format!("{code} {}", bounded(&status.reason)),
        text => bounded(text),
    };
    Failure::Refused(match Refusal::of(code, &status.reason) {
        Refusal::NotFound => Error::NotFound { object },
        Refusal::AlreadyExists => Error::AlreadyExists { object },
        Refusal::Conflict => Error::Conflict { object, message },
        Refusal::Invalid => Error::Invalid { object, message, causes: causes_of(status) },
        Refusal::Denied if status.reason == reason::UNDECLARED => Error::Undeclared { object, message },
        Refusal::Denied => Error::Denied { object, message },
        Refusal::Throttled => Error::Throttled { object, after: status.retry_after(), message },
        // The server had begun when it gave up.
        Refusal::Unavailable => return Failure::Unknown(format!("{code} {message}")),
        _ => Error::Refused { object, code, message },
    })
}

fn causes_of(status: &Status) -> Vec<StatusCause> {
    let cause = |cause: &StatusCause| StatusCause {
        field: bounded(&cause.field),
        reason: bounded(&cause.reason),
        message: bounded(&cause.message),
    };
    status.causes().iter().map(cause).collect()
}

/// Decodes, or says which field of which object is wrong.
pub(crate) fn decode<T: DeserializeOwned>(json: &[u8], object: &str) -> Result<T, Error> {
    watchkeeper_informer::decode(json).map_err(|detail| Error::Decode { object: object.to_owned(), detail })
}
