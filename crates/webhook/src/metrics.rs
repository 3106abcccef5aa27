//! What is counted, under the names that controller-runtime uses where it counts the same.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use watchkeeper_front::AccessMetrics;

/// The metrics of a webhook server. Clones share their counts.
///
/// | metric | labels | |
/// |---|---|---|
/// | `controller_runtime_webhook_requests_total` | `webhook`, `code` | Reviews by the code of their HTTP answer. |
/// | `controller_runtime_webhook_requests_in_flight` | `webhook` | Reviews that are being answered. |
/// | `controller_runtime_webhook_latency_seconds` | `webhook` | How long answers took. |
/// | `controller_runtime_webhook_panics_total` | | Functions that panicked; each is answered. |
/// | `watchkeeper_webhook_verdicts_total` | `webhook`, `code` | Verdicts by their code: 200, 403, 422, 500, 504. |
/// | `watchkeeper_webhook_refused_total` | `reason` | Requests that are no reviews: `method`, `path`, `type`, `size`, `malformed`, `body`, `busy`. |
/// | `watchkeeper_webhook_certificate_end_timestamp_seconds` | | When the certificate that is shown ends. |
/// | `watchkeeper_webhook_certificate_steps_total` | `step` | Steps of the rotation of certificates that this process made. |
/// | `watchkeeper_webhook_connections` and others | | What [`AccessMetrics`] has. |
#[derive(Clone)]
pub struct WebhookMetrics {
    requests: Family<Answered, Counter>,
    in_flight: Family<Of, Gauge>,
    latency: Family<Of, Histogram, fn() -> Histogram>,
    pub(crate) panics: Counter,
    verdicts: Family<Answered, Counter>,
    refused: Family<Why, Counter>,
    pub(crate) certificate_end: Gauge,
    steps: Family<Step, Counter>,
    pub(crate) access: AccessMetrics,
}

/// As controller-runtime has them.
const SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The names, types and help texts of the metrics, for the description of a program.
#[rustfmt::skip]
pub const METRICS: &[(&str, &str, &str)] = &[
    ("controller_runtime_webhook_requests_total", "counter", "Reviews by the code of their HTTP answer"),
    ("controller_runtime_webhook_requests_in_flight", "gauge", "Reviews that are being answered"),
    ("controller_runtime_webhook_latency_seconds", "histogram", "How long answers to reviews took"),
    ("controller_runtime_webhook_panics_total", "counter", "Webhooks that panicked"),
    ("watchkeeper_webhook_verdicts_total", "counter", "Verdicts by their code"),
    ("watchkeeper_webhook_refused_total", "counter", "Requests that are no reviews, by reason"),
    ("watchkeeper_webhook_certificate_end_timestamp_seconds", "gauge", "When the certificate that is shown ends"),
    ("watchkeeper_webhook_certificate_steps_total", "counter", "Steps of the rotation of certificates made here"),
    ("watchkeeper_webhook_connections", "gauge", "Connections that are open"),
    ("watchkeeper_webhook_connections_dropped_total", "counter", "Connections that were refused or closed, by reason"),
    ("watchkeeper_webhook_requests_total", "counter", "Requests that were answered, by code"),
    ("watchkeeper_webhook_tls_handshake_failures_total", "counter", "TLS handshakes that failed"),
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    webhook: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    webhook: Arc<str>,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Step {
    step: &'static str,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            in_flight: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            panics: Counter::default(),
            verdicts: Family::default(),
            refused: Family::default(),
            certificate_end: Gauge::default(),
            steps: Family::default(),
            access: AccessMetrics::default(),
        }
    }
}

impl WebhookMetrics {
    /// Adds these metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let named = registry.sub_registry_with_prefix("controller_runtime_webhook");
        named.register("requests", "Reviews by the code of their HTTP answer", self.requests.clone());
        named.register("requests_in_flight", "Reviews that are being answered", self.in_flight.clone());
        named.register("latency_seconds", "How long answers to reviews took", self.latency.clone());
        named.register("panics", "Webhooks that panicked", self.panics.clone());
        let ours = registry.sub_registry_with_prefix("watchkeeper_webhook");
        ours.register("verdicts", "Verdicts by their code", self.verdicts.clone());
        ours.register("refused", "Requests that are no reviews, by reason", self.refused.clone());
        ours.register(
            "certificate_end_timestamp_seconds",
            "When the certificate that is shown ends",
            self.certificate_end.clone(),
        );
        ours.register(
            "certificate_steps",
            "Steps of the rotation of certificates made here",
            self.steps.clone(),
        );
        self.access.register(ours);
    }

    /// A review begins: it is in flight until what is returned is dropped.
    pub(crate) fn begin(&self, webhook: &Arc<str>) -> Underway {
        let gauge = self.in_flight.get_or_create(&Of { webhook: Arc::clone(webhook) }).clone();
        gauge.inc();
        Underway(gauge)
    }

    pub(crate) fn answered(&self, webhook: &Arc<str>, code: u16, seconds: f64) {
        let webhook = Arc::clone(webhook);
        self.latency.get_or_create(&Of { webhook: Arc::clone(&webhook) }).observe(seconds);
        self.requests.get_or_create(&Answered { webhook, code }).inc();
    }

    pub(crate) fn verdict(&self, webhook: &Arc<str>, code: u16) {
        self.verdicts.get_or_create(&Answered { webhook: Arc::clone(webhook), code }).inc();
    }

    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Why { reason }).inc();
    }

    pub(crate) fn step(&self, step: &'static str) {
        self.steps.get_or_create(&Step { step }).inc();
    }
}

/// A review that is being answered.
pub(crate) struct Underway(Gauge);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.dec();
    }
}
