use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderValue;
use parking_lot::Mutex;
use watchkeeper_informer::InformerMetrics;
use watchkeeper_sources::kubernetes::Connection;

use crate::error::Error;
use crate::guard::Guard;
use crate::kind::dynamic::{DynamicKind, DynamicObject};
use crate::kind::{Kind, KindInfo, key_of};
use crate::state::KindState;

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
    pub(crate) metrics: InformerMetrics,
    /// Caches that name no namespaces are limited to these; empty means all.
    pub(crate) namespaces: Vec<String>,
    kinds: Mutex<HashMap<KindId, Arc<KindState>>>,
    /// The kinds that are cached.
    pub(crate) caches: Mutex<Vec<Arc<KindState>>>,
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
    /// Sets the field manager of applies and writes. Default: `watchkeeper`.
    #[must_use]
    pub fn manager(mut self, name: &str) -> Self {
        self.manager = name.into();
        self
    }

    /// Sets the metrics of the caches. Default: none.
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

    /// Sets the User-Agent, which the server logs. A text that is no header value is ignored.
    #[must_use]
    pub fn user_agent(mut self, name: &str) -> Self {
        self.user_agent = HeaderValue::from_str(name).ok();
        self
    }

    /// Sets the clock of the times in conditions. Default: the system clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes the client.
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

    /// Options of a client, with their defaults.
    ///
    /// ```no_run
    /// # use watchkeeper_client::{Client, Connection};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder(Connection::infer().await?)
    ///     .manager("shop-operator") // the field manager of applies
    ///     .namespaces(["shop", "stock"]) // the only ones that caches watch
    ///     .build();
    /// # Ok(()) }
    /// ```
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

    /// A handle whose writes are dry runs: the server answers what would happen and changes nothing.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with(|options| options.dry_run = true)
    }

    /// A handle with another field manager.
    #[must_use]
    pub fn manager(&self, name: &str) -> Self {
        self.with(|options| options.manager = name.into())
    }

    /// A handle whose writes are refused unless the guard allows them, right before each is sent.
    #[must_use]
    pub fn guarded_by(&self, guard: Arc<dyn Guard>) -> Self {
        self.with(|options| options.guard = Some(guard))
    }

    /// A handle for which [`DynamicObject`] means objects of this kind, in everything that it reads and writes. Caches and
    /// what was written are shared with the other handles, kind by kind.
    ///
    /// ```no_run
    /// # use watchkeeper_client::{Cache, Client, DynamicKind, DynamicObject, Error};
    /// # use watchkeeper_core::Key;
    /// # async fn example(client: &Client) -> Result<(), Error> {
    /// let certificates = DynamicKind::namespaced("cert-manager.io", "v1", "Certificate", "certificates");
    /// let client = client.dynamic(&certificates);
    /// client.declare(Cache::of::<DynamicObject>())?;
    /// client.synced().await?;
    /// if let Some(found) = client.get::<DynamicObject>(&Key::new(Some("shop"), "web")).await? {
    ///     println!("{:?}", found.get("/spec/secretName"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dynamic(&self, kind: &DynamicKind) -> Self {
        self.with(|options| options.dynamic = Some(kind.clone()))
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::clone(&self.options);
        change(&mut options);
        Self { shared: Arc::clone(&self.shared), options: Arc::new(options) }
    }

    /// The state of a kind: its cache and what was written of it.
    pub(crate) fn kind_state<K: Kind>(&self) -> Arc<KindState> {
        self.kind_state_as(TypeId::of::<K>(), KindInfo::of::<K>)
    }

    /// The state of the kind that an object is of. A [`DynamicObject`] says itself which kind that is: the one of this handle, or
    /// another that is in use with this client. One that is neither is refused, since it would be sent to the path of another kind.
    pub(crate) fn kind_state_of<K: Kind>(&self, object: &K) -> Result<Arc<KindState>, Error> {
        let own = self.kind_state::<K>();
        let Some(object) = (object as &dyn Any).downcast_ref::<DynamicObject>() else { return Ok(own) };
        let names_no_kind = object.api_version.is_empty() && object.kind.is_empty();
        let is_of = |info: &KindInfo| info.api_version == object.api_version && info.kind == object.kind;
        if names_no_kind || is_of(&own.info) {
            return Ok(own);
        }
        let kinds = self.shared.kinds.lock();
        let known = kinds.iter().find(|(id, state)| matches!(id, KindId::Dynamic(_)) && is_of(&state.info));
        known.map(|(_, state)| Arc::clone(state)).ok_or_else(|| Error::Incomplete {
            object: format!("{} {} {}", object.api_version, object.kind, key_of(object)),
            missing: "this client does not know where that kind is: use Client::dynamic, and in a controller owns_dynamic",
        })
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
