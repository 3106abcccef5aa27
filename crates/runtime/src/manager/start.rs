use std::collections::{BTreeMap, HashSet};
#[cfg(all(feature = "server", unix))]
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryFutureExt;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_informer::InformerSet;
use watchkeeper_sources::kubernetes::{ConnectError, Connection};
use watchkeeper_supervision::Supervisor;

use crate::closed_world::declared_only;
use crate::clusters::Clusters;
use crate::controller;
use crate::degradation::Watched;
use crate::events::Events;
use crate::health::{Check, Checks};
use crate::leadership::LeadershipWatch;
use crate::manager::access::Access;
use crate::manager::running::Running;
use crate::manager::target::Target;
use crate::manager::tasks::Task;
use crate::manager::{Environment, Manager};
use crate::metrics::Metrics;
use crate::rest::counted;
#[cfg(all(feature = "server", unix))]
use crate::server::{Pages, Server};

/// How long to wait for definitions to be in force before what they define is watched.
const DEFINITIONS_TIMEOUT: Duration = Duration::from_secs(5);

/// The error of a manager that cannot start. All of these are permanent; what may pass, such as a server that does not
/// answer yet, is waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no usable kubeconfig.
    #[error("{0}")]
    NoCluster(String),
    /// The address for probes and metrics cannot be bound.
    #[cfg(all(feature = "server", unix))]
    #[error("cannot serve probes and metrics on {address}: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The error.
        error: std::io::Error,
    },
    /// Two controllers have the same name.
    #[error(
        "there are two controllers called {0:?}: give one of them another name with ControllerBuilder::name"
    )]
    SameName(String),
    /// A controller works on a cluster that the manager does not know.
    #[error(
        "controller {controller:?} is for cluster {cluster:?}, which is unknown: add it with Manager::cluster"
    )]
    UnknownCluster {
        /// The controller.
        controller: String,
        /// The cluster.
        cluster: String,
    },
    /// A controller cannot have one of its watches.
    #[error("controller {controller:?}: {error}")]
    Watch {
        /// The controller.
        controller: String,
        /// The error.
        error: watchkeeper_client::Error,
    },
    /// A cache cannot be declared.
    #[error("{0}")]
    Cache(watchkeeper_client::Error),
    /// The command line asks for something else than to run.
    #[error(
        "the command line asks for a description or a check: Manager::run and Manager::run_until do that, Manager::start does not"
    )]
    NotToRun,
    /// Webhooks cannot be served.
    #[error("{0}")]
    Webhooks(String),
    /// The times of the election do not fit together.
    #[cfg(feature = "election")]
    #[error("leader election: {0}")]
    Election(#[from] watchkeeper_election::InvalidOptions),
}

impl From<ConnectError> for StartError {
    fn from(error: ConnectError) -> Self {
        Self::NoCluster(error.to_string())
    }
}

impl Manager {
    /// Starts everything and returns. Waits a few seconds at the most for definitions that it installs, and neither for caches nor
    /// for the lead: see [`Running::ready`].
    ///
    /// ```no_run
    /// # use watchkeeper_runtime::{Manager, Result};
    /// # async fn example(manager: Manager) -> Result<()> {
    /// let running = manager.start().await?;
    /// running.ready().await;
    /// println!("leads: {}", running.is_leading());
    /// running.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg_attr(not(all(feature = "webhooks", unix)), allow(unused_mut, reason = "webhooks add tasks"))]
    pub async fn start(mut self) -> Result<Running, StartError> {
        if self.about.instead.is_some() {
            return Err(StartError::NotToRun);
        }
        let mut names = HashSet::new();
        if let Some(twice) = self.controllers.iter().find(|controller| !names.insert(controller.name.clone()))
        {
            return Err(StartError::SameName(twice.name.clone()));
        }
        let (rights, needed) = (Arc::new(self.rights()), self.needed());
        let metrics = Metrics::register(std::mem::take(&mut self.registry));
        let target = std::mem::replace(&mut self.target, Target::Infer { kubeconfig: None, context: None });
        let connection = counted(&target.connect().await?, "own", &metrics.requests);
        #[cfg(all(feature = "webhooks", unix))]
        self.serve_webhooks(&connection, &metrics)?;
        let clusters = connect(&self.name, &connection, &self.clusters, &self.namespaces, &metrics);
        let declared = clusters.map(|client| declared_only(client, &rights));
        let stopping = CancellationToken::new();
        let (live, ready) = checks(self.checks, &stopping, &metrics.supervisor);
        #[cfg(all(feature = "server", unix))]
        let server = serve(self.address, &live, &ready, &metrics)?;

        let guarded = match &self.election {
            Some(lease) => declared.map(|client| client.guarded_by(lease.guard())),
            None => declared.clone(),
        };
        let (leadership_sender, leadership) = LeadershipWatch::channel(self.election.is_none().then_some(0));
        let (always_sender, always) = LeadershipWatch::channel(Some(0));

        let mut tasks = JoinSet::new();
        let stop_tasks = CancellationToken::new();
        let run = |tasks: &mut JoinSet<_>, task: Task| {
            let (client, guarded) = (declared.own().clone(), guarded.own().clone());
            let (ready, name) = (ready.clone(), format!("task {}", task.name));
            let running =
                task.run(client, guarded, leadership.clone(), stop_tasks.clone(), metrics.supervisor.clone());
            // Not everybody waits for the tasks to end.
            tasks.spawn(running.inspect_err(move |error| {
                let error = error.to_string();
                tracing::error!(%error, "manager task ended unexpectedly");
                ready.set(name, Arc::new(move || Err(error.clone())));
            }));
        };
        for task in self.before {
            run(&mut tasks, task);
        }
        if self.about.checks_access {
            let asked = Access::new(Arc::clone(&rights), needed, connection.default_namespace());
            run(&mut tasks, asked.task(&ready));
        }
        // What is not served yet cannot be watched; but a server that takes long is no reason not to start.
        let _ = timeout(DEFINITIONS_TIMEOUT, futures_util::future::join_all(self.definitions)).await;

        let mut watched = Watched::new(ready.clone(), metrics.clone());
        let mut kept = Vec::new();
        for declare in self.caches {
            let cache = declare(&clusters).map_err(StartError::Cache)?;
            watched.add(&cache.name, &cache.status);
            kept.push(cache);
        }
        let events = Events::start(connection.clone(), &self.name, &metrics.supervisor);
        let environment = Environment {
            clusters: declared.clone(),
            guarded: guarded.clone(),
            informers: InformerSet::new(&metrics.informers),
            metrics: metrics.clone(),
            recorder: events.recorder(),
            leadership: leadership.clone(),
            always,
        };
        let mut controllers = Vec::new();
        for controller in self.controllers {
            let running = (controller.start)(&environment)?;
            for (name, status) in &running.sources {
                watched.add(name, status);
            }
            watch_over(&running, &live);
            controllers.push(running);
        }

        // Without an election, whoever waits for the lead has it for as long as this is kept.
        let (election, unelected) = match self.election {
            Some(lease) => {
                let election = lease.start(&self.name, connection, leadership_sender, &ready, &metrics)?;
                (Some(election), None)
            }
            None => (None, Some(leadership_sender)),
        };
        for task in self.tasks {
            run(&mut tasks, task);
        }
        tracing::info!(manager = %self.name, controllers = controllers.len(), "started");
        Ok(Running {
            name: self.name,
            clusters,
            controllers,
            tasks,
            stop_tasks,
            stopping,
            election,
            leadership,
            events: Some(events),
            ready,
            metrics,
            #[cfg(all(feature = "server", unix))]
            server,
            #[cfg(all(feature = "webhooks", unix))]
            webhook_address: self.webhook_address,
            grace: self.grace,
            webhook_stop: self.webhook_stop,
            _watched: watched,
            _kept: kept,
            _always: (always_sender, unelected),
        })
    }
}

/// Clients of all clusters, counted and with caches of their own.
fn connect(
    name: &str,
    own: &Connection,
    others: &BTreeMap<Arc<str>, Connection>,
    namespaces: &[String],
    metrics: &Metrics,
) -> Clusters {
    let builder = |connection| Client::builder(connection).manager(name).metrics(&metrics.informers);
    let client = |connection| builder(connection).build();
    let others = others
        .iter()
        .map(|(name, connection)| (Arc::clone(name), client(counted(connection, name, &metrics.requests))));
    Clusters::new(builder(own.clone()).namespaces(namespaces.iter().cloned()).build(), others.collect())
}

/// What liveness and readiness ask from the beginning.
fn checks(
    own: Vec<(String, Check)>,
    stopping: &CancellationToken,
    supervisor: &Supervisor,
) -> (Checks, Checks) {
    let (live, ready) = (Checks::default(), Checks::default());
    let stops = stopping.clone();
    let running = move || if stops.is_cancelled() { Err("stopping".into()) } else { Ok(()) };
    ready.set("running", Arc::new(running));
    let supervisor = supervisor.clone();
    ready.set("tasks", Arc::new(move || recovered(&supervisor)));
    live.set("ping", Arc::new(|| Ok(())));
    for (name, check) in own {
        ready.set(name, check);
    }
    (live, ready)
}

/// Names the background tasks that panic again and again.
fn recovered(supervisor: &Supervisor) -> Result<(), String> {
    let failing = supervisor.failing();
    if failing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = failing.iter().map(|name| &**name).collect();
    Err(format!("panicked again and again: {}", names.join(", ")))
}

#[cfg(all(feature = "server", unix))]
fn serve(
    address: Option<SocketAddr>,
    live: &Checks,
    ready: &Checks,
    metrics: &Metrics,
) -> Result<Option<Server>, StartError> {
    let Some(address) = address else { return Ok(None) };
    let pages = Pages { live: live.clone(), ready: ready.clone(), metrics: metrics.clone() };
    let server = Server::start(address, pages);
    server.map(Some).map_err(|error| StartError::Address { address, error })
}

/// Says in the liveness probe if a reconcile is stuck: it was to be dropped after its time, and cannot be while it does not
/// await.
fn watch_over(controller: &controller::Running, live: &Checks) {
    let Some(timeout) = controller.timeout else { return };
    let longest = Arc::clone(&controller.longest);
    let stuck = move || match longest() {
        Some(long) if long > timeout.saturating_mul(2) => {
            Err(format!("a reconcile has been running for {long:?}"))
        }
        _ => Ok(()),
    };
    live.set(format!("controller {}", controller.name), Arc::new(stuck));
}
