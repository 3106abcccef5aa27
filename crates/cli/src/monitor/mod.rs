//! Probes and metrics on a port of their own, in plain HTTP.

mod merge;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use watchkeeper_apiserver::front::{Front, Limits, Listener, Request, Response};

use crate::failure::Failure;

/// Connections at a time: a few probes and a few scrapers need no more.
const CONNECTIONS: usize = 128;

/// A program, or a part of one, that can be looked at.
pub(crate) struct Part {
    /// The name of its metrics: `/metrics/NAME`.
    pub(crate) name: String,
    /// Its metrics, as OpenMetrics text.
    pub(crate) metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// Whether it is ready, or why not.
    pub(crate) ready: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// A listener that serves what there is to see of some parts.
///
/// | path | |
/// |---|---|
/// | `/metrics` | of all parts; if there are several, each sample has the label `program` |
/// | `/metrics/NAME` | of one |
/// | `/readyz` | whether all are ready |
/// | `/livez`, `/healthz` | always `ok` |
pub(crate) struct Monitor {
    parts: Parts,
    front: Front,
    address: SocketAddr,
}

type Parts = Arc<RwLock<Vec<Part>>>;

impl Monitor {
    /// Listens. Parts are added later.
    pub(crate) fn start(listener: Listener) -> Result<Self, Failure> {
        Self::with(listener, Vec::new())
    }

    fn with(listener: Listener, parts: Vec<Part>) -> Result<Self, Failure> {
        let address = listener.address();
        let parts = Arc::new(RwLock::new(parts));
        let served = Arc::clone(&parts);
        let answer = move |request: Request| std::future::ready(answer(&served, &request));
        let limits = Limits { body_bytes: 0, ..Limits::of_connections(CONNECTIONS) };
        let front = Front::builder(answer).task("monitor").http(listener).limits(limits);
        Ok(Self { parts, front: front.start().map_err(Failure::running)?, address })
    }

    /// The same on an address, with one part, which is there for the first who asks: without it, everything would be ready.
    pub(crate) fn of(address: SocketAddr, part: Part) -> Result<Self, Failure> {
        let fails = |error| Failure::running(format!("--metrics-addr {address}: {error}"));
        let monitor = Self::with(Listener::bind(address).map_err(fails)?, vec![part])?;
        tracing::info!("metrics and probes on http://{}/", monitor.address);
        Ok(monitor)
    }

    pub(crate) fn add(&self, part: Part) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).push(part);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn stop(self) {
        self.front.shutdown(Duration::from_secs(1)).await;
    }
}

fn answer(parts: &Parts, request: &Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
    }
    let parts = parts.read().unwrap_or_else(PoisonError::into_inner);
    match request.uri().path() {
        "/livez" | "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => readyz(&parts),
        "/metrics" => metrics(match parts.as_slice() {
            [part] => (part.metrics)(),
            parts => merge::merged(parts.iter().map(|part| (part.name.as_str(), (part.metrics)()))),
        }),
        path => {
            let name = path.strip_prefix("/metrics/").unwrap_or_default();
            match parts.iter().find(|part| part.name == name) {
                Some(part) => metrics((part.metrics)()),
                None => {
                    let names = parts.iter().map(|part| format!("/metrics/{}\n", part.name));
                    let pages = names.collect::<String>();
                    text(StatusCode::NOT_FOUND, format!("/metrics\n{pages}/readyz\n/livez\n"))
                }
            }
        }
    }
}

fn readyz(parts: &[Part]) -> Response {
    let missing: Vec<String> = parts
        .iter()
        .filter_map(|part| (part.ready)().err().map(|why| format!("{}: {why}\n", part.name)))
        .collect();
    match missing.is_empty() {
        true => text(StatusCode::OK, "ok\n".to_owned()),
        false => text(StatusCode::SERVICE_UNAVAILABLE, missing.concat()),
    }
}

fn metrics(page: String) -> Response {
    typed(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", page)
}

fn text(code: StatusCode, page: String) -> Response {
    typed(code, "text/plain; charset=utf-8", page)
}

fn typed(code: StatusCode, kind: &'static str, page: String) -> Response {
    let mut response = Response::new(page.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
