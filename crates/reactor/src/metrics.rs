//! Metrics of a reactor, and the page that serves them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use watchkeeper_front::{Front, Limits, Listener, Request, Response};
use watchkeeper_informer::InformerMetrics;
use watchkeeper_queue::QueueMetrics;
use watchkeeper_supervision::Supervisor;

/// The metrics of a reactor:
///
/// | name | what it tells |
/// |---|---|
/// | `watchkeeper_run_reactions_total{reaction,outcome}` | changes by how they ended: `done`, `filtered`, `failed` (for each try), `given_up` |
/// | `watchkeeper_run_reaction_duration_seconds{reaction}` | how long commands, requests and applies took |
/// | `watchkeeper_run_rejected_total{source}` | objects that could not be understood |
///
/// besides those of informers and queues.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    ended: Family<Ended, Counter>,
    seconds: Family<Of, Histogram, fn() -> Histogram>,
    rejected: Family<From, Counter>,
    pub(crate) informers: InformerMetrics,
    pub(crate) queues: QueueMetrics,
    pub(crate) supervisor: Supervisor,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Done,
    Filtered,
    Failed,
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    reaction: Arc<str>,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    reaction: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct From {
    source: Arc<str>,
}

/// From a request on this machine to a job of minutes.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let queues = QueueMetrics::register(&mut registry);
        let supervisor = Supervisor::register(&mut registry);
        let informers = InformerMetrics::register(&mut registry).supervised_by(&supervisor);
        let ended = Family::default();
        let seconds: Family<Of, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        let rejected = Family::default();
        let named = registry.sub_registry_with_prefix("watchkeeper_run");
        named.register("reactions", "Changes by how they ended", ended.clone());
        named.register("reaction_duration_seconds", "How long reactions took", seconds.clone());
        named.register("rejected", "Objects that could not be understood", rejected.clone());
        Self { registry: Arc::new(registry), ended, seconds, rejected, informers, queues, supervisor }
    }

    pub(crate) fn ended(&self, reaction: &Arc<str>, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Done => "done",
            Outcome::Filtered => "filtered",
            Outcome::Failed => "failed",
            Outcome::GivenUp => "given_up",
        };
        self.ended.get_or_create(&Ended { reaction: Arc::clone(reaction), outcome }).inc();
    }

    pub(crate) fn took(&self, reaction: &Arc<str>, time: Duration) {
        self.seconds.get_or_create(&Of { reaction: Arc::clone(reaction) }).observe(time.as_secs_f64());
    }

    pub(crate) fn rejected(&self, source: &Arc<str>) {
        self.rejected.get_or_create(&From { source: Arc::clone(source) }).inc();
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Connections at a time: a few scrapers need no more.
const CONNECTIONS: usize = 16;

/// Serves `/metrics` and `/healthz` until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    _front: Front,
}

impl MetricsServer {
    /// Listens on an address.
    pub(crate) fn start(address: SocketAddr, metrics: Metrics) -> io::Result<Self> {
        let listener = Listener::from_std(TcpListener::bind(address)?)?;
        let address = listener.address();
        let limits = Limits { body_bytes: 0, ..Limits::of_connections(2 * CONNECTIONS) };
        let supervisor = metrics.supervisor.clone();
        let answer = move |request: Request| std::future::ready(answer(&request, &metrics));
        let front =
            Front::builder(answer).http(listener).limits(limits).supervisor(supervisor).task("metrics");
        Ok(Self { address, _front: front.start().map_err(io::Error::other)? })
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(request: &Request, metrics: &Metrics) -> Response {
    const TEXT: &str = "text/plain; charset=utf-8";
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            (StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics.text())
        }
        (&Method::GET | &Method::HEAD, "/healthz") => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, TEXT, "/metrics or /healthz\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned()),
    };
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
