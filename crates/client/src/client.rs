use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderValue;
use parking_lot::Mutex;
use watchkeeper_core::{Key, Version};
use watchkeeper_informer::{AnyValue, InformerMetrics, Policy};
use watchkeeper_sources::kubernetes::Connection;

use crate::cache::Cache;
use crate::dynamic::{DynamicKind, DynamicObject};
use crate::error::Error;
use crate::guard::Guard;
use crate::kind::{Kind, KindInfo, Scope, typed};
use crate::kind_state::{Declared, KindState};
use crate::live::Live;
use crate::view::ReadState;
use crate::{Informer, List};

/// Reads kinds from local caches, writes to the API, and sees its own writes.
///
/// A cheap handle: clones share the caches and everything that was written through any of them. Handles with other options
/// ([`dry_run`](Self::dry_run), [`manager`](Self::manager), [`guarded_by`](Self::guarded_by)) share them too. When the
/// last handle is dropped, the caches stop.
///
/// # What it promises
///
/// - A read never shows a state older than what an earlier write *through this client* answered: not the state before an
///   update, not a deleted object, not the absence of a created one. It does not wait for the cache; see [`barrier`] for
///   that.
/// - What others wrote is never hidden by that: as soon as the cache shows something newer, it is what reads show.
/// - A write whose answer got lost, or whose future was dropped, leaves a doubt about its object: reads of it go to the
///   API until it is resolved.
/// - "Absent" is said only by a complete cache or by the API.
///
/// # What it does not promise
///
/// Nothing about the writes of other processes, and nothing about objects of one Kubernetes kind that are read as another
/// Rust type than they were written as.
///
/// [`barrier`]: Self::barrier
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: Arc<Options>,
}

/// What all handles have in common.
pub(crate) struct Shared {
    pub(crate) connection: Connection,
    pub(crate) user_agent: Option<HeaderValue>,
    pub(crate) clock: Clock,
    metrics: InformerMetrics,
    /// Caches that name no namespaces are limited to these; empty means all.
    namespaces: Vec<String>,
    kinds: Mutex<HashMap<KindId, Arc<KindState>>>,
    /// The kinds that are cached.
    caches: Mutex<Vec<Arc<KindState>>>,
}

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What tells kinds apart: their Rust types, and of those that are known at run time only, themselves.
#[derive(PartialEq, Eq, Hash)]
enum KindId {
    Type(TypeId),
    Dynamic(DynamicKind),
}

/// What is a handle's own.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) manager: Arc<str>,
    pub(crate) dry_run: bool,
    pub(crate) guard: Option<Arc<dyn Guard>>,
    /// Instead of that of the caches.
    connection: Option<Connection>,
    /// What a [`DynamicObject`](crate::DynamicObject) is.
    pub(crate) dynamic: Option<DynamicKind>,
}

/// Options of a [`Client`].
pub struct ClientBuilder {
    connection: Connection,
    manager: Arc<str>,
    metrics: InformerMetrics,
    user_agent: Option<HeaderValue>,
    clock: Clock,
    namespaces: Vec<String>,
}

impl ClientBuilder {
    /// The name under which fields are owned that are applied or written. Default: `watchkeeper`.
    #[must_use]
    pub fn manager(mut self, name: &str) -> Self {
        self.manager = name.into();
        self
    }

    /// Where the caches count. Default: nowhere.
    #[must_use]
    pub fn metrics(mut self, metrics: &InformerMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Limits caches of kinds that live in namespaces to some of these, unless a cache names its own. An empty list means all.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Who asks, as the server's logs show it. What cannot stand in a header is ignored.
    #[must_use]
    pub fn user_agent(mut self, name: &str) -> Self {
        self.user_agent = HeaderValue::from_str(name).ok();
        self
    }

    /// Tells the time that conditions carry. Default: the machine's clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The client.
    pub fn build(self) -> Client {
        let Self { connection, manager, metrics, user_agent, clock, namespaces } = self;
        let (kinds, caches) = (Mutex::default(), Mutex::default());
        Client {
            shared: Arc::new(Shared { connection, user_agent, clock, metrics, namespaces, kinds, caches }),
            options: Arc::new(Options {
                manager,
                dry_run: false,
                guard: None,
                connection: None,
                dynamic: None,
            }),
        }
    }
}

impl Client {
    /// A client over a connection, with default options.
    pub fn new(connection: impl Into<Connection>) -> Self {
        Self::builder(connection).build()
    }

    /// Options, with their defaults.
    pub fn builder(connection: impl Into<Connection>) -> ClientBuilder {
        ClientBuilder {
            connection: connection.into(),
            manager: "watchkeeper".into(),
            metrics: InformerMetrics::default(),
            user_agent: None,
            clock: Arc::new(SystemTime::now),
            namespaces: Vec::new(),
        }
    }

    /// The connection that writes and live reads go through.
    pub fn connection(&self) -> &Connection {
        self.options.connection.as_ref().unwrap_or(&self.shared.connection)
    }

    /// A handle whose writes and live reads go over another connection to the same cluster, as somebody else or through something that
    /// watches over them. Caches stay those of the first connection.
    #[must_use]
    pub fn over(&self, connection: Connection) -> Self {
        self.with(|options| options.connection = Some(connection))
    }

    /// A handle whose writes are only tried: the server says what would happen and changes nothing.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with(|options| options.dry_run = true)
    }

    /// A handle whose writes own their fields under another name.
    #[must_use]
    pub fn manager(&self, name: &str) -> Self {
        self.with(|options| options.manager = name.into())
    }

    /// A handle that asks a guard right before each write leaves.
    #[must_use]
    pub fn guarded_by(&self, guard: Arc<dyn Guard>) -> Self {
        self.with(|options| options.guard = Some(guard))
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::clone(&self.options);
        change(&mut options);
        Self { shared: Arc::clone(&self.shared), options: Arc::new(options) }
    }

    /// Starts to cache a kind. The same options again give the same informer; other options are an error, since reads
    /// could not tell which of the two is meant.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn declare<K: Kind>(&self, cache: Cache<K>) -> Result<Informer<K>, Error> {
        let kind = self.kind_state::<K>();
        kind.info.check()?;
        let is_limited = kind.info.scope == Scope::Namespaced && cache.namespace_list().is_none();
        let cache = if is_limited { cache.namespaces(self.shared.namespaces.iter().cloned()) } else { cache };
        let identity = cache.identity();
        let selector = cache.selector()?;
        let mut caches = self.shared.caches.lock();
        if let Some(declared) = kind.declared.get() {
            return if declared.identity == identity {
                Ok(declared.informer.typed())
            } else {
                let (kind, declared) = (kind.info.kind.clone(), declared.identity.clone());
                Err(Error::DeclaredDifferently { kind, declared, wanted: identity })
            };
        }
        let informer = cache.start(&kind.info, &self.shared.connection, &self.shared.metrics);
        let declared = Declared {
            identity,
            store: informer.store(),
            informer: informer.clone(),
            projection: cache.projection(&kind.info),
            typed: cache.held() == Policy::Typed,
            partial: cache.is_partial(),
            selector,
            selectors: cache.selectors(),
            namespaces: cache.namespace_list(),
            indexes: Mutex::default(),
        };
        // Nobody else can have set it: the lock on the caches is held.
        let _ = kind.declared.set(declared);
        caches.push(Arc::clone(&kind));
        Ok(informer.typed())
    }

    /// The informer of a declared kind.
    pub fn informer<K: Kind>(&self) -> Result<Informer<K>, Error> {
        Ok(self.kind_state::<K>().declared()?.informer.typed())
    }

    /// Waits until all caches declared so far are complete.
    pub async fn synced(&self) -> Result<(), Error> {
        let caches = self.shared.caches.lock().clone();
        for kind in caches {
            kind.synced().await?;
        }
        Ok(())
    }

    /// The object under a key, from the cache and what was written through this client; `None` if there is none.
    ///
    /// Goes to the API only if a write left a doubt about this very object.
    pub async fn get<K: Kind>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        Ok(self.get_any(&self.kind_state::<K>(), key).await?.map(typed))
    }

    pub(crate) async fn get_any(&self, kind: &KindState, key: &Key) -> Result<Option<AnyValue>, Error> {
        let seen = match kind.read(key)? {
            ReadState::Found(seen) => Some(seen),
            ReadState::Absent => None,
            ReadState::Live => self.resolve(kind, key).await?,
        };
        seen.map(|seen| seen.value(&kind.info)).transpose()
    }

    /// Objects of a kind, from the cache and what was written through this client. Narrow it down, then await it.
    pub fn list<K: Kind>(&self) -> List<'_, K> {
        List::new(self, false)
    }

    /// The same reads, straight from the API.
    pub fn live(&self) -> Live<'_> {
        Live { client: self }
    }

    /// Whether this state of an object was written through this client lately: its own echo, not news. The memory is
    /// bounded; the answer for what it no longer knows is `false`.
    pub fn wrote<K: Kind>(&self, key: &Key, version: &Version) -> bool {
        self.kind_state::<K>().recent.lock().contains(key, version)
    }

    /// Waits until the cache itself shows everything that was written of the kind through this client so far, so that
    /// informers and indexes have it, too. Writes that the cache's field selector hides are waited for until the watch has
    /// passed them, which on a quiet kind takes until the server's next bookmark.
    pub async fn barrier<K: Kind>(&self) -> Result<(), Error> {
        self.caught_up(&self.kind_state::<K>()).await
    }

    async fn caught_up(&self, kind: &KindState) -> Result<(), Error> {
        let declared = kind.declared()?;
        kind.synced().await?;
        let (notes, floor) = kind.all_notes(declared);
        for (key, _) in &notes {
            // A doubt has no version to wait for; asking the API gives it one.
            if matches!(kind.read(key)?, ReadState::Live) {
                self.resolve(kind, key).await?;
            }
        }
        let keys: Vec<Key> = notes.into_iter().map(|(key, _)| key).collect();
        let notes: Vec<_> =
            kind.all_notes(declared).0.into_iter().filter(|(key, _)| keys.contains(key)).collect();
        let reached = declared.store.until(|_| {
            notes.iter().all(|(key, note)| kind.is_obsolete(declared, key, note))
                && floor.as_ref().is_none_or(|_| kind.all_notes(declared).1.is_none())
        });
        if reached.await {
            Ok(())
        } else {
            Err(Error::NotSynced { kind: kind.info.kind.clone(), reason: None })
        }
    }

    /// The state of a kind: its cache and what was written of it.
    pub(crate) fn kind_state<K: Kind>(&self) -> Arc<KindState> {
        self.kind_state_as(TypeId::of::<K>(), KindInfo::of::<K>)
    }

    fn kind_state_as(&self, id: TypeId, info: fn() -> KindInfo) -> Arc<KindState> {
        let dynamic = self.options.dynamic.as_ref().filter(|_| id == TypeId::of::<DynamicObject>());
        let id = match dynamic {
            Some(dynamic) => KindId::Dynamic(dynamic.clone()),
            None => KindId::Type(id),
        };
        let info = || dynamic.map_or_else(info, KindInfo::dynamic);
        let mut kinds = self.shared.kinds.lock();
        Arc::clone(kinds.entry(id).or_insert_with(|| Arc::new(KindState::new(info()))))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options { manager, dry_run, guard, .. } = &*self.options;
        f.debug_struct("Client")
            .field("manager", manager)
            .field("dry_run", dry_run)
            .field("guarded", &guard.is_some())
            .finish_non_exhaustive()
    }
}
