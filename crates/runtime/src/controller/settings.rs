use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_client::{Client, DynamicKind, StaticKind};
use watchkeeper_description::{Resource, Right, Verbs};
use watchkeeper_informer::Readable;
use watchkeeper_queue::{Backoff, Priority, Queue};

use crate::clusters::Clusters;
use crate::controller::watches::DynamicWatches;
use crate::declared::{Declared, dynamic_resource, resource, status_of};
use crate::degradation::Kept;
use crate::manager::Environment;
use crate::request::{Request, WorkKey};
use crate::trigger::Trigger;
use crate::watch::{AnyWatch, Watch, informer};

/// Everything about a controller that does not depend on what it works on.
pub(crate) struct Settings<R> {
    pub(crate) name: String,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) backoff: Backoff,
    pub(crate) priority: Priority,
    pub(crate) tenant: Option<Tenant<R>>,
    pub(crate) clusters: Option<Vec<Arc<str>>>,
    /// The kind that it works on, if that is known at run time only.
    pub(crate) dynamic: Option<DynamicKind>,
    pub(crate) needs_lead: bool,
    pub(crate) hot_loop_limit: u32,
    pub(crate) watches: Vec<AnyWatch<R>>,
    pub(crate) reads: Vec<Declare>,
    pub(crate) trigger: Trigger<R>,
    pub(crate) run_time: DynamicWatches<R>,
    /// What it asks of a cluster.
    pub(crate) rights: Vec<Right>,
}

/// Tells whose work it is, as a hash.
type Tenant<R> = Arc<dyn Fn(&R) -> u64 + Send + Sync>;

/// Declares a kind in a cluster and keeps its cache for as long as the result lives.
pub(crate) type Declare = fn(&Client) -> Result<Kept, watchkeeper_client::Error>;

/// How many objects are reconciled at the same time unless told otherwise.
pub(crate) const CONCURRENCY: usize = 8;
/// How long a reconcile may take unless told otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);
/// How many of its own writes may wake an object in a minute before it counts as a loop.
pub(crate) const HOT_LOOP: u32 = 30;

impl<R: WorkKey> Settings<R> {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            concurrency: CONCURRENCY,
            timeout: Some(TIMEOUT),
            backoff: Backoff::default(),
            priority: Priority::NORMAL,
            tenant: None,
            clusters: None,
            dynamic: None,
            needs_lead: true,
            hot_loop_limit: HOT_LOOP,
            watches: Vec::new(),
            reads: Vec::new(),
            trigger: Trigger::new(),
            run_time: DynamicWatches::new(),
            rights: Vec::new(),
        }
    }

    /// What it says about itself.
    pub(crate) fn declared(&self, of: Option<Resource>, finalizer: Option<String>) -> Declared {
        let watches = self.watches.iter().filter_map(|watch| watch.origin.resource().cloned());
        let description = watchkeeper_description::Controller {
            name: self.name.clone(),
            of,
            watches: watches.collect(),
            concurrency: self.concurrency,
            finalizer,
        };
        Declared { description, rights: self.rights.clone() }
    }

    /// The clients that runs are given: they write only while this process leads, if it has to, and know what a dynamic
    /// object is.
    pub(crate) fn clusters_of(&self, environment: &Environment) -> Clusters {
        let clusters = if self.needs_lead { &environment.guarded } else { &environment.clusters };
        match &self.dynamic {
            Some(kind) => clusters.map(|client| client.dynamic(kind)),
            None => clusters.clone(),
        }
    }

    pub(crate) fn queue(&self, environment: &Environment) -> Queue<R> {
        let queue =
            Queue::builder().backoff(self.backoff).metrics(&environment.metrics.queues, self.name.clone());
        match self.tenant.clone() {
            Some(tenant) => queue.fair_by(move |work| tenant(work)),
            None => queue,
        }
        .build()
    }
}

/// The options of a [`Controller`](crate::Controller). `P` is the type of its objects or keys.
pub struct ControllerBuilder<P, R = Request> {
    pub(crate) settings: Settings<R>,
    pub(crate) primary: P,
}

impl<P, R: WorkKey> ControllerBuilder<P, R> {
    pub(crate) fn new(name: String, primary: P) -> Self {
        Self { settings: Settings::new(name), primary }
    }

    /// Sets the name in logs, metrics and probes. Default: the kind in lower case. Within a manager, names are
    /// unique.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Sets the number of workers: keys that are reconciled at the same time, each by one worker only. Default: 8.
    #[must_use]
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.settings.concurrency = workers.max(1);
        self
    }

    /// Sets the timeout after which a reconcile is dropped and counts as failed. Default: 5 minutes. `None`: no timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.timeout = timeout.into();
        self
    }

    /// Sets the back-off of failed reconciles. Default: 5 ms, doubled each time, up to 1000 s, half of it
    /// left to chance.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// Sets the base of the priorities of this controller's work. Default: 0. Workers are not shared between controllers,
    /// so it orders the work of this one only, where watches have priorities of their own.
    #[must_use]
    pub fn priority(mut self, priority: impl Into<Priority>) -> Self {
        self.settings.priority = priority.into();
        self
    }

    /// Lets tenants take turns: work for which the function gives the same value is one tenant's. Default: no tenants.
    #[must_use]
    pub fn fair_by<T: Hash>(mut self, tenant: impl Fn(&R) -> T + Send + Sync + 'static) -> Self {
        let hasher = std::hash::RandomState::new();
        self.settings.tenant =
            Some(Arc::new(move |work| std::hash::BuildHasher::hash_one(&hasher, tenant(work))));
        self
    }

    /// Works on these clusters instead of the manager's own, by the names under which the manager knows them. The cluster
    /// is part of the request, and [`Context::client`](crate::Context::client) is that of the object's cluster.
    #[must_use]
    pub fn in_clusters<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.settings.clusters = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Runs the controller also while another replica leads. For controllers that change nothing that is shared, such as those that fill
    /// a cache of this process. Default: only the leader works.
    #[must_use]
    pub fn without_election(mut self) -> Self {
        self.settings.needs_lead = false;
        self
    }

    /// Sets how many times a minute a key may be woken by this program's own writes before that is reported as a loop, with
    /// the field that keeps moving. Default: 30.
    #[must_use]
    pub fn hot_loop_limit(mut self, times_a_minute: u32) -> Self {
        self.settings.hot_loop_limit = times_a_minute;
        self
    }

    /// Adds a watch.
    #[must_use]
    pub fn watch<C: Readable>(mut self, watch: Watch<C, R>) -> Self {
        if let Some(resource) = watch.watch.origin.resource() {
            self.settings.rights.push(Right::of(resource.clone(), Verbs::READ, "watches them"));
        }
        self.settings.watches.push(watch.watch);
        self
    }

    /// Adds a watch of kind `C`, whose changes are work for the keys that the function returns. Short for
    /// [`watch`](Self::watch) with [`Watch::of`].
    #[must_use]
    pub fn watches<C, I>(self, work: impl Fn(&C) -> I + Send + Sync + 'static) -> Self
    where
        C: StaticKind,
        I: IntoIterator,
        I::Item: crate::watch::IntoWork<R>,
    {
        self.watch(Watch::of(work))
    }

    /// Reads objects of kind `C` from a cache, without being woken by them.
    #[must_use]
    pub fn reads<C: StaticKind>(mut self) -> Self {
        self.settings.reads.push(|client| informer::<C>(client).map(Kept::new));
        self.settings.rights.push(Right::of(resource::<C>(), Verbs::READ, "reads them"));
        self
    }

    /// Declares that its runs write objects of kind `C`: `Verbs::CREATE | Verbs::DELETE`. See [declarations](crate::Manager#declarations).
    ///
    /// What is [owned](Self::owns) need not be declared, nor the finalizer of the controller's own kind, nor its status if the manager
    /// [installs](crate::Manager::install) the kind.
    #[must_use]
    pub fn writes<C: StaticKind>(mut self, verbs: Verbs) -> Self {
        self.settings.rights.push(Right::of(resource::<C>(), verbs | Verbs::GET, "writes them"));
        self
    }

    /// As [`writes`](Self::writes), for a kind that is known at run time only.
    #[must_use]
    pub fn writes_dynamic(mut self, kind: &DynamicKind, verbs: Verbs) -> Self {
        self.settings.rights.push(Right::of(dynamic_resource(kind), verbs | Verbs::GET, "writes them"));
        self
    }

    /// Declares that its runs write the status of objects of kind `C`.
    #[must_use]
    pub fn writes_status<C: StaticKind>(mut self) -> Self {
        self.settings.rights.extend(status_of(resource::<C>(), "writes their status"));
        self
    }

    /// As [`writes_status`](Self::writes_status), for a kind that is known at run time only.
    #[must_use]
    pub fn writes_status_dynamic(mut self, kind: &DynamicKind) -> Self {
        self.settings.rights.extend(status_of(dynamic_resource(kind), "writes their status"));
        self
    }

    /// Declares that its runs use a part of objects of kind `C` that has a path of its own: `scale`, `eviction`.
    #[must_use]
    pub fn uses_subresource<C: StaticKind>(mut self, name: &str, verbs: Verbs) -> Self {
        self.settings.rights.push(Right::of(resource::<C>(), verbs, "uses a subresource").on(name));
        self
    }

    /// As [`uses_subresource`](Self::uses_subresource), for a kind that is known at run time only.
    #[must_use]
    pub fn uses_subresource_dynamic(mut self, kind: &DynamicKind, name: &str, verbs: Verbs) -> Self {
        self.settings.rights.push(Right::of(dynamic_resource(kind), verbs, "uses a subresource").on(name));
        self
    }

    /// Declares that its runs read objects of kind `C` [from the API](watchkeeper_client::Client::live), past the cache, one or all of them.
    #[must_use]
    pub fn reads_live<C: StaticKind>(mut self) -> Self {
        self.settings.rights.push(Right::of(resource::<C>(), Verbs::GET | Verbs::LIST, "reads them live"));
        self
    }

    /// As [`reads_live`](Self::reads_live), for a kind that is known at run time only.
    #[must_use]
    pub fn reads_live_dynamic(mut self, kind: &DynamicKind) -> Self {
        self.settings.rights.push(Right::of(
            dynamic_resource(kind),
            Verbs::GET | Verbs::LIST,
            "reads them live",
        ));
        self
    }

    /// Declares that its runs, or its [dynamic watches](Self::dynamic_watches), read a kind that is known at run time only, from a cache that
    /// is declared elsewhere: with [`Manager::cache_dynamic`](crate::Manager::cache_dynamic), or by a watch.
    #[must_use]
    pub fn reads_dynamic(mut self, kind: &DynamicKind) -> Self {
        self.settings.rights.push(Right::of(dynamic_resource(kind), Verbs::READ, "reads them"));
        self
    }

    /// A handle that starts reconciles from anywhere.
    pub fn trigger(&self) -> Trigger<R> {
        self.settings.trigger.clone()
    }

    /// A handle that adds and removes watches while the controller runs.
    pub fn dynamic_watches(&self) -> DynamicWatches<R> {
        self.settings.run_time.clone()
    }
}

impl<P, R> fmt::Debug for ControllerBuilder<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder").field("name", &self.settings.name).finish_non_exhaustive()
    }
}
