//! Sends a request and reads the body of the response piece by piece, within a time limit.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout, timeout_at};
use watchkeeper_connection::{Body, Connection};
use watchkeeper_core::Error;
use watchkeeper_core::text::{bounded, causes};
use watchkeeper_wire::Status;

use super::status;

/// How long the headers of an answer may take.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the body of a refusal may take, and how long it may be.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REFUSAL: usize = 64 * 1024;

/// An answer that says yes, with its body still to come. Dropping it closes the connection.
pub(super) struct Answer {
    body: Body,
    /// The request, for error messages: verb and path, nothing of the query.
    request: String,
}

/// What came of waiting for a piece of a body.
pub(super) enum Piece {
    Data(Bytes),
    /// The body ended as it should.
    End,
    /// Nothing came in the time given.
    Silence,
}

impl Answer {
    /// Sends a request; fails unless the answer is a good one and looks like JSON.
    pub(super) async fn to(
        connection: &Connection,
        verb: &str,
        request: Request<Bytes>,
    ) -> Result<Self, Error> {
        let text = format!("{verb} {}", request.uri().path());
        let response = match timeout(HEADERS_TIMEOUT, connection.send(request)).await {
            Err(_) => {
                let reason = format!("{text}: no answer within {} s", HEADERS_TIMEOUT.as_secs());
                return Err(Error::Unavailable { answered: false, reason });
            }
            Ok(Err(error)) => {
                let reason = format!("{text}: {}", bounded(&causes(&error)));
                return Err(Error::Unavailable { answered: false, reason });
            }
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(refusal(response, &text).await);
        }
        let answer = Self { request: text, body: Body::empty() };
        if let Some(kind) = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())
            && !kind.contains("json")
        {
            return Err(answer.failed(format!("answered with {} instead of JSON", bounded(kind))));
        }
        Ok(Self { body: response.into_body(), ..answer })
    }

    /// The next piece of the body.
    pub(super) async fn piece(&mut self, timeout: Duration) -> Result<Piece, Error> {
        // One deadline for all frames until one of them holds data.
        let deadline = Instant::now() + timeout;
        loop {
            match timeout_at(deadline, self.body.frame()).await {
                Err(_) => return Ok(Piece::Silence),
                Ok(None) => return Ok(Piece::End),
                Ok(Some(Err(error))) => {
                    return Err(self.failed(format!("broken off: {}", bounded(&causes(&error)))));
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Piece::Data(data)),
                    _ => {}
                },
            }
        }
    }

    /// The error of a server that answered and then did not do as it should.
    pub(super) fn failed(&self, reason: impl std::fmt::Display) -> Error {
        Error::Unavailable { answered: true, reason: format!("{}: {reason}", self.request) }
    }

    /// The error of a server that says so within the body.
    pub(super) fn refused(&self, status: &Status) -> Error {
        status::error(status, &self.request)
    }
}

/// Reads as much of a refusal as is needed to say what it means.
async fn refusal(response: Response<Body>, request: &str) -> Error {
    let code = response.status().as_u16();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = timeout(REFUSAL_TIMEOUT, beginning(response.into_body())).await.unwrap_or_default();
    status::error(&Status::read(&body).with_code(code).with_retry_after(retry_after), request)
}

/// The body, or as much of it as is read before it breaks or grows too long.
async fn beginning(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data[..data.len().min(MAX_REFUSAL - bytes.len())]);
            if bytes.len() == MAX_REFUSAL {
                break;
            }
        }
    }
    bytes
}
