//! One request and its answer: what was said, and what a refusal means.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use kube_client::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use watchkeeper_core::text::{bounded, causes};
use watchkeeper_sources::kubernetes::Connection;

use crate::error::{Error, StatusCause};
use crate::place::Uri;

/// How long an answer may take, its body included.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How large an answer may be.
const MAX_ANSWER: usize = 256 * 1024 * 1024;
/// No server is taken at its word for longer than this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

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
        let request = request.body(Body::from(body)).map_err(|error| {
            Failure::Refused(Error::Refused { object: object.clone(), code: 0, message: error.to_string() })
        })?;
        let asked = async {
            let response = connection.transport().send(request).await;
            let response = response.map_err(|error| Failure::Unknown(bounded(&causes(&error))))?;
            read(response, &object).await
        };
        match tokio::time::timeout(ANSWER_WITHIN, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::Unknown(format!("no answer within {} s", ANSWER_WITHIN.as_secs()))),
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
    let mut status: Status = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(seconds) =
        parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok())
    {
        status.details.get_or_insert_default().retry_after_seconds = Some(seconds);
    }
    Err(status.failure(code, object))
}

/// The fields of a `Status` that decide anything.
#[derive(Debug, Default, Deserialize)]
struct Status {
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<WireCause>>,
}

/// A cause as it comes, of which anything may be missing.
#[derive(Debug, Default, Deserialize)]
struct WireCause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

impl Status {
    fn failure(self, code: u16, object: &str) -> Failure {
        let object = object.to_owned();
        let reason = self.reason.as_deref().unwrap_or_default();
        let message = match self.message.as_deref() {
            Some(text) if !text.is_empty() => bounded(text),
            _ => format!("{code} {}", bounded(reason)),
        };
        let after =
            self.details.as_ref().and_then(|details| details.retry_after_seconds).filter(|&wait| wait > 0);
        let after = after.map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
        Failure::Refused(match (code, reason) {
            (404, _) => Error::NotFound { object },
            (409, "AlreadyExists") => Error::AlreadyExists { object },
            (409, _) => Error::Conflict { object, message },
            (422, _) => Error::Invalid { object, message, causes: self.causes() },
            (401 | 403, _) => Error::Denied { object, message },
            (429, _) => Error::Throttled { object, after, message },
            // The server had begun when it gave up.
            (500..=599, _) => return Failure::Unknown(format!("{code} {message}")),
            _ => Error::Refused { object, code, message },
        })
    }

    fn causes(self) -> Vec<StatusCause> {
        let causes = self.details.and_then(|details| details.causes).unwrap_or_default();
        let text = |text: Option<String>| bounded(&text.unwrap_or_default());
        let cause = |cause: WireCause| StatusCause {
            field: text(cause.field),
            reason: text(cause.reason),
            message: text(cause.message),
        };
        causes.into_iter().map(cause).collect()
    }
}

/// Decodes, or says which field of which object is wrong.
pub(crate) fn decode<T: DeserializeOwned>(json: &[u8], object: &str) -> Result<T, Error> {
    watchkeeper_informer::decode(json).map_err(|detail| Error::Decode { object: object.to_owned(), detail })
}
