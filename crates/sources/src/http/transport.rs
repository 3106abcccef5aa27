//! Requests out, answers in.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use watchkeeper_core::Error;

/// A client for HTTP and HTTPS, with the connections it keeps. It follows no redirections and repeats no requests.
#[derive(Clone)]
pub struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Transport {
    /// A client that trusts the certificates in a PEM file, or without one those that the system trusts.
    pub fn new(ca_file: Option<&Path>) -> Result<Self, Error> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(ca_file)?)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn get(
        &self,
        url: &Uri,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let mut request =
            Request::get(url).body(Full::default()).map_err(|error| Error::Fatal(error.to_string()))?;
        *request.headers_mut() = headers;
        self.send(request, timeout).await
    }

    /// Sends a request, and waits for the head of the answer.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](Error::Unavailable) if there is no answer in time. Whatever the answer says is no error.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<Response<Incoming>, Error> {
        match tokio::time::timeout(timeout, self.client.request(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(unavailable(&reason(&error))),
            Err(_) => Err(unavailable(&format!("no answer after {timeout:?}"))),
        }
    }
}

/// All of a body, if it comes in time and is not too large.
pub(super) async fn body(answer: Incoming, limit: usize, timeout: Duration) -> Result<Bytes, Error> {
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

/// What is at the bottom of an error: what is above says only that a request failed.
fn reason(error: &dyn std::error::Error) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, Error> {
    let fatal = |reason: String| Error::Fatal(reason);
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fatal(error.to_string()))?;
    let Some(path) = ca_file else {
        // A request without TLS needs no certificates, and where there are none, one with TLS says so.
        let config = match config.clone().with_native_roots() {
            Ok(config) => config,
            Err(_) => config.with_root_certificates(RootCertStore::empty()),
        };
        return Ok(config.with_no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    let bad =
        |error: &dyn std::fmt::Display| fatal(format!("the certificates in {}: {error}", path.display()));
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))? {
        roots.add(certificate.map_err(|error| bad(&error))?).map_err(|error| bad(&error))?;
    }
    if roots.is_empty() {
        return Err(bad(&"there are none"));
    }
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
