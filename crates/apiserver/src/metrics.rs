//! What the server counts.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use watchkeeper_storage::{ClusterStats, Stats};
use watchkeeper_supervision::Supervisor;

use crate::front::AccessMetrics;
use crate::in_flight::{Class, Rejected};

/// The upper bounds of the buckets for durations, in seconds.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// The metrics that a server has, those of its front included, for whoever makes alerts of them: names as queries have them, types, and what
/// they tell. A registry tells only of those that have been used.
#[rustfmt::skip]
pub const METRICS: &[(&str, &str, &str)] = &[
    ("apiserver_request_total", "counter", "Requests answered, by verb and code"),
    ("apiserver_request_duration_seconds", "histogram", "How long it took to answer; of watches, to begin"),
    ("apiserver_longrunning_requests", "gauge", "Watches that are open"),
    ("watchkeeper_rejected_requests_total", "counter", "Requests refused because too many ran, of their user or in all"),
    ("watchkeeper_storage_revision", "gauge", "The newest revision"),
    ("watchkeeper_storage_objects", "gauge", "Objects stored"),
    ("watchkeeper_storage_events", "gauge", "Changes kept for watches that begin in the past"),
    ("watchkeeper_storage_commits", "gauge", "Commits since the start"),
    ("watchkeeper_storage_syncs", "gauge", "Times the log was synced to the disk; commits share them"),
    ("watchkeeper_storage_log_bytes", "gauge", "Bytes of the log that no checkpoint covers"),
    ("watchkeeper_storage_checkpoint_failures", "gauge", "Checkpoints that failed since the start; the log grows until one succeeds"),
    ("watchkeeper_etcd_following", "gauge", "1 while the changes of etcd arrive; only with --storage etcd"),
    ("watchkeeper_etcd_leading", "gauge", "1 on the server that collects garbage and does what else only one should do; only with --storage etcd"),
    ("watchkeeper_etcd_lag_revisions", "gauge", "Revisions that etcd has and this server does not know yet; only with --storage etcd"),
    ("watchkeeper_etcd_full", "gauge", "1 while etcd has the alarm NOSPACE and takes nothing more; only with --storage etcd"),
    ("watchkeeper_etcd_database_bytes", "gauge", "Size of the database of a member of etcd; only with --storage etcd"),
    ("watchkeeper_connections", "gauge", "Connections that are open"),
    ("watchkeeper_connections_dropped_total", "counter", "Connections that the server refused or closed, by reason"),
    ("watchkeeper_requests_total", "counter", "Requests that were answered, by code"),
    ("watchkeeper_tls_handshake_failures_total", "counter", "TLS handshakes that failed"),
    ("watchkeeper_task_panics_total", "counter", "Panics of background tasks that were caught"),
];

/// What is counted about requests, named as kube-apiserver names it.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Request, Counter>,
    durations: Family<Verb, Histogram, fn() -> Histogram>,
    watches: Gauge,
    rejected: Family<Refusal, Counter>,
    webhooks: WebhookMetrics,
    storage: Storage,
}

/// What is counted about webhooks, named as kube-apiserver names it.
#[derive(Clone, Default)]
pub(crate) struct WebhookMetrics {
    rejections: Family<Rejection, Gauge>,
    failed_open: Family<FailedOpen, Gauge>,
    conversions: Family<ConversionOutcome, Counter>,
}

/// Which writes are counted together that did not come about because of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Rejection {
    pub(crate) name: String,
    /// `admit` or `validating`.
    pub(crate) r#type: &'static str,
    pub(crate) operation: &'static str,
    /// `no_error` if the webhook refused, `calling_webhook_error` if it could not be asked.
    pub(crate) error_type: &'static str,
    pub(crate) rejection_code: u16,
}

/// Which failures of webhooks are counted together that are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailedOpen {
    name: String,
    r#type: &'static str,
}

/// Which calls of conversion webhooks are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConversionOutcome {
    result: &'static str,
    failure_type: &'static str,
}

impl WebhookMetrics {
    fn register(&self, registry: &mut Registry) {
        let help = "Writes that did not come about because of an admission webhook";
        registry.register("apiserver_admission_webhook_rejection_count", help, self.rejections.clone());
        let help = "Failures of admission webhooks that were ignored";
        registry.register("apiserver_admission_webhook_fail_open_count", help, self.failed_open.clone());
        let help = "Calls of conversion webhooks";
        registry.register("apiserver_conversion_webhook_request", help, self.conversions.clone());
    }

    /// Counts a write that did not come about.
    pub(crate) fn rejected(&self, rejection: &Rejection) {
        self.rejections.get_or_create(rejection).inc();
    }

    /// Counts a failure that is ignored.
    pub(crate) fn failed_open(&self, name: &str, r#type: &'static str) {
        self.failed_open.get_or_create(&FailedOpen { name: name.to_owned(), r#type }).inc();
    }

    /// Counts a call of a conversion webhook, and in which way it failed if it did.
    pub(crate) fn converted(&self, failure: Option<&'static str>) {
        let result = if failure.is_none() { "success" } else { "failure" };
        let failure_type = failure.unwrap_or_default();
        self.conversions.get_or_create(&ConversionOutcome { result, failure_type }).inc();
    }
}

/// Which requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: &'static str,
    code: u16,
}

/// Which requests are counted together that were refused because too many ran.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refusal {
    request_kind: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    verb: Name,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(&'static str);

impl EncodeLabelValue for Name {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

/// What the storage says about itself, as of the last time it was asked.
#[derive(Default)]
struct Storage {
    revision: Gauge,
    objects: Gauge,
    events: Gauge,
    commits: Gauge,
    syncs: Gauge,
    log_bytes: Gauge,
    checkpoint_failures: Gauge,
    cluster: OnceLock<Cluster>,
}

/// What a storage that several servers share says about its cluster.
#[derive(Default)]
struct Cluster {
    following: Gauge,
    leading: Gauge,
    lag: Gauge,
    full: Gauge,
    database_bytes: Gauge,
}

impl Cluster {
    /// Gauges that are shown.
    fn register(registry: &mut Registry) -> Self {
        let cluster = Self::default();
        for (name, gauge) in [
            ("watchkeeper_etcd_following", &cluster.following),
            ("watchkeeper_etcd_leading", &cluster.leading),
            ("watchkeeper_etcd_lag_revisions", &cluster.lag),
            ("watchkeeper_etcd_full", &cluster.full),
            ("watchkeeper_etcd_database_bytes", &cluster.database_bytes),
        ] {
            let help = METRICS.iter().find(|(known, ..)| *known == name).map_or("", |(.., help)| help);
            registry.register(name, help, gauge.clone());
        }
        cluster
    }

    fn set(&self, stats: &ClusterStats, is_followed: bool) {
        self.following.set(is_followed.into());
        self.leading.set(stats.leading.into());
        self.lag.set(whole(stats.lag));
        self.full.set(stats.full.is_some().into());
        self.database_bytes.set(whole(stats.database_bytes));
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let metrics = Self {
            registry: Mutex::new(Registry::default()),
            requests: Family::default(),
            durations: Family::new_with_constructor(histogram),
            watches: Gauge::default(),
            rejected: Family::default(),
            webhooks: WebhookMetrics::default(),
            storage: Storage::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&self) {
        let mut registry = self.registry.lock();
        registry.register("apiserver_request", "Requests answered, by verb and code", self.requests.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "How long it took to answer; of watches, to begin",
            self.durations.clone(),
        );
        registry.register("apiserver_longrunning_requests", "Watches that are open", self.watches.clone());
        let help = "Requests refused because too many ran, of their user or in all";
        registry.register("watchkeeper_rejected_requests", help, self.rejected.clone());
        self.webhooks.register(&mut registry);
        for (name, help, gauge) in [
            ("watchkeeper_storage_revision", "The newest revision", &self.storage.revision),
            ("watchkeeper_storage_objects", "Objects stored", &self.storage.objects),
            (
                "watchkeeper_storage_events",
                "Changes kept for watches that begin in the past",
                &self.storage.events,
            ),
            ("watchkeeper_storage_commits", "Commits since the start", &self.storage.commits),
            (
                "watchkeeper_storage_syncs",
                "Times the log was synced to the disk; commits share them",
                &self.storage.syncs,
            ),
            (
                "watchkeeper_storage_log_bytes",
                "Bytes of the log that no checkpoint covers",
                &self.storage.log_bytes,
            ),
            (
                "watchkeeper_storage_checkpoint_failures",
                "Checkpoints that failed since the start; the log grows until one succeeds",
                &self.storage.checkpoint_failures,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }

    /// What is counted about webhooks.
    pub(crate) fn webhooks(&self) -> WebhookMetrics {
        self.webhooks.clone()
    }

    /// Shows the counts of a supervisor, too.
    pub(crate) fn show_supervisor(&self, supervisor: &Supervisor) {
        supervisor.show(&mut self.registry.lock());
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, verb: &'static str, code: u16, took: Duration) {
        self.requests.get_or_create(&Request { verb, code }).inc();
        self.durations.get_or_create(&Verb { verb: Name(verb) }).observe(took.as_secs_f64());
    }

    /// Counts a request that was refused because too many ran.
    pub(crate) fn rejected(&self, class: Class, reason: Rejected) {
        let refusal = Refusal { request_kind: class.name(), reason: reason.name() };
        self.rejected.get_or_create(&refusal).inc();
    }

    /// Shows these counts, too.
    pub(crate) fn show_access(&self, metrics: &AccessMetrics) {
        metrics.register(self.registry.lock().sub_registry_with_prefix("watchkeeper"));
    }

    /// Counts a watch for as long as this lives.
    pub(crate) fn watch(&self) -> Open {
        self.watches.inc();
        Open(self.watches.clone())
    }

    /// Everything, as OpenMetrics text.
    pub(crate) fn text(&self, stats: &Stats) -> String {
        self.storage.revision.set(whole(stats.revision));
        self.storage.objects.set(whole(stats.entries as u64));
        self.storage.events.set(whole(stats.events as u64));
        self.storage.commits.set(whole(stats.commits));
        self.storage.syncs.set(whole(stats.syncs));
        self.storage.log_bytes.set(whole(stats.log_bytes));
        self.storage.checkpoint_failures.set(whole(stats.checkpoint_failures));
        if let Some(known) = &stats.cluster {
            // Only where there is a cluster: the others have nothing to say about it.
            let cluster = self.storage.cluster.get_or_init(|| Cluster::register(&mut self.registry.lock()));
            cluster.set(known, stats.halted.is_none());
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry.lock());
        text
    }
}

/// An open watch.
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
