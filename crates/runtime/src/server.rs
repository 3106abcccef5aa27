//! The server of probes and metrics.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};
use tokio_util::task::AbortOnDropHandle;

use crate::health::{Checks, Finding};
use crate::metrics::Metrics;

/// More connections than this at a time wait: a few probes and a few scrapers need no more.
const CONNECTIONS: usize = 64;

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
    _task: AbortOnDropHandle<()>,
}

impl Server {
    pub(crate) async fn start(address: SocketAddr, pages: Pages) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            let supervisor = pages.metrics.supervisor.clone();
            supervisor.run("probes", || accept(&listener, pages.clone())).await;
        });
        Ok(Self { address, _task: AbortOnDropHandle::new(task) })
    }
}

async fn accept(listener: &TcpListener, pages: Pages) {
    let supervisor = pages.metrics.supervisor.clone();
    let report = |ended: Result<(), JoinError>| {
        if ended.is_err_and(|error| error.is_panic()) {
            supervisor.panicked("probe", None);
        }
    };
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS {
            if let Some(ended) = connections.join_next().await {
                report(ended);
            }
        }
        while let Some(ended) = connections.try_join_next() {
            report(ended);
        }
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: others have to end first.
                tracing::warn!(%error, "cannot accept a connection for probes and metrics");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let pages = pages.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let answer = pages.answer(&request);
                async move { Ok::<_, Infallible>(answer) }
            });
            // A client that goes away in the middle is its own affair.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

impl Pages {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        }
        self.page(request.uri().path(), request.uri().query().unwrap_or_default())
    }

    fn page(&self, path: &str, query: &str) -> Response<Full<Bytes>> {
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

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    page(status, "text/plain; charset=utf-8", text)
}

fn metrics(text: String) -> Response<Full<Bytes>> {
    page(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text)
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
    response
}
