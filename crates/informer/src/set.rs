use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use watchkeeper_core::Source;

use crate::informer::{Informer, InformerBuilder, Inner};
use crate::metrics::InformerMetrics;
use crate::store::Readable;

/// The informers of a program: one for each type and each set of objects, shared by all who need it.
///
/// Whoever asks first starts the informer; whoever asks later gets a handle to the same one. It stops when the last handle
/// is dropped, and is started anew when it is asked for again. The set itself keeps nothing alive.
///
/// ```no_run
/// # use watchkeeper_core::Source;
/// # use watchkeeper_informer::{InformerMetrics, InformerSet};
/// # #[derive(serde::Deserialize)] struct Route {}
/// # async fn example(source: impl Source + Clone) {
/// let set = InformerSet::new(&InformerMetrics::default());
/// let one = set.informer::<Route>(source.clone());
/// let other = set.informer::<Route>(source); // The same informer: nothing more is watched.
/// # }
/// ```
#[derive(Clone, Default)]
pub struct InformerSet {
    known: Arc<Mutex<Known>>,
    metrics: InformerMetrics,
}

/// By type and by what the source watches.
type Known = HashMap<(TypeId, String), Weak<Inner>>;

impl InformerSet {
    /// An empty set, whose informers count in `metrics`.
    pub fn new(metrics: &InformerMetrics) -> Self {
        Self { known: Arc::default(), metrics: metrics.clone() }
    }

    /// The informer for the objects of the source, with default options.
    pub fn informer<K: Readable>(&self, source: impl Source) -> Informer<K> {
        self.informer_with(source, |builder| builder)
    }

    /// The informer for the objects of the source, told apart by its [identity](Source::identity). The options of the first call count.
    pub fn informer_with<K: Readable>(
        &self,
        source: impl Source,
        options: impl FnOnce(InformerBuilder<K>) -> InformerBuilder<K>,
    ) -> Informer<K> {
        let mut known = self.known.lock();
        let key = (TypeId::of::<K>(), source.identity());
        if let Some(inner) = known.get(&key).and_then(Weak::upgrade) {
            return Informer::new(inner);
        }
        known.retain(|_, informer| informer.strong_count() > 0);
        let informer = options(Informer::builder().metrics(&self.metrics)).start(source);
        known.insert(key, Arc::downgrade(&informer.inner));
        informer
    }

    /// The number of running informers.
    pub fn len(&self) -> usize {
        self.known.lock().values().filter(|informer| informer.strong_count() > 0).count()
    }

    /// Whether no informer is running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
