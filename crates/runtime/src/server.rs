//! The server of probes and metrics.

use std::io;
use std::net::{SocketAddr, TcpListener};

use http::{Method, StatusCode, header};
use watchkeeper_front::{Front, Limits, Listener, Request, Response};

use crate::health::{Checks, Finding};
use crate::metrics::Metrics;

/// Connections at a time: a few probes and a few scrapers need no more. For another one, the one is closed that was silent for
/// longest.
const CONNECTIONS: usize = 64;
/// A probe carries nothing.
const BODY_BYTES: u64 = 0;

/// What is served.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) live: Checks,
    pub(crate) ready: Checks,
    pub(crate) metrics: Metrics,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _front: Front,
}

impl Server {
    /// Listens. Everybody is a stranger, and has half of the places.
    pub(crate) fn start(address: SocketAddr, pages: Pages) -> io::Result<Self> {
        let listener = Listener::from_std(TcpListener::bind(address)?)?;
        let address = listener.address();
        let supervisor = pages.metrics.supervisor.clone();
        let limits = Limits { body_bytes: BODY_BYTES, ..Limits::of_connections(2 * CONNECTIONS) };
        let answer = move |request: Request| std::future::ready(pages.answer(&request));
        let front =
            Front::builder(answer).http(listener).limits(limits).supervisor(supervisor).task("probes");
        Ok(Self { address, _front: front.start().map_err(io::Error::other)? })
    }
}

impl Pages {
    fn answer(&self, request: &Request) -> Response {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        }
        self.page(request.uri().path(), request.uri().query().unwrap_or_default())
    }

    fn page(&self, path: &str, query: &str) -> Response {
        let verbose = query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="));
        let (checks, rest) = match path.split('/').nth(1).unwrap_or_default() {
            "metrics" => return metrics(self.metrics.text()),
            "healthz" => (&self.live, path.strip_prefix("/healthz")),
            "livez" => (&self.live, path.strip_prefix("/livez")),
            "readyz" => (&self.ready, path.strip_prefix("/readyz")),
            _ => return text(StatusCode::NOT_FOUND, "/metrics, /healthz or /readyz\n".to_owned()),
        };
        let name = rest.unwrap_or_default().trim_matches('/');
        let finding = if name.is_empty() { Some(checks.all(verbose)) } else { checks.one(&decoded(name)) };
        match finding {
            Some(Finding { healthy: true, text: found }) => text(StatusCode::OK, found),
            Some(Finding { healthy: false, text: found }) => text(StatusCode::SERVICE_UNAVAILABLE, found),
            None => text(StatusCode::NOT_FOUND, "no such check\n".to_owned()),
        }
    }
}

/// Names of checks have spaces in them.
fn decoded(name: &str) -> String {
    name.replace("%20", " ").replace('+', " ")
}

fn text(status: StatusCode, text: String) -> Response {
    page(status, "text/plain; charset=utf-8", text)
}

fn metrics(text: String) -> Response {
    page(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text)
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
    response
}
