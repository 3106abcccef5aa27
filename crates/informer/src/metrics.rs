use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use watchkeeper_core::Source;
use watchkeeper_supervision::Supervisor;

use crate::gauges::SourceGauges;

/// The metrics of informers. One value serves many informers; it is registered once, in a registry of the program.
///
/// | name | what it tells |
/// |---|---|
/// | `watchkeeper_informer_objects`, `_bytes` | what the store holds |
/// | `watchkeeper_informer_synced` | 1 when every source has delivered its first snapshot |
/// | `watchkeeper_informer_snapshots_total`, `_resumes_total` | lists and watches that were opened |
/// | `watchkeeper_informer_resnapshots_total{reason}` | snapshots after the first, and why |
/// | `watchkeeper_informer_changes_total{kind}` | changes applied: `ADDED`, `MODIFIED`, `DELETED` |
/// | `watchkeeper_informer_unchanged_total` | objects of a new snapshot that were already known, and replayed entries |
/// | `watchkeeper_informer_rejected_total{reason}` | objects that could not be understood |
/// | `watchkeeper_informer_errors_total{class}` | feeds that failed |
/// | `watchkeeper_informer_source_drift_total` | differences that a source found by looking at everything and that no change had told of; should stay 0 |
/// | `watchkeeper_informer_source_...` | gauges of sources, such as `_replication_lag_bytes` and `_slot_retained_bytes` of PostgreSQL |
/// | `watchkeeper_informer_last_event_timestamp_seconds` | when the source said something last |
/// | `watchkeeper_informer_decodes_total`, `_decode_failures_total` | bodies decoded |
/// | `watchkeeper_informer_index_failures_total` | index functions that failed |
/// | `watchkeeper_subscriber_pending` | keys with a change the subscriber has not taken yet |
/// | `watchkeeper_subscriber_delivered_total`, `_coalesced_total` | changes taken, and changes that joined one that waited |
/// | `watchkeeper_subscriber_delay_seconds` | from a change in the store to its delivery |
/// | `watchkeeper_subscriber_panics_total` | handlers that panicked |
#[derive(Clone, Debug)]
pub struct InformerMetrics {
    objects: Family<InformerLabel, Gauge>,
    bytes: Family<InformerLabel, Gauge>,
    synced: Family<InformerLabel, Gauge>,
    snapshots: Family<InformerLabel, Counter>,
    resumes: Family<InformerLabel, Counter>,
    resnapshots: Family<ReasonLabel, Counter>,
    changes: Family<KindLabel, Counter>,
    unchanged: Family<InformerLabel, Counter>,
    rejected: Family<ReasonLabel, Counter>,
    errors: Family<ClassLabel, Counter>,
    drift: Family<InformerLabel, Counter>,
    last_event: Family<InformerLabel, Gauge<f64, AtomicU64>>,
    decodes: Family<InformerLabel, Counter>,
    decode_failures: Family<InformerLabel, Counter>,
    index_failures: Family<InformerLabel, Counter>,
    pending: Family<SubscriberLabel, Gauge>,
    delivered: Family<SubscriberLabel, Counter>,
    coalesced: Family<SubscriberLabel, Counter>,
    delay: Family<SubscriberLabel, Delay, fn() -> Delay>,
    panics: Family<SubscriberLabel, Counter>,
    sources: SourceGauges,
    /// Counts what the others do not: tasks that panic.
    supervisor: Supervisor,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InformerLabel {
    informer: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    informer: Arc<str>,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    informer: Arc<str>,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    informer: Arc<str>,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SubscriberLabel {
    informer: Arc<str>,
    subscriber: Arc<str>,
}

type Delay = Histogram;

/// From a tenth of a millisecond, which a healthy subscriber stays below, to a minute.
fn delay_histogram() -> Delay {
    Histogram::new([0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0])
}

/// Metrics that are counted and shown to nobody.
impl Default for InformerMetrics {
    fn default() -> Self {
        Self {
            objects: Family::default(),
            bytes: Family::default(),
            synced: Family::default(),
            snapshots: Family::default(),
            resumes: Family::default(),
            resnapshots: Family::default(),
            changes: Family::default(),
            unchanged: Family::default(),
            rejected: Family::default(),
            errors: Family::default(),
            drift: Family::default(),
            last_event: Family::default(),
            decodes: Family::default(),
            decode_failures: Family::default(),
            index_failures: Family::default(),
            pending: Family::default(),
            delivered: Family::default(),
            coalesced: Family::default(),
            delay: Family::new_with_constructor(delay_histogram),
            panics: Family::default(),
            sources: SourceGauges::default(),
            supervisor: Supervisor::default(),
        }
    }
}

impl InformerMetrics {
    /// Sets the supervisor of the tasks of the informers. Default: a supervisor of their own.
    #[must_use]
    pub fn supervised_by(mut self, supervisor: &Supervisor) -> Self {
        self.supervisor = supervisor.clone();
        self
    }

    /// Registers all metrics. The result is cheap to clone and is handed to every informer.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let informer = registry.sub_registry_with_prefix("watchkeeper_informer");
        informer.register("objects", "Objects in the store", metrics.objects.clone());
        informer.register("bytes", "Bytes of object bodies in the store", metrics.bytes.clone());
        informer.register("synced", "1 once every source has delivered a snapshot", metrics.synced.clone());
        informer.register("snapshots", "Snapshots asked for", metrics.snapshots.clone());
        informer.register("resumes", "Logs resumed", metrics.resumes.clone());
        informer.register("resnapshots", "Snapshots after the first, by reason", metrics.resnapshots.clone());
        informer.register("changes", "Changes applied to the store", metrics.changes.clone());
        informer.register("unchanged", "Objects received that were known already", metrics.unchanged.clone());
        informer.register("rejected", "Objects that could not be understood", metrics.rejected.clone());
        informer.register("errors", "Feeds that failed, by class", metrics.errors.clone());
        informer.register("source_drift", "Differences that no change had told of", metrics.drift.clone());
        informer.register_with_unit(
            "last_event_timestamp",
            "When the source said something last",
            Unit::Seconds,
            metrics.last_event.clone(),
        );
        informer.register("decodes", "Object bodies decoded", metrics.decodes.clone());
        informer.register(
            "decode_failures",
            "Object bodies that could not be decoded",
            metrics.decode_failures.clone(),
        );
        informer.sub_registry_with_prefix("source").register_collector(Box::new(metrics.sources.clone()));
        informer.register("index_failures", "Index functions that failed", metrics.index_failures.clone());
        let subscriber = registry.sub_registry_with_prefix("watchkeeper_subscriber");
        subscriber.register("pending", "Keys with a change not yet taken", metrics.pending.clone());
        subscriber.register("delivered", "Changes taken", metrics.delivered.clone());
        subscriber.register("coalesced", "Changes that joined a waiting one", metrics.coalesced.clone());
        subscriber.register_with_unit(
            "delay",
            "From a change in the store to its delivery",
            Unit::Seconds,
            metrics.delay.clone(),
        );
        subscriber.register("panics", "Handlers that panicked", metrics.panics.clone());
        metrics
    }

    pub(crate) fn informer(&self, name: &str) -> StoreMetrics {
        let informer: Arc<str> = name.into();
        let label = InformerLabel { informer: Arc::clone(&informer) };
        let changes =
            |kind| self.changes.get_or_create_owned(&KindLabel { informer: Arc::clone(&informer), kind });
        StoreMetrics {
            objects: self.objects.get_or_create_owned(&label),
            bytes: self.bytes.get_or_create_owned(&label),
            synced: self.synced.get_or_create_owned(&label),
            snapshots: self.snapshots.get_or_create_owned(&label),
            resumes: self.resumes.get_or_create_owned(&label),
            added: changes("ADDED"),
            modified: changes("MODIFIED"),
            deleted: changes("DELETED"),
            unchanged: self.unchanged.get_or_create_owned(&label),
            drift: self.drift.get_or_create_owned(&label),
            last_event: self.last_event.get_or_create_owned(&label),
            decodes: self.decodes.get_or_create_owned(&label),
            decode_failures: self.decode_failures.get_or_create_owned(&label),
            index_failures: self.index_failures.get_or_create_owned(&label),
            all: self.clone(),
            label,
        }
    }
}

/// The metrics of one informer.
#[derive(Debug)]
pub(crate) struct StoreMetrics {
    pub(crate) objects: Gauge,
    pub(crate) bytes: Gauge,
    pub(crate) synced: Gauge,
    pub(crate) snapshots: Counter,
    pub(crate) resumes: Counter,
    pub(crate) added: Counter,
    pub(crate) modified: Counter,
    pub(crate) deleted: Counter,
    pub(crate) unchanged: Counter,
    pub(crate) drift: Counter,
    pub(crate) last_event: Gauge<f64, AtomicU64>,
    pub(crate) decodes: Counter,
    pub(crate) decode_failures: Counter,
    pub(crate) index_failures: Counter,
    all: InformerMetrics,
    label: InformerLabel,
}

impl StoreMetrics {
    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.all.supervisor
    }

    /// Shows the gauges of a source as long as it is held.
    pub(crate) fn add_source(&self, source: &Arc<dyn Source>) {
        self.all.sources.add(&self.label.informer, source);
    }

    /// What is no longer held is no longer shown. The series stay, so that a successor of the same name can go on.
    pub(crate) fn clear(&self) {
        self.objects.set(0);
        self.bytes.set(0);
        self.synced.set(0);
    }

    pub(crate) fn resnapshot(&self, reason: &'static str) {
        let informer = Arc::clone(&self.label.informer);
        self.all.resnapshots.get_or_create(&ReasonLabel { informer, reason }).inc();
    }

    pub(crate) fn rejected(&self, reason: &'static str) {
        let informer = Arc::clone(&self.label.informer);
        self.all.rejected.get_or_create(&ReasonLabel { informer, reason }).inc();
    }

    pub(crate) fn error(&self, class: &'static str) {
        let informer = Arc::clone(&self.label.informer);
        self.all.errors.get_or_create(&ClassLabel { informer, class }).inc();
    }

    pub(crate) fn subscriber(&self, name: &str) -> SubscriberMetrics {
        let label = SubscriberLabel { informer: Arc::clone(&self.label.informer), subscriber: name.into() };
        SubscriberMetrics {
            pending: self.all.pending.get_or_create_owned(&label),
            delivered: self.all.delivered.get_or_create_owned(&label),
            coalesced: self.all.coalesced.get_or_create_owned(&label),
            delay: self.all.delay.get_or_create_owned(&label),
            panics: self.all.panics.get_or_create_owned(&label),
        }
    }
}

/// The metrics of one subscriber.
#[derive(Clone, Debug)]
pub(crate) struct SubscriberMetrics {
    pub(crate) pending: Gauge,
    pub(crate) delivered: Counter,
    pub(crate) coalesced: Counter,
    pub(crate) delay: Delay,
    pub(crate) panics: Counter,
}
