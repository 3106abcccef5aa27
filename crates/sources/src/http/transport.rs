//! Sends requests and reads responses.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Limited};
use watchkeeper_connection::{Body, HttpClient};
use watchkeeper_core::Error;
use watchkeeper_core::text::causes;

use super::settings::Settings;

/// A client for one feed, with the connections it keeps.
pub(super) struct Transport {
    client: HttpClient,
}

impl Transport {
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let client = HttpClient::new(settings.ca_file.clone()).map_err(Error::Fatal)?;
        Ok(Self { client })
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn get(
        &self,
        url: &Uri,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<Response<Body>, Error> {
        let mut request =
            Request::get(url).body(Bytes::new()).map_err(|error| Error::Fatal(error.to_string()))?;
        *request.headers_mut() = headers;
        match tokio::time::timeout(timeout, self.client.send(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(unavailable(&causes(&error))),
            Err(_) => Err(unavailable(&format!("no answer after {timeout:?}"))),
        }
    }
}

/// All of a body, if it comes in time and is not too large.
pub(super) async fn body(answer: Body, limit: usize, timeout: Duration) -> Result<Bytes, Error> {
    let answered = |reason: String| Error::Unavailable { answered: true, reason };
    match tokio::time::timeout(timeout, Limited::new(answer, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(answered(format!("the body is larger than the {limit} bytes that are read")))
        }
        Ok(Err(error)) => Err(answered(format!("the body is not complete: {error}"))),
        Err(_) => Err(answered(format!("the body was not complete after {timeout:?}"))),
    }
}

pub(super) fn unavailable(reason: &str) -> Error {
    Error::Unavailable { answered: false, reason: reason.into() }
}
