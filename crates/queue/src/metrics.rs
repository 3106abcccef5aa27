use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::durations::{Durations, Histogram};
use crate::priority::Priority;
use crate::queue::Shared;
use crate::timers::Nanos;

/// As in controller-runtime: more priorities than this share one series.
const MOST_PRIORITIES: usize = 25;
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

/// The metrics of any number of queues, under the names and labels that client-go and controller-runtime use:
///
/// | name | type | |
/// |---|---|---|
/// | `workqueue_depth` | gauge | ready items, by `priority` |
/// | `workqueue_adds_total` | counter | items that became ready |
/// | `workqueue_queue_duration_seconds` | histogram | how long items were ready before they ran |
/// | `workqueue_work_duration_seconds` | histogram | how long they ran |
/// | `workqueue_unfinished_work_seconds` | gauge | time spent in runs that have not ended, summed up |
/// | `workqueue_longest_running_processor_seconds` | gauge | the longest of these |
/// | `workqueue_retries_total` | counter | items that were put off: retries, requeues and delayed adds |
///
/// The labels `name` and `controller` both hold the queue's name. All is read from the queues when it is scraped, so
/// there is no task in the background, and the series of a queue end with its last handle. Queues of one name are summed
/// up.
///
/// ```
/// # use prometheus_client::registry::Registry;
/// # use watchkeeper_queue::{QueueMetrics, Queue};
/// let mut registry = Registry::default();
/// let metrics = QueueMetrics::register(&mut registry);
/// let queue = Queue::builder().metrics(&metrics, "greeting").build();
/// queue.add("default/hello");
///
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
/// assert!(text.contains(r#"workqueue_depth{name="greeting",controller="greeting",priority="0"} 1"#));
/// ```
#[derive(Clone)]
pub struct QueueMetrics {
    names: Arc<Mutex<BTreeMap<String, Named>>>,
}

#[derive(Default)]
struct Named {
    queues: Vec<Weak<dyn Source>>,
    /// Those that have been seen: a band that has run empty is to show as 0, not to vanish.
    priorities: Vec<Priority>,
}

/// A queue, whatever its keys.
trait Source: Send + Sync {
    fn read(&self) -> Reading;
}

/// What one queue, or several of one name, had to say at one moment.
#[derive(Default)]
struct Reading {
    depths: BTreeMap<Priority, u64>,
    adds: u64,
    retries: u64,
    durations: Durations,
    unfinished: Nanos,
    longest: Nanos,
}

impl QueueMetrics {
    /// Registers the metrics of all queues that will be built with them. Once a registry: twice would show them twice.
    pub fn register(registry: &mut Registry) -> QueueMetrics {
        let metrics = QueueMetrics { names: Arc::default() };
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    pub(crate) fn show<K: Send + 'static>(&self, name: String, queue: &Arc<Shared<K>>) {
        let queue: Weak<Shared<K>> = Arc::downgrade(queue);
        let mut names = self.names.lock();
        let named = names
            .entry(name)
            .or_insert_with(|| Named { queues: Vec::new(), priorities: vec![Priority::NORMAL] });
        named.queues.push(queue);
    }

    fn read(&self) -> Vec<(String, Labelled)> {
        let mut names = self.names.lock();
        names.retain(|_, named| {
            named.queues.retain(|queue| queue.strong_count() > 0);
            !named.queues.is_empty()
        });
        names.iter_mut().map(|(name, named)| (name.clone(), named.read())).collect()
    }
}

/// A reading with its depths under the label values that they are shown with.
struct Labelled {
    depths: Vec<(String, u64)>,
    reading: Reading,
}

impl Named {
    fn read(&mut self) -> Labelled {
        let mut reading = Reading::default();
        for queue in self.queues.iter().filter_map(Weak::upgrade) {
            reading.merge(&queue.read());
        }
        let mut others = None;
        for (&priority, &depth) in &reading.depths {
            if self.priorities.contains(&priority) {
                continue;
            }
            if self.priorities.len() < MOST_PRIORITIES {
                self.priorities.push(priority);
            } else {
                *others.get_or_insert(0) += depth;
            }
        }
        let depth_of = |priority| reading.depths.get(priority).copied().unwrap_or(0);
        let mut depths: Vec<_> = self.priorities.iter().map(|p| (p.to_string(), depth_of(p))).collect();
        depths.extend(others.map(|depth| (OTHER_PRIORITIES.to_owned(), depth)));
        Labelled { depths, reading }
    }
}

impl<K: Send + 'static> Source for Shared<K> {
    fn read(&self) -> Reading {
        self.with(|state| {
            let (adds, retries) = state.totals();
            Reading {
                depths: state.depths().map(|(priority, depth)| (priority, depth as u64)).collect(),
                adds,
                retries,
                durations: state.durations().cloned().unwrap_or_default(),
                unfinished: state.run_times().sum(),
                longest: state.run_times().max().unwrap_or(0),
            }
        })
    }
}

impl Reading {
    fn merge(&mut self, other: &Reading) {
        for (&priority, &depth) in &other.depths {
            *self.depths.entry(priority).or_default() += depth;
        }
        self.adds += other.adds;
        self.retries += other.retries;
        self.durations.merge(&other.durations);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.longest = self.longest.max(other.longest);
    }
}

impl Collector for QueueMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let queues = self.read();
        let mut family = encoder.encode_descriptor(
            "workqueue_depth",
            "Current depth of workqueue by workqueue and priority",
            None,
            MetricType::Gauge,
        )?;
        for (name, labelled) in &queues {
            for (priority, depth) in &labelled.depths {
                let labels = [("name", name), ("controller", name), ("priority", priority)];
                family.encode_family(&labels)?.encode_gauge(depth)?;
            }
        }
        for metric in &METRICS {
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, metric.kind)?;
            for (name, labelled) in &queues {
                let labels = [("name", name), ("controller", name)];
                (metric.encode)(&labelled.reading, family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// One metric with a value a queue.
struct Metric {
    /// Without the `_total` that the encoder gives to counters.
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    encode: fn(&Reading, MetricEncoder<'_>) -> fmt::Result,
}

const METRICS: [Metric; 6] = [
    Metric {
        name: "workqueue_adds",
        help: "Total number of adds handled by workqueue",
        kind: MetricType::Counter,
        encode: |reading, encoder| counter(reading.adds, encoder),
    },
    Metric {
        name: "workqueue_queue_duration_seconds",
        help: "How long in seconds an item stays in workqueue before being requested",
        kind: MetricType::Histogram,
        encode: |reading, encoder| histogram(&reading.durations.queued, encoder),
    },
    Metric {
        name: "workqueue_work_duration_seconds",
        help: "How long in seconds processing an item from workqueue takes",
        kind: MetricType::Histogram,
        encode: |reading, encoder| histogram(&reading.durations.worked, encoder),
    },
    Metric {
        name: "workqueue_unfinished_work_seconds",
        help: "How many seconds of work has been done that is in progress and hasn't been observed by work_duration",
        kind: MetricType::Gauge,
        encode: |reading, mut encoder| encoder.encode_gauge(&seconds(reading.unfinished)),
    },
    Metric {
        name: "workqueue_longest_running_processor_seconds",
        help: "How many seconds has the longest running processor for workqueue been running",
        kind: MetricType::Gauge,
        encode: |reading, mut encoder| encoder.encode_gauge(&seconds(reading.longest)),
    },
    Metric {
        name: "workqueue_retries",
        help: "Total number of retries handled by workqueue",
        kind: MetricType::Counter,
        encode: |reading, encoder| counter(reading.retries, encoder),
    },
];

fn counter(value: u64, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn histogram(histogram: &Histogram, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    encoder.encode_histogram::<NoLabelSet>(histogram.sum(), histogram.count(), &histogram.buckets(), None)
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

impl fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueMetrics").field("names", &self.names.lock().keys()).finish()
    }
}
