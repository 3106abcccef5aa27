use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::DefaultHashBuilder;
use slab::Slab;

use crate::backoff::Backoff;
use crate::bands::Bands;
use crate::clock::{Clock, TokioClock};
use crate::metrics::QueueMetrics;
use crate::queue::{Inner, Queue, Shared, Tenant};
use crate::state::State;
use crate::sync::Mutex;
use crate::waiters::Waiters;

/// The settings of a [`Queue`].
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_queue::{Backoff, Queue};
/// let queue = Queue::<(String, String)>::builder()
///     .fair_by(|(namespace, _name)| namespace.clone())
///     .age_step(Duration::from_millis(50))
///     .backoff(Backoff::new(Duration::from_millis(5), Duration::from_secs(60)))
///     .build();
/// # queue.add(("default".into(), "web".into()));
/// ```
#[must_use]
pub struct QueueBuilder<K> {
    age_step: Duration,
    backoff: Backoff,
    seed: Option<u64>,
    clock: Arc<dyn Clock>,
    tenant: Option<Tenant<K>>,
    metrics: Option<(QueueMetrics, String)>,
}

impl<K> QueueBuilder<K>
where
    K: Hash + Eq + Clone + Send + 'static,
{
    pub(crate) fn new() -> Self {
        QueueBuilder {
            age_step: Duration::from_millis(100),
            backoff: Backoff::default(),
            seed: None,
            clock: Arc::new(TokioClock),
            tenant: None,
            metrics: None,
        }
    }

    /// By how much one point of [`Priority`](crate::Priority) puts an item ahead; 100 ms by default.
    ///
    /// Zero is plain first in first out, [`Duration::MAX`] is strict priority without a guard against starving.
    pub fn age_step(mut self, step: Duration) -> Self {
        self.age_step = step;
        self
    }

    /// Sets the back-off of failed keys.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Lets tenants take turns: keys for which `tenant` gives the same value are one tenant, such as a namespace.
    ///
    /// `tenant` is called on every add, outside the queue's lock, and must always give the same for the same key.
    pub fn fair_by<T: Hash>(mut self, tenant: impl Fn(&K) -> T + Send + Sync + 'static) -> Self {
        let hasher = DefaultHashBuilder::default();
        self.tenant = Some(Box::new(move |key| hasher.hash_one(tenant(key))));
        self
    }

    /// Makes the jitter of the back-off repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the clock. Default: [`TokioClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Shows the queue in `metrics` under `name`.
    pub fn metrics(mut self, metrics: &QueueMetrics, name: impl Into<String>) -> Self {
        self.metrics = Some((metrics.clone(), name.into()));
        self
    }

    /// Makes the queue.
    pub fn build(self) -> Queue<K> {
        let bands = Bands::new(self.age_step, self.tenant.is_some());
        let rng = self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let state = State::new(bands, self.backoff, rng, self.metrics.is_some());
        let shared = Arc::new(Shared {
            inner: Mutex::new(Inner { state, waiters: Waiters::default(), drains: Slab::new() }),
            epoch: self.clock.now(),
            clock: self.clock,
            hasher: DefaultHashBuilder::default(),
            tenant: self.tenant,
        });
        if let Some((metrics, name)) = self.metrics {
            metrics.show(name, &shared);
        }
        Queue { shared }
    }
}

impl<K> fmt::Debug for QueueBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("age_step", &self.age_step)
            .field("backoff", &self.backoff)
            .field("seed", &self.seed)
            .field("fair", &self.tenant.is_some())
            .finish_non_exhaustive()
    }
}
