//! The gauges of sources, read when metrics are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use watchkeeper_core::Source;

/// The sources of all informers, as long as these hold them.
#[derive(Clone, Default)]
pub(crate) struct SourceGauges(Arc<Mutex<Vec<Held>>>);

/// A source, and the name of the informer that holds it.
#[derive(Clone)]
struct Held {
    informer: Arc<str>,
    source: Weak<dyn Source>,
}

/// The values of one gauge, by informer and source.
struct Series {
    help: &'static str,
    values: BTreeMap<(Arc<str>, Arc<str>), f64>,
}

impl SourceGauges {
    /// Shows the gauges of a source until it is dropped.
    pub(crate) fn add(&self, informer: &Arc<str>, source: &Arc<dyn Source>) {
        let mut sources = self.lock();
        sources.retain(|held| held.source.strong_count() > 0);
        sources.push(Held { informer: Arc::clone(informer), source: Arc::downgrade(source) });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for SourceGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sources = self.lock().clone();
        // By name, since all series of a name stand together; one of each.
        let mut all: BTreeMap<&str, Series> = BTreeMap::new();
        for Held { informer, source } in sources {
            let Some(source) = source.upgrade() else { continue };
            for gauge in source.gauges() {
                let series =
                    all.entry(gauge.name).or_insert(Series { help: gauge.help, values: BTreeMap::new() });
                series.values.insert((Arc::clone(&informer), gauge.source), gauge.value);
            }
        }
        for (name, Series { help, values }) in all {
            let kind = ConstGauge::new(0.0).metric_type();
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for ((informer, source), value) in values {
                let labels = [("informer", &*informer), ("source", &*source)];
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SourceGauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceGauges").finish_non_exhaustive()
    }
}
