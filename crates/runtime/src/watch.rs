use std::any::TypeId;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use watchkeeper_client::{Cache, Client, DynamicKind, DynamicObject, Kind, StaticKind};
use watchkeeper_core::{Change, Key, Source, Version};
use watchkeeper_description::Resource;
use watchkeeper_informer::{Informer, InformerSet, Metadata, Object, Readable};
use watchkeeper_queue::Priority;

use crate::declared::{dynamic_resource, resource};
use crate::predicate::{Predicate, Test};
use crate::request::{Request, WorkKey};

/// A watch of a controller besides its own kind, and the keys that its changes make work for.
///
/// What is watched is a kind of the cluster ([`of`](Self::of), [`owned_by`](Self::owned_by),
/// [`by_metadata`](Self::by_metadata)) or any [`Source`] ([`over`](Self::over)). The function gives the work for one state
/// of an object. It is asked for the old state and for the new one, so that a relation that moves from one object to
/// another wakes both. What cannot be decoded is work for nobody, and is logged.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use watchkeeper_core::Key;
/// use watchkeeper_runtime::{Predicate, Watch};
/// // A page is written anew when the secret with its name changes.
/// let secrets = Watch::of(|secret: &Secret| {
///     secret.metadata.name.as_deref().map(|name| Key::new(secret.metadata.namespace.as_deref(), name))
/// })
/// .filter(Predicate::version_changed());
/// # let _: Watch<Secret> = secrets;
/// ```
pub struct Watch<K: Readable, R = Request> {
    pub(crate) watch: AnyWatch<R>,
    kind: PhantomData<fn(K)>,
}

/// A watch, whatever it watches.
pub(crate) struct AnyWatch<R> {
    pub(crate) origin: Origin,
    pub(crate) rules: Rules<R>,
}

/// Where the changes come from.
pub(crate) enum Origin {
    /// The cache of a kind, in each of the controller's clusters.
    Cluster { resource: Resource, open: Open, wrote: Wrote },
    /// A source of its own, shared by whoever watches the same.
    Source(OpenSource),
}

type OpenSource = Box<dyn FnOnce(&InformerSet) -> Informer + Send>;
type Open = Arc<dyn Fn(&Client) -> Result<Informer, watchkeeper_client::Error> + Send + Sync>;
pub(crate) type Wrote = Arc<dyn Fn(&Client, &Key, &Version) -> bool + Send + Sync>;
type Map<R> = Arc<dyn Fn(&Object, Option<&Arc<str>>) -> Vec<R> + Send + Sync>;

/// What is done with a change.
pub(crate) struct Rules<R> {
    only: Option<Test>,
    pub(crate) priority: Option<Priority>,
    map: Map<R>,
}

/// The result of a mapping function: the key of an object in the cluster of the change, or work as the controller
/// names it.
pub trait IntoWork<R> {
    /// As a piece of work.
    fn into_work(self, cluster: Option<&Arc<str>>) -> R;
}

impl<R: WorkKey> IntoWork<R> for R {
    fn into_work(self, _cluster: Option<&Arc<str>>) -> R {
        self
    }
}

impl IntoWork<Request> for Key {
    fn into_work(self, cluster: Option<&Arc<str>>) -> Request {
        Request::at(cluster, self)
    }
}

impl<K: StaticKind, R: WorkKey> Watch<K, R> {
    /// A watch of a kind of the cluster.
    pub fn of<I>(work: impl Fn(&K) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator,
        I::Item: IntoWork<R>,
    {
        Self::new(Origin::cluster::<K>(), Rules::decoding(work))
    }

    /// A kind of the cluster, of which the function needs to know nothing but key and metadata. Cheaper: nothing is
    /// decoded.
    pub fn by_metadata<I>(work: impl Fn(&Key, &Metadata) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator,
        I::Item: IntoWork<R>,
    {
        Self::new(Origin::cluster::<K>(), Rules::by_metadata(work))
    }
}

impl<R: WorkKey> Watch<DynamicObject, R> {
    /// A watch of a kind of the cluster that is known at run time only.
    pub fn dynamic<I>(kind: DynamicKind, work: impl Fn(&DynamicObject) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator,
        I::Item: IntoWork<R>,
    {
        Self::new(Origin::dynamic(kind), Rules::decoding(work))
    }
}

impl<K: StaticKind> Watch<K> {
    /// A kind whose objects are controlled by objects of kind `O`: each is work for the one that controls it. The group
    /// and the kind of the owner reference have to be those of `O`; its version does not matter.
    pub fn owned_by<O: StaticKind>() -> Self {
        Self::with_rules(Rules::owned_by::<O>())
    }

    /// As [`owned_by`](Self::owned_by), for owners of a kind that is known at run time only.
    pub fn owned_by_dynamic(owner: &DynamicKind) -> Self {
        Self::with_rules(Rules::owned_by_dynamic(owner))
    }

    pub(crate) fn with_rules(rules: Rules<Request>) -> Self {
        Self::new(Origin::cluster::<K>(), rules)
    }
}

impl Watch<DynamicObject> {
    pub(crate) fn dynamic_with_rules(kind: DynamicKind, rules: Rules<Request>) -> Self {
        Self::new(Origin::dynamic(kind), rules)
    }
}

impl<K: Readable, R: WorkKey> Watch<K, R> {
    /// A watch of a source: files, rows, documents behind an HTTP API.
    pub fn over<I>(source: impl Source, work: impl Fn(&K) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator,
        I::Item: IntoWork<R>,
    {
        Self::new(Origin::source::<K>(source), Rules::decoding(work))
    }

    fn new(origin: Origin, rules: Rules<R>) -> Self {
        Self { watch: AnyWatch { origin, rules }, kind: PhantomData }
    }

    /// Drops changes that do not pass. Of several predicates, all have to pass.
    #[must_use]
    pub fn filter(mut self, predicate: Predicate<K>) -> Self {
        self.watch.rules = self.watch.rules.filter(predicate.test);
        self
    }

    /// Sets the priority of the work of this watch. Default: normal; first lists and resyncs are a hundred below.
    #[must_use]
    pub fn at(mut self, priority: impl Into<Priority>) -> Self {
        self.watch.rules.priority = Some(priority.into());
        self
    }
}

impl Origin {
    pub(crate) fn cluster<K: Kind>() -> Self {
        Self::Cluster {
            resource: resource::<K>(),
            open: Arc::new(informer::<K>),
            wrote: Arc::new(Client::wrote::<K>),
        }
    }

    /// A kind that is known at run time only.
    pub(crate) fn dynamic(kind: DynamicKind) -> Self {
        let written = kind.clone();
        Self::Cluster {
            resource: dynamic_resource(&kind),
            open: Arc::new(move |client| informer::<DynamicObject>(&client.dynamic(&kind))),
            wrote: Arc::new(move |client, key, version| {
                client.dynamic(&written).wrote::<DynamicObject>(key, version)
            }),
        }
    }

    /// What is watched, if that is a resource of a cluster.
    pub(crate) fn resource(&self) -> Option<&Resource> {
        match self {
            Self::Cluster { resource, .. } => Some(resource),
            Self::Source(_) => None,
        }
    }

    pub(crate) fn source<K: Readable>(source: impl Source) -> Self {
        Self::Source(Box::new(move |informers| informers.informer::<K>(source).untyped()))
    }
}

/// The informer of a kind in a cluster. Somebody may have declared the kind with options of its cache.
pub(crate) fn informer<K: Kind>(client: &Client) -> Result<Informer, watchkeeper_client::Error> {
    client.informer::<K>().or_else(|_| client.declare(Cache::of::<K>())).map(|informer| informer.untyped())
}

impl<R: WorkKey> Rules<R> {
    fn decoding<K: Readable, I>(work: impl Fn(&K) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator,
        I::Item: IntoWork<R>,
    {
        Self::mapping(move |object, cluster| match object.clone().typed::<K>().get() {
            Ok(value) => work(&value).into_iter().map(|item| item.into_work(cluster)).collect(),
            Err(error) => unreadable(&error),
        })
    }

    fn by_metadata<I>(work: impl Fn(&Key, &Metadata) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator,
        I::Item: IntoWork<R>,
    {
        Self::mapping(move |object, cluster| match object.metadata() {
            Ok(metadata) => {
                work(object.key(), &metadata).into_iter().map(|item| item.into_work(cluster)).collect()
            }
            Err(error) => unreadable(&error),
        })
    }

    fn mapping(map: impl Fn(&Object, Option<&Arc<str>>) -> Vec<R> + Send + Sync + 'static) -> Self {
        Self { only: None, priority: None, map: Arc::new(map) }
    }

    pub(crate) fn filter(mut self, test: Test) -> Self {
        self.only = Some(match self.only {
            Some(before) => Arc::new(move |change| before(change) && test(change)),
            None => test,
        });
        self
    }

    /// The work that a change makes, each piece once. User code that panics makes none, and is logged; a predicate that
    /// panics passes.
    pub(crate) fn work(&self, change: &Change<Object>, cluster: Option<&Arc<str>>) -> Vec<R> {
        if let Some(only) = &self.only {
            let passes = catch_unwind(AssertUnwindSafe(|| only(change)));
            if !passes.unwrap_or_else(|_| panicked(&change.key, "predicate", true)) {
                return Vec::new();
            }
        }
        let mut work = Vec::new();
        for state in [&change.old, &change.new].into_iter().flatten() {
            let mapped = catch_unwind(AssertUnwindSafe(|| (self.map)(state, cluster)));
            for item in mapped.unwrap_or_else(|_| panicked(&change.key, "mapping function", Vec::new())) {
                if !work.contains(&item) {
                    work.push(item);
                }
            }
        }
        work
    }
}

impl Rules<Request> {
    /// Every object is work for the object of kind `O` that controls it.
    pub(crate) fn owned_by<O: Kind>() -> Self {
        let cluster_scoped = TypeId::of::<O::Scope>() == TypeId::of::<ClusterResourceScope>();
        Self::owned_by_kind(O::group(&()).into_owned(), O::kind(&()).into_owned(), cluster_scoped)
    }

    /// As [`owned_by`](Self::owned_by), for owners of a kind that is known at run time only.
    pub(crate) fn owned_by_dynamic(owner: &DynamicKind) -> Self {
        Self::owned_by_kind(owner.group().to_owned(), owner.kind().to_owned(), !owner.is_namespaced())
    }

    fn owned_by_kind(group: String, kind: String, cluster_scoped: bool) -> Self {
        Self::by_metadata(move |key, metadata| {
            let owner = metadata.owner_references.iter().find(|owner| owner.controller)?;
            let owners_group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
            let is_it = owner.kind == kind && owners_group == group;
            let namespace = key.namespace().filter(|_| !cluster_scoped);
            is_it.then(|| Key::new(namespace, &owner.name))
        })
    }

    /// Every object is work for itself.
    pub(crate) fn itself() -> Self {
        Self::mapping(|object, cluster| vec![Request::at(cluster, object.key().clone())])
    }
}

fn unreadable<R>(error: &watchkeeper_informer::DecodeError) -> Vec<R> {
    tracing::warn!(%error, "watched object cannot be decoded");
    Vec::new()
}

fn panicked<T>(object: &Key, what: &str, instead: T) -> T {
    tracing::error!(%object, "a {what} panicked");
    instead
}

impl<K: Readable, R> std::fmt::Debug for Watch<K, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
