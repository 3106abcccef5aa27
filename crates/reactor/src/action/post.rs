//! The action `post`: sends a request.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Uri};
use serde_json::Value;
use watchkeeper_connection::HttpClient;
use watchkeeper_core::text::causes;
use watchkeeper_sources::http::{retry_after, shown};

use super::{Again, Failure, Run};
use crate::change::Change;
use crate::error::Error;
use crate::file::{PostSpec, Secret, check_url};
use crate::print::Print;

/// Sends a request for each change. Success is an answer of 2xx.
///
/// Every request has an `Idempotency-Key`, which is the same whenever the same change is sent again. An object that changes there and back
/// and there again is three changes.
pub(crate) struct Post {
    spec: PostSpec,
    client: HttpClient,
}

impl Post {
    pub(super) fn new(spec: PostSpec) -> Result<Self, Error> {
        let client = HttpClient::new(spec.ca_file.clone()).map_err(Error::Input)?;
        Ok(Self { spec, client })
    }

    pub(super) async fn run(&self, run: &Run<'_>) -> Result<(), Failure> {
        let request = self.request(run)?;
        // The whole takes no longer than the time-out of the run.
        let answer = self.client.send(request).await;
        let answer =
            answer.map_err(|error| Failure::usual(format!("{}: {}", self.shown(), causes(&error))))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let again = match retry_after(answer.headers()) {
            Some(after) if matches!(status.as_u16(), 429 | 503) => Again::After(after),
            _ => Again::Usual,
        };
        Err(Failure { message: format!("{} answered {status}", self.shown()), again })
    }

    pub(super) fn would(&self, change: &Change) -> Result<String, Failure> {
        self.body(change)?;
        Ok(format!("{} to {}", self.spec.method, self.shown()))
    }

    fn request(&self, run: &Run<'_>) -> Result<Request<Bytes>, Failure> {
        let (body, content_type) = self.body(run.change)?;
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = self.spec.method.clone();
        *request.uri_mut() = self.url()?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert("user-agent", HeaderValue::from_static("watchkeeper"));
        if let Ok(value) = HeaderValue::from_str(&idempotency_key(run)) {
            headers.insert("idempotency-key", value);
        }
        for header in &self.spec.headers {
            let name = &header.name;
            let value = format!("{}{}", header.prefix, read(&header.value)?);
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Failure::usual(format!("the value of the header {name} cannot be sent")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(request)
    }

    fn url(&self) -> Result<Uri, Failure> {
        let text = read(&self.spec.url)?;
        check_url(&text).map_err(|wrong| Failure::usual(format!("{} {wrong}", self.shown())))
    }

    fn body(&self, change: &Change) -> Result<(Vec<u8>, &'static str), Failure> {
        let Some(template) = &self.spec.body else {
            return Ok((change.to_json().to_string().into_bytes(), "application/json"));
        };
        match template.fill(change).map_err(|unfilled| Failure::never(format!("body: {unfilled}")))? {
            Value::String(text) => Ok((text.into_bytes(), "text/plain; charset=utf-8")),
            value => Ok((value.to_string().into_bytes(), "application/json")),
        }
    }

    /// The URL without what may be secret in it.
    fn shown(&self) -> String {
        match &self.spec.url {
            Secret::Text(url) => shown(url),
            Secret::File(path) => format!("the URL in {}", path.display()),
            Secret::Env(name) => format!("the URL in ${name}"),
        }
    }
}

/// Tells a change from all others, so that who gets it twice can know.
fn idempotency_key(run: &Run<'_>) -> String {
    let change = run.change;
    let print = |state: Option<&Value>| state.map(|state| Print::of(state).hex()).unwrap_or_default();
    let (old, new) = (print(change.old.as_deref()), print(change.new.as_deref()));
    let (key, nonce) = (change.key.to_string(), run.nonce.to_string());
    Print::of_texts(&[run.reaction, &change.source, &key, &old, &new, &nonce]).hex()
}

/// A text that may be secret, as it is now.
fn read(secret: &Secret) -> Result<String, Failure> {
    let text = match secret {
        Secret::Text(text) => return Ok(text.clone()),
        Secret::File(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::usual(format!("{} cannot be read: {error}", path.display())))?,
        Secret::Env(name) => {
            std::env::var(name).map_err(|_| Failure::usual(format!("the variable {name} is not set")))?
        }
    };
    match text.trim() {
        "" => Err(Failure::usual(format!("{secret:?} is empty"))),
        text => Ok(text.to_owned()),
    }
}
