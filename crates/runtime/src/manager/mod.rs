//! The manager: everything that a program of controllers needs around them.

mod access;
#[cfg(feature = "args")]
mod args;
mod describe;
#[cfg(feature = "election")]
mod election;
mod install;
#[cfg(feature = "election")]
mod lease;
#[cfg(not(feature = "election"))]
#[path = "no_lease.rs"]
mod lease;
mod running;
mod start;
mod target;
mod tasks;
#[cfg(all(feature = "webhooks", unix))]
mod webhooks;

use std::collections::BTreeMap;
use std::future::Future;
#[cfg(all(feature = "server", unix))]
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::{Cache, Client, DynamicKind, DynamicObject, Kind, StaticKind};
use watchkeeper_description::{Resource, Right};
use watchkeeper_informer::InformerSet;
use watchkeeper_sources::kubernetes::Connection;

#[cfg(feature = "args")]
pub use args::Args;
pub use running::{Observer, Running, Stopped};
pub use start::StartError;

use crate::clusters::Clusters;
use crate::controller::Controller;
use crate::declared::{dynamic_resource, resource};
use crate::degradation::Kept;
use crate::error::Result;
use crate::events::Recorder;
use crate::health::Check;
use crate::leadership::LeadershipWatch;
use crate::metrics::Metrics;
use lease::Lease;
use target::Target;
use tasks::Task;

/// Runs controllers as a program: connects, fills caches, elects a leader, serves probes and metrics, stops in order.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use watchkeeper_runtime::{Action, Context, Controller, Manager, Result};
/// # async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
/// # async fn example() -> Result<()> {
/// Manager::from_environment("maps")
///     .namespaces(["shop"])
///     .controller(Controller::of::<ConfigMap>().reconcile(reconcile))
///     .run()
///     .await
/// # }
/// ```
///
/// # Start
///
/// In this order: the server of probes and metrics; webhooks, and tasks that have to run before anything is listed
/// ([`before_caches`](Self::before_caches)); the caches of all kinds that are declared or watched; the election; the
/// workers of each controller, as soon as what *it* watches has been listed and this process leads. A candidate that does
/// not lead is warm: its caches are full and its queues filled, so that it works the moment it leads.
///
/// A kind that is missing or denied holds up the controllers that watch it, and nobody else. It is asked for again every few
/// seconds; `/readyz` names it, `watchkeeper_source_degraded` counts it, the log says so once.
///
/// # Stop
///
/// On SIGTERM or SIGINT ([`run`](Self::run)) or [`Running::stop`]: readiness says so, no new reconcile begins, running ones are
/// told and have the [grace](Self::grace) to end, then are dropped; tasks end within what is left of the grace; webhooks, where there are some,
/// have 15 s of their own after the reconciles; pending events are written; only then is the lease released. A second signal drops everything at once, and [`run`](Self::run) returns.
///
/// # While another leads
///
/// Writes of controllers that need the lead are refused by their client, before they are sent, from the moment on at which
/// somebody else might lead. When the lead is lost, running reconciles are dropped; when it is won again, work goes on.
///
/// # Declarations
///
/// A manager knows what its program asks of the cluster, and sends nothing else: a request that was not declared is refused before it
/// is sent, with the line to add. So the roles that the program needs can be [derived](Self::description), and are as small as they can
/// be. One request needs no declaration: with webhooks, an API server at a loopback address is asked where it is. Most of it is implied:
///
/// | declared | implies |
/// |---|---|
/// | [`Controller::of`] of a custom resource that is [installed](Self::install) | patch of its `status`, if its definition has one |
/// | [`Controller::of`], [`watches`](crate::ControllerBuilder::watches), [`reads`](crate::ControllerBuilder::reads), [`cache`](Self::cache) | get, list, watch; of a cache that is limited to namespaces, and everything else about its kind, in those only |
/// | [`owns`](crate::ControllerBuilder::owns) | create, patch, delete of the children; update of `finalizers` of the owner |
/// | [`finalizer`](crate::ControllerBuilder::finalizer), [`cleanup`](crate::ControllerBuilder::cleanup) | patch of the controller's kind |
/// | [`install`](Self::install) | the definition, by its name |
/// | election | the Lease by its name |
/// | `webhook` | its configurations, the Secret with its authorities, definitions that it converts, each by its name |
/// | events | create, patch of events |
///
/// The rest is declared with [`writes`](crate::ControllerBuilder::writes), [`writes_status`](crate::ControllerBuilder::writes_status),
/// [`uses_subresource`](crate::ControllerBuilder::uses_subresource) and [`reads_live`](crate::ControllerBuilder::reads_live), on the controller or, for
/// [tasks](Self::task), on the manager. Each has a twin for kinds that are known at run time only, with `_dynamic` at the end of its name.
/// [`allow_undeclared`](Self::allow_undeclared) turns that off.
pub struct Manager {
    name: String,
    target: Target,
    clusters: BTreeMap<Arc<str>, Connection>,
    caches: Vec<Declare>,
    controllers: Vec<Controller>,
    before: Vec<Task>,
    /// Each resolves when a definition was applied, or could not be at first.
    definitions: Vec<oneshot::Receiver<()>>,
    tasks: Vec<Task>,
    checks: Vec<(String, Check)>,
    election: Option<Lease>,
    #[cfg(all(feature = "server", unix))]
    address: Option<SocketAddr>,
    grace: Duration,
    registry: Registry,
    /// Watched are these only; empty means all.
    namespaces: Vec<String>,
    about: About,
    #[cfg(all(feature = "webhooks", unix))]
    webhooks: webhooks::Webhooks,
    /// Where webhooks are served, once they are.
    #[cfg(all(feature = "webhooks", unix))]
    webhook_address: Option<std::net::SocketAddr>,
    /// How long webhooks take to stop.
    webhook_stop: Duration,
}

/// What a program says about itself besides its controllers.
#[derive(Default)]
struct About {
    version: Option<String>,
    text: Option<String>,
    /// The definitions that it brings along.
    definitions: Vec<Value>,
    caches: Vec<watchkeeper_description::Cache>,
    /// What its tasks ask of the cluster.
    rights: Vec<Right>,
    allow_undeclared: bool,
    /// Whether its command line is ours.
    has_options: bool,
    /// Whether it looks at the start whether it may do what it declares.
    checks_access: bool,
    /// What the command line asks for instead of running.
    instead: Option<Instead>,
    keeps_definitions: bool,
}

/// What a program does instead of running its controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "args"), allow(dead_code, reason = "no command line asks for them"))]
enum Instead {
    Describe,
    CheckAccess,
}

type Declare = Box<dyn FnOnce(&Clusters) -> Result<Kept, watchkeeper_client::Error> + Send>;

impl Manager {
    /// A manager for the cluster of this connection. The name is that of the program: it is the field manager of what is
    /// applied, the reporter of events and the default name of the lease.
    pub fn new(name: impl Into<String>, connection: impl Into<Connection>) -> Self {
        Self::with(name.into(), Target::Connected(connection.into()))
    }

    /// A manager for the cluster of the environment: `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    /// The connection is made when it is started.
    pub fn from_environment(name: impl Into<String>) -> Self {
        Self::with(name.into(), Target::Infer { kubeconfig: None, context: None })
    }

    fn with(name: String, target: Target) -> Self {
        Self {
            name,
            target,
            clusters: BTreeMap::new(),
            caches: Vec::new(),
            controllers: Vec::new(),
            before: Vec::new(),
            definitions: Vec::new(),
            tasks: Vec::new(),
            checks: Vec::new(),
            election: None,
            #[cfg(all(feature = "server", unix))]
            address: None,
            grace: Duration::from_secs(30),
            registry: Registry::default(),
            namespaces: Vec::new(),
            about: About::default(),
            #[cfg(all(feature = "webhooks", unix))]
            webhooks: webhooks::Webhooks::default(),
            #[cfg(all(feature = "webhooks", unix))]
            webhook_address: None,
            webhook_stop: Duration::ZERO,
        }
    }

    /// Adds a controller.
    #[must_use]
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Caches a kind, in the manager's own cluster, with these options instead of the default ones. Every controller that watches or reads
    /// the kind shares this cache.
    #[must_use]
    pub fn cache<K: StaticKind>(self, cache: Cache<K>) -> Self {
        self.cache_as(resource::<K>(), cache, Client::clone)
    }

    /// As [`cache`](Self::cache), for a kind that is known at run time only. It is read with a [client of the kind](Client::dynamic).
    ///
    /// ```no_run
    /// # use watchkeeper_client::{Cache, DynamicKind, DynamicObject};
    /// # use watchkeeper_runtime::Manager;
    /// let certificates = DynamicKind::namespaced("cert-manager.io", "v1", "Certificate", "certificates");
    /// let manager = Manager::from_environment("shop")
    ///     .cache_dynamic(&certificates, Cache::of::<DynamicObject>().labels("shop"))
    ///     .task("count", async move |client, _stop| {
    ///         client.synced().await?;
    ///         println!("{}", client.dynamic(&certificates).list::<DynamicObject>().await?.len());
    ///         Ok(())
    ///     });
    /// ```
    #[must_use]
    pub fn cache_dynamic(self, kind: &DynamicKind, cache: Cache<DynamicObject>) -> Self {
        let resource = dynamic_resource(kind);
        let kind = kind.clone();
        self.cache_as(resource, cache, move |client| client.dynamic(&kind))
    }

    fn cache_as<K: Kind>(
        mut self,
        resource: Resource,
        cache: Cache<K>,
        handle: impl FnOnce(&Client) -> Client + Send + 'static,
    ) -> Self {
        let namespaces = cache.watched_namespaces();
        self.about.caches.push(watchkeeper_description::Cache { resource, namespaces });
        self.caches.push(Box::new(move |clusters| {
            handle(clusters.own()).declare(cache).map(|cache| Kept::new(cache.untyped()))
        }));
        self
    }

    /// Adds another cluster, for controllers [in clusters](crate::ControllerBuilder::in_clusters) and for
    /// [`Context::cluster`](crate::Context::cluster).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watchkeeper_runtime::{Action, Context, Controller, Manager, Result};
    /// # use watchkeeper_sources::kubernetes::Connection;
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context<ConfigMap>) -> Result<Action> {
    ///     // The client is that of the cluster that the map is in.
    ///     let others = cx.client().list::<ConfigMap>().await?;
    ///     println!("{:?}, one of {}", map.metadata.name, others.len());
    ///     Ok(Action::done())
    /// }
    ///
    /// # async fn example(edge: Connection) -> Result<()> {
    /// Manager::from_environment("maps")
    ///     .cluster("edge", edge)
    ///     .controller(Controller::of::<ConfigMap>().in_clusters(["edge"]).reconcile(reconcile))
    ///     .run()
    ///     .await
    /// # }
    /// ```
    #[must_use]
    pub fn cluster(mut self, name: impl Into<Arc<str>>, connection: impl Into<Connection>) -> Self {
        self.clusters.insert(name.into(), connection.into());
        self
    }

    /// Runs a task of the user's own beside the controllers, from after the caches are started until the stop, on every
    /// replica. The task is given a client and should end when the token is cancelled; a task that fails ends the manager with its error.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watchkeeper_runtime::Manager;
    /// let manager = Manager::from_environment("counter").reads_live::<Pod>().task("count", async |client, stop| {
    ///     println!("{} pods", client.live().list::<Pod>().await?.len());
    ///     stop.cancelled().await;
    ///     Ok(())
    /// });
    /// ```
    #[must_use]
    pub fn task<F, R>(mut self, name: impl Into<String>, task: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> R + Send + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        self.tasks.push(Task::once(name.into(), task));
        self
    }

    /// As [`task`](Self::task), but only while this process leads: the task is started when the lead is won, and its token is cancelled when
    /// the lead is lost. Each term runs the task anew.
    #[must_use]
    pub fn leader_task<F, R>(mut self, name: impl Into<String>, task: F) -> Self
    where
        F: Fn(Client, CancellationToken) -> R + Send + Sync + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        self.tasks.push(Task::while_leading(name.into(), task));
        self
    }

    /// Runs a task that has to serve before anything is listed, such as a conversion webhook of an own kind.
    #[must_use]
    pub fn before_caches<F, R>(mut self, name: impl Into<String>, task: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> R + Send + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        self.before.push(Task::once(name.into(), task));
        self
    }

    /// Adds a check to `/readyz`. `Err` is the reason why the program is not ready.
    #[must_use]
    pub fn ready_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((name.into(), Arc::new(check)));
        self
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` here. Default: nowhere. Port 0 takes a free one;
    /// [`Running::address`] tells which.
    #[cfg(all(feature = "server", unix))]
    #[must_use]
    pub fn serve(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Sets the time that running reconciles may take to end when the program stops. Default: 30 s, as pods have. Webhooks take up to 15 s
    /// more; pods that `watchkeeper generate` describes have that time.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Watches these namespaces only, in the manager's own cluster: all caches of kinds that live in namespaces are limited to them, unless
    /// [`cache`](Self::cache) says otherwise, and so are the rights that the program asks for. Objects elsewhere do not exist for it. An empty
    /// list means all; `--namespaces` of the command line says the same.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a registry with metrics of the user's own, which are served with those of the manager.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Starts, and runs until a signal asks for the end or a task fails. See [`Running::run`].
    ///
    /// If the command line asks for it, prints the [description](Self::description) instead (`describe`), or whether the cluster allows
    /// what is declared (`check-access`).
    pub async fn run(mut self) -> Result<()> {
        match self.about.instead.take() {
            Some(instead) => self.do_instead(instead).await,
            None => {
                self.about.checks_access = true;
                self.start().await?.run().await
            }
        }
    }

    /// Starts, and runs until the future resolves or a task fails. Signals are not listened to.
    ///
    /// If the command line asks for something else, that is done as by [`run`](Self::run), and the future is dropped.
    ///
    /// ```no_run
    /// # use watchkeeper_runtime::{Manager, Result};
    /// # async fn example(manager: Manager, finished: tokio::sync::oneshot::Receiver<()>) -> Result<()> {
    /// manager.run_until(async { drop(finished.await) }).await
    /// # }
    /// ```
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<()> {
        match self.about.instead.take() {
            Some(instead) => self.do_instead(instead).await,
            None => {
                self.about.checks_access = true;
                self.start().await?.run_until(shutdown).await
            }
        }
    }

    async fn do_instead(self, instead: Instead) -> Result<()> {
        match instead {
            Instead::Describe => describe::print(&self.description()),
            Instead::CheckAccess => self.check_access().await,
        }
    }
}

/// What a controller finds around it when it starts.
pub(crate) struct Environment {
    /// Clients whose writes are not held up by anything.
    pub(crate) clusters: Clusters,
    /// Clients that write only while this process leads.
    pub(crate) guarded: Clusters,
    /// The informers of sources that are in no cluster.
    pub(crate) informers: InformerSet,
    pub(crate) metrics: Metrics,
    pub(crate) recorder: Recorder,
    /// Whether this process leads.
    pub(crate) leadership: LeadershipWatch,
    /// For controllers that do not mind who leads.
    pub(crate) always: LeadershipWatch,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager")
            .field("name", &self.name)
            .field("controllers", &self.controllers)
            .finish_non_exhaustive()
    }
}
