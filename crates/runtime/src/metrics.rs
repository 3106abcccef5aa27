//! What the runtime counts, under the names that controller-runtime uses, so that dashboards made for it work.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use watchkeeper_supervision::Supervisor;

use crate::hot_loop::Loop;
use crate::rest::Requests;

/// As controller-runtime has them.
const SECONDS: [f64; 27] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 10.0, 60.0,
];

/// The metrics of a manager.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) registry: Arc<Mutex<Registry>>,
    /// Watches over the tasks of the manager.
    pub(crate) supervisor: Supervisor,
    pub(crate) queues: watchkeeper_queue::QueueMetrics,
    pub(crate) informers: watchkeeper_informer::InformerMetrics,
    families: Families,
    #[cfg(feature = "election")]
    pub(crate) election: ElectionMetrics,
    pub(crate) requests: Requests,
    hot_loops: Family<HotLoop, Counter>,
    degraded: Family<Degraded, Gauge>,
}

#[derive(Clone)]
struct Families {
    total: Family<Ended, Counter>,
    errors: Family<Of, Counter>,
    terminal: Family<Of, Counter>,
    panics: Family<Of, Counter>,
    timeouts: Family<Of, Counter>,
    seconds: Family<Of, Histogram, fn() -> Histogram>,
    workers: Family<Of, Gauge>,
    active: Family<Of, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    controller: Arc<str>,
    result: &'static str,
}

/// What is counted of the election.
#[cfg(feature = "election")]
#[derive(Clone, Default)]
pub(crate) struct ElectionMetrics {
    pub(crate) leading: Family<Lease, Gauge>,
    pub(crate) slow_renewals: Family<Lease, Counter>,
}

#[cfg(feature = "election")]
impl ElectionMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let (leading, slow_renewals) = (metrics.leading.clone(), metrics.slow_renewals.clone());
        registry.register("leader_election_master_status", "1 while this process leads", leading);
        registry.register(
            "leader_election_slowpath",
            "Renewals of a lease that had to read it first",
            slow_renewals,
        );
        metrics
    }
}

/// Which lease.
#[cfg(feature = "election")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Lease {
    pub(crate) name: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HotLoop {
    controller: Arc<str>,
    source: Arc<str>,
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Degraded {
    source: Arc<str>,
    reason: &'static str,
}

/// The metrics of one controller.
#[derive(Clone)]
pub(crate) struct ControllerMetrics {
    controller: Arc<str>,
    total: Family<Ended, Counter>,
    pub(crate) errors: Counter,
    pub(crate) terminal: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) seconds: Histogram,
    pub(crate) workers: Gauge,
    pub(crate) active: Gauge,
}

impl Metrics {
    /// Registers everything in a registry, which may have metrics of the user's own, too.
    pub(crate) fn register(mut registry: Registry) -> Self {
        let families = Families {
            total: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            workers: Family::default(),
            active: Family::default(),
        };
        let (hot_loops, degraded) = (Family::default(), Family::default());
        let requests = Requests::default();
        let queues = watchkeeper_queue::QueueMetrics::register(&mut registry);
        let supervisor = Supervisor::register(&mut registry);
        let informers =
            watchkeeper_informer::InformerMetrics::register(&mut registry).supervised_by(&supervisor);
        let named = registry.sub_registry_with_prefix("controller_runtime");
        named.register("reconcile", "Reconciles by how they ended", families.total.clone());
        named.register("reconcile_errors", "Reconciles that failed", families.errors.clone());
        named.register(
            "terminal_reconcile_errors",
            "Reconciles that failed and are not tried again",
            families.terminal.clone(),
        );
        named.register("reconcile_panics", "Reconciles that panicked", families.panics.clone());
        named.register("reconcile_timeouts", "Reconciles that took too long", families.timeouts.clone());
        named.register("reconcile_time_seconds", "How long reconciles took", families.seconds.clone());
        named.register("max_concurrent_reconciles", "Workers", families.workers.clone());
        named.register("active_workers", "Workers that have work", families.active.clone());
        #[cfg(feature = "election")]
        let election = ElectionMetrics::register(&mut registry);
        registry.register(
            "rest_client_requests",
            "Requests to the API, by what became of them",
            requests.clone(),
        );
        let ours = registry.sub_registry_with_prefix("watchkeeper");
        ours.register("hot_loops", "Objects that kept their own controller busy", hot_loops.clone());
        ours.register("source_degraded", "1 while a source cannot be watched, by reason", degraded.clone());
        let registry = Arc::new(Mutex::new(registry));
        Self {
            registry,
            supervisor,
            queues,
            informers,
            families,
            #[cfg(feature = "election")]
            election,
            requests,
            hot_loops,
            degraded,
        }
    }

    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        let Families { total, errors, terminal, panics, timeouts, seconds, workers, active } = &self.families;
        let of = Of { controller: name.into() };
        // As controller-runtime does, so that rates are there before the first failure.
        for result in ["success", "error", "requeue_after", "requeue"] {
            let _ = total.get_or_create(&Ended { controller: Arc::clone(&of.controller), result });
        }
        ControllerMetrics {
            total: total.clone(),
            errors: errors.get_or_create_owned(&of),
            terminal: terminal.get_or_create_owned(&of),
            panics: panics.get_or_create_owned(&of),
            timeouts: timeouts.get_or_create_owned(&of),
            seconds: seconds.get_or_create_owned(&of),
            workers: workers.get_or_create_owned(&of),
            active: active.get_or_create_owned(&of),
            controller: of.controller,
        }
    }

    pub(crate) fn hot_loop(&self, controller: &str, work: &impl std::fmt::Display, hot: &Loop) {
        let Loop { source, field, times } = hot;
        let controller: Arc<str> = controller.into();
        tracing::warn!(%controller, object = %work, %source, %field, times, "hot loop: the controller's own writes keep waking it");
        let of = HotLoop { controller, source: Arc::clone(source), field: field.clone() };
        self.hot_loops.get_or_create(&of).inc();
    }

    /// How a source is doing: `reason` is the class of what is wrong with it.
    pub(crate) fn source(&self, name: &Arc<str>, reason: Option<&'static str>, before: Option<&'static str>) {
        if let Some(reason) = before {
            self.degraded.get_or_create(&Degraded { source: Arc::clone(name), reason }).set(0);
        }
        if let Some(reason) = reason {
            self.degraded.get_or_create(&Degraded { source: Arc::clone(name), reason }).set(1);
        }
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry.lock());
        text
    }
}

impl ControllerMetrics {
    /// Counts a reconcile that ended so.
    pub(crate) fn ended(&self, result: &'static str) {
        let controller = Arc::clone(&self.controller);
        self.total.get_or_create(&Ended { controller, result }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric_names::METRICS;

    #[test]
    fn every_metric_is_in_the_description() {
        let metrics = Metrics::register(Registry::default());
        let registered = format!("{:?}", metrics.registry.lock());
        let names: Vec<&str> = registered
            .split("Descriptor { name: \"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(names.len() > 30, "the registry prints itself in another way: {registered}");
        for name in &names {
            let known = METRICS.iter().any(|(known, kind, _)| {
                let known = if *kind == "counter" { known.trim_end_matches("_total") } else { known };
                known.trim_end_matches("_seconds").ends_with(name.trim_end_matches("_seconds"))
            });
            assert!(known, "{name} is not in the table of metrics");
        }
        let queues = METRICS.iter().filter(|(name, ..)| name.starts_with("workqueue_")).count();
        assert_eq!(
            names.len() + queues,
            METRICS.len(),
            "the table has metrics that there are not: {names:?}"
        );
    }
}
