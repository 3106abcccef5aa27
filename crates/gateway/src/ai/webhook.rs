//! Services that are asked whether a text may pass.
//!
//! What is not a clear answer is none: another code than 200 (redirections are not followed), an answer that is too large, too late, no JSON, or without
//! `allowed` as true or false. What becomes of the text then is for [`Webhook::fails_closed`] to say.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use serde::Deserialize;
use tokio::time::timeout;
use watchkeeper_front::Body;

use super::provider_key::ProviderKey;
use super::seldom::Seldom;
use crate::upstream::Backend;

/// The largest answer, in bytes.
const ANSWER: usize = 16 << 10;

/// A service that is asked.
#[derive(Debug)]
pub struct Webhook {
    /// Where it is.
    pub backend: Backend,
    /// What it is shown.
    pub key: ProviderKey,
    /// Headers that it gets besides.
    pub headers: HeaderMap,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes of text it is asked about at once.
    pub max_bytes: usize,
    /// Whether what it does not judge does not pass.
    pub fails_closed: bool,
    /// That it does not answer.
    pub failed: Seldom,
}

/// An answer.
#[derive(Deserialize)]
struct Verdict {
    allowed: bool,
}

impl Webhook {
    /// Asks whether a text may pass.
    pub(super) async fn ask(&self, body: Bytes) -> Result<bool, String> {
        let asked = async {
            if matches!(self.key, ProviderKey::Missing) {
                return Err("its key is not there: see webhook.key".to_owned());
            }
            let endpoint = self.backend.endpoints.first().ok_or("it has no address")?;
            let request = self.request(&endpoint.state.address, body).ok_or("its URL cannot be asked")?;
            let sent = endpoint.state.send(&self.backend.transport, request).await;
            let (response, lease) = sent.map_err(|unsent| unsent.reason.to_string())?;
            let code = response.status();
            if code != StatusCode::OK {
                return Err(format!("it answered with code {}", code.as_u16()));
            }
            let read = Body::wrap(response.into_body()).read(ANSWER).await;
            let answer =
                read.map_err(|_| format!("its answer broke off, or is larger than {ANSWER} bytes"))?;
            lease.finish();
            match serde_json::from_slice::<Verdict>(&answer) {
                Ok(Verdict { allowed }) => Ok(allowed),
                Err(_) => Err("its answer is not {\"allowed\": true} or {\"allowed\": false}".to_owned()),
            }
        };
        match timeout(self.timeout, asked).await {
            Ok(answered) => answered,
            Err(_) => Err(format!("it did not answer within {:?}", self.timeout)),
        }
    }

    fn request(&self, address: &str, body: Bytes) -> Option<Request<Body>> {
        let path = if self.backend.path.is_empty() { "/" } else { &self.backend.path };
        let target: Uri = path.parse().ok()?;
        let mut request = Request::new(Body::whole(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target;
        let usual = if self.backend.transport.tls.is_some() { ":443" } else { ":80" };
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(address.strip_suffix(usual).unwrap_or(address)).ok()?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        if let Some(bearer) = self.key.bearer() {
            headers.insert(AUTHORIZATION, bearer);
        }
        Some(request)
    }
}
