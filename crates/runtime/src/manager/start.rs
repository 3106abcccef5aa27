use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_election::{Election, InvalidOptions};
use watchkeeper_events::Events;
use watchkeeper_informer::InformerSet;

use crate::clusters::Clusters;
use crate::controller;
use crate::degradation::Watched;
use crate::health::Checks;
use crate::lead::Lead;
use crate::manager::connection::NoCluster;
use crate::manager::lead::{Standing, Term, follow};
use crate::manager::running::{Led, Running};
use crate::manager::{Environment, Manager};
use crate::metrics::Metrics;
use crate::rest::counted;
use crate::server::{Pages, Server};

/// Why a manager does not start. All of these are mistakes that waiting would not mend; what may mend itself, such as a
/// server that does not answer yet, is waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no kubeconfig, or it says nothing that helps.
    #[error("{0}")]
    NoCluster(String),
    /// The address for probes and metrics cannot be had.
    #[error("cannot serve probes and metrics on {address}: {error}")]
    Address {
        /// Which address.
        address: SocketAddr,
        /// Why not.
        error: std::io::Error,
    },
    /// Two controllers have the same name.
    #[error("there are two controllers called {0:?}: give one of them another name with Builder::name")]
    SameName(String),
    /// A controller works on a cluster that the manager does not know.
    #[error(
        "controller {controller:?} is for cluster {cluster:?}, which is unknown: add it with Manager::cluster"
    )]
    UnknownCluster {
        /// Which controller.
        controller: String,
        /// Which cluster.
        cluster: String,
    },
    /// What a controller wants to watch cannot be watched as it was asked for.
    #[error("controller {controller:?}: {error}")]
    Watch {
        /// Which controller.
        controller: String,
        /// Why not.
        error: watchkeeper_client::Error,
    },
    /// A cache cannot be had as it was asked for.
    #[error("{0}")]
    Cache(watchkeeper_client::Error),
    /// The times of the election do not fit together.
    #[error("leader election: {0}")]
    Election(#[from] InvalidOptions),
}

impl From<NoCluster> for StartError {
    fn from(error: NoCluster) -> Self {
        Self::NoCluster(error.to_string())
    }
}

impl Manager {
    /// Starts everything and returns. Does not wait for caches, nor for the lead: see [`Running::ready`].
    pub async fn start(self) -> Result<Running, StartError> {
        let mut names = HashSet::new();
        if let Some(twice) = self.controllers.iter().find(|controller| !names.insert(controller.name.clone()))
        {
            return Err(StartError::SameName(twice.name.clone()));
        }
        let metrics = Metrics::register(self.registry);
        let transport = counted(self.connection.open().await?, "own", &metrics.requests);
        let connect = |transport: &kube_client::Client| {
            Client::builder(transport.clone()).manager(&self.name).metrics(&metrics.informers).build()
        };
        let others = self.clusters.iter().map(|(name, client)| {
            (Arc::clone(name), connect(&counted(client.clone(), name, &metrics.requests)))
        });
        let others = others.collect();
        let clusters = Clusters::new(connect(&transport), others);

        let (live, ready) = (Checks::default(), Checks::default());
        let stopping = CancellationToken::new();
        let stops = stopping.clone();
        ready.set(
            "running",
            Arc::new(move || if stops.is_cancelled() { Err("stopping".into()) } else { Ok(()) }),
        );
        live.set("ping", Arc::new(|| Ok(())));
        for (name, check) in self.checks {
            ready.set(name, check);
        }
        let server = match self.address {
            Some(address) => {
                let pages = Pages { live: live.clone(), ready: ready.clone(), metrics: metrics.clone() };
                let started = Server::start(address, pages).await;
                Some(started.map_err(|error| StartError::Address { address, error })?)
            }
            None => None,
        };

        let term = Term::default();
        let guarded = match self.election {
            Some(_) => clusters.map(|client| {
                let term = term.clone();
                client.guarded_by(Arc::new(move || term.is_held()))
            }),
            None => clusters.clone(),
        };
        let (lead, leads) = Lead::channel(self.election.is_none().then_some(0));
        let (always_sender, always) = Lead::channel(Some(0));

        let mut tasks = JoinSet::new();
        let stop_tasks = CancellationToken::new();
        let run = |tasks: &mut JoinSet<_>, task: crate::manager::tasks::Task| {
            let (client, guarded) = (clusters.own().clone(), guarded.own().clone());
            tasks.spawn(task.run(client, guarded, leads.clone(), stop_tasks.clone()));
        };
        for task in self.before {
            run(&mut tasks, task);
        }

        let mut watched = Watched::new(ready.clone(), metrics.clone());
        let mut kept = Vec::new();
        for declare in self.caches {
            let cache = declare(&clusters).map_err(StartError::Cache)?;
            watched.add(&cache.name, &cache.status);
            kept.push(cache);
        }
        let events = Events::start(transport.clone(), watchkeeper_events::Options::new(&self.name));
        let environment = Environment {
            clusters: clusters.clone(),
            guarded: guarded.clone(),
            informers: InformerSet::new(&metrics.informers),
            metrics: metrics.clone(),
            recorder: events.recorder(),
            lead: leads.clone(),
            always,
        };
        let mut controllers: Vec<controller::Running> = Vec::new();
        for controller in self.controllers {
            let running = (controller.start)(&environment)?;
            for (name, status) in &running.sources {
                watched.add(name, status);
            }
            if let Some(timeout) = running.timeout {
                let longest = Arc::clone(&running.longest);
                // It was to be dropped after its time, and cannot be while it does not await.
                let limit = timeout * 2;
                let stuck = move || match longest() {
                    Some(long) if long > limit => Err(format!("a reconcile has been running for {long:?}")),
                    _ => Ok(()),
                };
                live.set(format!("controller {}", running.name), Arc::new(stuck));
            }
            controllers.push(running);
        }

        let mut unelected = None;
        let led = match self.election {
            Some(lease) => {
                let place = lease.place(&self.name, transport.default_namespace());
                let name: Arc<str> = place.to_string().into();
                let election = Election::start(transport.clone(), place, lease.options)?;
                let (standing, known) = watch::channel(Standing::Unknown);
                let look = known.clone();
                let check = move || match &*look.borrow() {
                    Standing::Unknown => Err("it is not known yet who leads".to_owned()),
                    Standing::Standby { .. } | Standing::Leading => Ok(()),
                };
                ready.set("election", Arc::new(check));
                let stop = CancellationToken::new();
                let following = follow(election, name, term, lead, standing, metrics.clone(), stop.clone());
                Some(Led { task: tokio::spawn(following), stop, standing: known })
            }
            None => {
                unelected = Some(lead);
                None
            }
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
            led,
            leads,
            events: Some(events),
            ready,
            metrics,
            server,
            grace: self.grace,
            _watched: watched,
            _kept: kept,
            _always: (always_sender, unelected),
        })
    }
}
