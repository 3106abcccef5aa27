use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use watchkeeper_core::{Error, Freshness, Source, Version};

use crate::backoff::SourceBackoff;
use crate::codec::{Codec, Decode, Policy, Transform, decode_any};
use crate::faults::Faults;
use crate::journal::{Entry, Journal};
use crate::metrics::InformerMetrics;
use crate::object::Untyped;
use crate::plan::Plan;
use crate::reflector::{Reflector, Report};
use crate::shared::Shared;
use crate::status::{Phase, SourceId, SourceStatus};
use crate::store::{Readable, Store};
use crate::subscription::Subscription;

/// A local copy of the objects of one or several sources, kept up to date and shared by all handles.
///
/// An informer runs one reflector per source, in a task of its own, from the moment it is started. All handles (this one
/// and its clones, [`Store`]s, [`Index`](crate::Index)es, [`Subscription`]s) keep it alive; when the last one is
/// dropped, it stops by itself and frees everything.
///
/// With several sources, the store is their union: several namespaces, or a cluster and a directory. Each source may
/// only say something about its own objects; a name that another source has already is rejected as a conflict. A
/// source that fails keeps its objects as they were last seen and disturbs no other.
///
/// ```no_run
/// # use watchkeeper_informer::{Informer, Policy};
/// # use watchkeeper_core::Source;
/// # #[derive(serde::Deserialize)] struct Route {}
/// # async fn example(source: impl Source) {
/// let routes = Informer::<Route>::builder().policy(Policy::Typed).start(source);
/// routes.synced().await.expect("the request is sound");
/// println!("{} routes", routes.store().len());
/// let mut changes = routes.subscribe("log");
/// while let Some(change) = changes.next().await {
///     println!("{} {}", change.kind(), change.key);
/// }
/// # }
/// ```
pub struct Informer<K = Untyped> {
    pub(crate) inner: Arc<Inner>,
    kind: PhantomData<fn() -> K>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    reflectors: Mutex<Reflectors>,
    status: Arc<watch::Sender<Vec<SourceStatus>>>,
    runtime: Handle,
    backoff: SourceBackoff,
    first: Freshness,
    random: Mutex<fastrand::Rng>,
}

#[derive(Default)]
struct Reflectors {
    next: u64,
    running: Vec<Running>,
    stopped: bool,
}

struct Running {
    id: SourceId,
    partition: u16,
    source: Arc<dyn Source>,
    task: JoinHandle<()>,
}

impl<K: Readable> Informer<K> {
    /// Options, with their defaults.
    pub fn builder() -> InformerBuilder<K> {
        InformerBuilder::new()
    }
}

impl Informer {
    /// This informer with objects of type `K`.
    pub fn typed<K>(&self) -> Informer<K> {
        Informer::new(Arc::clone(&self.inner))
    }
}

impl<K> Informer<K> {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, kind: PhantomData }
    }

    /// This informer without the type of its objects.
    pub fn untyped(&self) -> Informer {
        Informer::new(Arc::clone(&self.inner))
    }

    /// The local copy.
    pub fn store(&self) -> Store<K> {
        Store::new(Arc::clone(&self.inner))
    }

    /// The name of the source that a state of an object came from, if the informer has one source and this is
    /// [made of others](Source::origin).
    pub fn origin(&self, version: &Version) -> Option<Arc<str>> {
        match self.inner.reflectors.lock().running.as_slice() {
            [only] => only.source.origin(version),
            _ => None,
        }
    }

    /// Everything that is there, then every change. At any time, any number of subscribers; the name is for metrics.
    pub fn subscribe(&self, name: &str) -> Subscription<K> {
        Subscription::new(Arc::clone(&self.inner), name)
    }

    /// Resolves when every source has delivered its first complete snapshot; with an error if a source can never
    /// do that as it was asked.
    pub fn synced(&self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let mut status = self.inner.status.subscribe();
        async move {
            let mut failed = None;
            let settled = status.wait_for(|sources| {
                failed = sources.iter().find_map(|source| match &source.error {
                    Some(error @ Error::Fatal(_)) if !source.synced => Some(error.clone()),
                    _ => None,
                });
                failed.is_some() || !sources.is_empty() && sources.iter().all(|source| source.synced)
            });
            let settled = settled.await.is_ok();
            match failed {
                Some(error) => Err(error),
                None if settled => Ok(()),
                None => {
                    Err(Error::Unavailable { answered: false, reason: "the informer was stopped".into() })
                }
            }
        }
    }

    /// Whether every source has delivered its first complete snapshot.
    pub fn is_synced(&self) -> bool {
        self.inner.shared.is_synced()
    }

    /// The status of each source.
    pub fn status(&self) -> Vec<SourceStatus> {
        self.inner.status.borrow().clone()
    }

    /// The status of each source, as a channel that is notified of every change.
    pub fn watch_status(&self) -> watch::Receiver<Vec<SourceStatus>> {
        self.inner.status.subscribe()
    }

    /// Adds another source while the informer runs: another namespace, another cluster.
    pub fn add_source<S: Source>(&self, source: S) -> SourceId {
        self.inner.add_source(Arc::new(source))
    }

    /// Stops one source and removes its objects; subscribers are told of each. All of that has happened when this returns.
    pub async fn remove_source(&self, id: SourceId) {
        let removed = {
            let mut reflectors = self.inner.reflectors.lock();
            let at = reflectors.running.iter().position(|running| running.id == id);
            at.map(|at| reflectors.running.remove(at))
        };
        if let Some(Running { partition, task, .. }) = removed {
            end(task).await;
            self.inner.status.send_modify(|sources| sources.retain(|source| source.id != id));
            self.inner.shared.remove_partition(partition);
            if let Some(journal) = &self.inner.shared.journal {
                journal.write().await;
            }
        }
    }

    /// Stops the informer and waits until it has stopped. Subscriptions end; the store stays readable.
    pub async fn stop(&self) {
        for running in self.inner.take_running() {
            end(running.task).await;
        }
        self.inner.shared.close();
    }
}

async fn end(task: JoinHandle<()>) {
    task.abort();
    // It was cancelled; panics are caught inside.
    let _ = task.await;
}

/// Takes a report over; says whether it was news.
fn note(status: &mut SourceStatus, report: Report) -> bool {
    let before = status.clone();
    match report {
        Report::Phase(phase) => status.phase = phase,
        Report::Failed(error) => status.error = Some(error),
        Report::Synced => {
            status.phase = Phase::Following;
            status.synced = true;
            status.error = None;
        }
        Report::Alive => status.error = None,
    }
    *status != before
}

impl Inner {
    fn add_source(&self, source: Arc<dyn Source>) -> SourceId {
        let mut reflectors = self.reflectors.lock();
        let id = SourceId(reflectors.next);
        reflectors.next += 1;
        if reflectors.stopped {
            return id;
        }
        self.status.send_modify(|sources| {
            let name = source.name().to_owned();
            sources.push(SourceStatus { id, name, phase: Phase::Snapshot, synced: false, error: None });
        });
        self.shared.metrics.add_source(&source);
        let partition = self.shared.add_partition();
        let status = Arc::clone(&self.status);
        let capabilities = source.capabilities();
        let seed = self.random.lock().u64(..);
        let reflector = Reflector {
            plan: Plan::new(&capabilities, self.backoff, self.first.clone(), seed),
            source: Arc::clone(&source),
            capabilities,
            drift: source.drift(),
            faults: Faults::default(),
            shared: Arc::clone(&self.shared),
            partition,
            begun: false,
            report: Box::new(move |report| {
                status.send_if_modified(|sources| {
                    sources
                        .iter_mut()
                        .find(|source| source.id == id)
                        .is_some_and(|source| note(source, report))
                });
            }),
        };
        let task = self.runtime.spawn(reflector.supervised());
        reflectors.running.push(Running { id, partition, source, task });
        id
    }

    fn take_running(&self) -> Vec<Running> {
        let mut reflectors = self.reflectors.lock();
        reflectors.stopped = true;
        std::mem::take(&mut reflectors.running)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.take_running().iter().for_each(|running| running.task.abort());
        self.shared.close();
    }
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.inner))
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("name", &self.inner.shared.name)
            .field("status", &self.status())
            .finish()
    }
}

/// Options of an [`Informer`].
pub struct InformerBuilder<K> {
    options: Options,
    kind: PhantomData<fn() -> K>,
}

struct Options {
    name: Option<String>,
    policy: Policy,
    check: bool,
    recent: usize,
    decode: Decode,
    transform: Option<Transform>,
    backoff: SourceBackoff,
    first: Freshness,
    metrics: InformerMetrics,
    seed: Option<u64>,
    journal: Option<Journal>,
}

impl<K: Readable> Default for InformerBuilder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Readable> InformerBuilder<K> {
    fn new() -> Self {
        let options = Options {
            name: None,
            policy: Policy::default(),
            check: false,
            recent: 16,
            decode: decode_any::<K>,
            transform: None,
            backoff: SourceBackoff::default(),
            first: Freshness::Any,
            metrics: InformerMetrics::default(),
            seed: None,
            journal: None,
        };
        Self { options, kind: PhantomData }
    }

    /// The name of the informer in logs and metrics. Default: the name of its first source.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    /// Sets how objects are held. Default: [`Policy::Packed`].
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.options.policy = policy;
        self
    }

    /// Decodes every object as it arrives, whatever the policy, so that one that cannot be decoded never replaces the last
    /// state that could. Costs one decode per change. Default: off; a [`Policy::Typed`] store does it anyway.
    #[must_use]
    pub fn check(mut self, check: bool) -> Self {
        self.options.check = check;
        self
    }

    /// Sets how many decoded values a packed store keeps. Default: 16, which is enough for several readers of one change to
    /// share a decode.
    #[must_use]
    pub fn recent(mut self, values: usize) -> Self {
        self.options.recent = values;
        self
    }

    /// Changes every object before anyone sees it: exactly once for each state that is stored or reported as the last
    /// one. What identifies the object is taken from the source and cannot be changed.
    ///
    /// A packed store has to decode and encode for this; to leave out fields,
    /// [`Projection::drop`](watchkeeper_core::Projection::drop) in the source is far cheaper.
    ///
    /// ```no_run
    /// # use watchkeeper_informer::Informer;
    /// # use watchkeeper_core::Source;
    /// # #[derive(serde::Deserialize, serde::Serialize)] struct Login { user: String, password: String }
    /// # async fn example(source: impl Source) {
    /// let logins = Informer::<Login>::builder().transform(|login| login.password.clear()).start(source);
    /// # }
    /// ```
    #[must_use]
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Serialize,
    {
        self.options.transform = Some(Transform::new(transform));
        self
    }

    /// Sets the back-off after a failure of a source.
    #[must_use]
    pub fn backoff(mut self, backoff: SourceBackoff) -> Self {
        self.options.backoff = backoff;
        self
    }

    /// Sets how new the very first snapshot has to be. Default: [`Freshness::Any`], the cheapest for the source. Later ones
    /// are never older than what was known.
    #[must_use]
    pub fn first_snapshot(mut self, freshness: Freshness) -> Self {
        self.options.first = freshness;
        self
    }

    /// Sets the metrics. Default: none.
    #[must_use]
    pub fn metrics(mut self, metrics: &InformerMetrics) -> Self {
        self.options.metrics = metrics.clone();
        self
    }

    /// Makes the random part of every wait reproducible.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Writes down everything that the informer sees, for readers who want every change rather than the newest state: see
    /// [`Entry`]. The informer goes no faster than the journal is read. If its receiver is dropped, it is no longer written.
    ///
    /// ```no_run
    /// # use watchkeeper_informer::{Entry, Informer};
    /// # use watchkeeper_core::Source;
    /// # #[derive(serde::Deserialize)] struct Route {}
    /// # async fn example(source: impl Source) {
    /// let (journal, mut entries) = tokio::sync::mpsc::channel(100);
    /// let routes = Informer::<Route>::builder().journal(journal).start(source);
    /// while let Some(entry) = entries.recv().await {
    ///     match entry {
    ///         Entry::Changed(change) => println!("{} {}", change.kind(), change.key),
    ///         Entry::Complete(version) => println!("complete at {version}"),
    ///         Entry::Interrupted { wait, .. } => println!("interrupted, asked again in {wait:?}"),
    ///         _ => {}
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn journal(mut self, journal: mpsc::Sender<Entry<K>>) -> Self {
        self.options.journal = Some(Journal::new(journal));
        self
    }
}

impl<K> InformerBuilder<K> {
    /// These options without the type of the objects.
    #[must_use]
    pub fn untyped(self) -> InformerBuilder<Untyped> {
        InformerBuilder { options: self.options, kind: PhantomData }
    }

    /// Starts the informer with its first source, on the current tokio runtime.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start<S: Source>(self, source: S) -> Informer<K> {
        Informer::new(self.options.start(Arc::new(source)))
    }
}

impl Options {
    fn start(self, source: Arc<dyn Source>) -> Arc<Inner> {
        let name = self.name.unwrap_or_else(|| source.name().to_owned());
        let metrics = Arc::new(self.metrics.informer(&name));
        let codec = Codec::new(
            self.policy,
            self.check,
            self.decode,
            self.transform,
            self.recent,
            Arc::clone(&metrics),
        );
        let inner = Inner {
            shared: Arc::new(Shared::new(&name, Arc::new(codec), metrics, self.journal)),
            reflectors: Mutex::default(),
            status: Arc::new(watch::Sender::new(Vec::new())),
            runtime: Handle::current(),
            backoff: self.backoff,
            first: self.first,
            random: Mutex::new(self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)),
        };
        inner.add_source(source);
        Arc::new(inner)
    }
}
