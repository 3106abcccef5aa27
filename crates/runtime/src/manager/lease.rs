//! The part of a manager in an election.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Guard;
use watchkeeper_election::{Election, ElectionOptions, LeaseName};
use watchkeeper_sources::kubernetes::Connection;

use crate::health::Checks;
use crate::leadership::LeadershipSender;
use crate::manager::election::{ElectionState, Follower, Term};
use crate::manager::{Manager, StartError};
use crate::metrics::Metrics;

/// A lease to lead by, and how.
pub(crate) struct Lease {
    /// Without a namespace: that of the pod, or the client's default.
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    options: ElectionOptions,
    term: Term,
}

impl Lease {
    fn new(namespace: Option<String>, name: Option<String>, options: ElectionOptions) -> Self {
        Self { namespace, name, options, term: Term::default() }
    }

    pub(super) fn place(&self, manager: &str, default_namespace: &str) -> LeaseName {
        let namespace = self.namespace.as_deref().unwrap_or(default_namespace);
        LeaseName::new(namespace, self.name.as_deref().unwrap_or(manager))
    }

    /// Lets a client write while this process holds the lease, as far as the local clock can tell.
    pub(super) fn guard(&self) -> Arc<dyn Guard> {
        let term = self.term.clone();
        Arc::new(move || term.is_held())
    }

    /// Stands for election. Readiness waits until it is known who leads.
    pub(super) fn start(
        mut self,
        manager: &str,
        connection: Connection,
        leadership: LeadershipSender,
        ready: &Checks,
        metrics: &Metrics,
    ) -> Result<RunningElection, StartError> {
        self.options.supervisor = metrics.supervisor.clone();
        let place = self.place(manager, connection.default_namespace());
        let name: Arc<str> = place.to_string().into();
        let election = Election::start(connection, place, self.options)?;
        let (state, known) = watch::channel(ElectionState::Unknown);
        let look = known.clone();
        let check = move || match &*look.borrow() {
            ElectionState::Unknown => Err("it is not known yet who leads".to_owned()),
            ElectionState::Standby { .. } | ElectionState::Leading => Ok(()),
        };
        ready.set("election", Arc::new(check));
        let stop = CancellationToken::new();
        let follower =
            Follower { election, name, term: self.term, leadership, state, metrics: metrics.clone() };
        Ok(RunningElection { task: tokio::spawn(follower.supervised(stop.clone())), stop, state: known })
    }
}

/// The election of a manager that runs.
pub(crate) struct RunningElection {
    task: JoinHandle<Election>,
    stop: CancellationToken,
    state: watch::Receiver<ElectionState>,
}

impl RunningElection {
    /// The leader, if it is known and somebody else.
    pub(super) fn leader(&self) -> Option<String> {
        match &*self.state.borrow() {
            ElectionState::Standby { leader } => leader.clone(),
            ElectionState::Unknown | ElectionState::Leading => None,
        }
    }

    /// Gives up the lease, if that can be done in time.
    pub(super) async fn release(self, within: Duration) {
        self.stop.cancel();
        if let Ok(election) = self.task.await
            && timeout(within, election.release()).await.is_err()
        {
            tracing::warn!("lease could not be released; other replicas wait until it expires");
        }
    }

    pub(super) fn abort(&self) {
        self.task.abort();
    }
}

impl Manager {
    /// Turns the election on: of several replicas, only the one that holds a Lease works. Default: no election.
    ///
    /// The lease is called as the manager and is in the pod's own namespace, unless
    /// [`lease`](Self::lease) says otherwise.
    #[must_use]
    pub fn leader_election(mut self, options: ElectionOptions) -> Self {
        let before = self.election.take();
        let (namespace, name) = before.map_or((None, None), |lease| (lease.namespace, lease.name));
        self.election = Some(Lease::new(namespace, name, options));
        self
    }

    /// Sets the Lease, and turns the election on.
    #[must_use]
    pub fn lease(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let options = self.election.take().map(|lease| lease.options).unwrap_or_default();
        self.election = Some(Lease::new(Some(namespace.into()), Some(name.into()), options));
        self
    }

    /// The election, for the description of the program.
    pub(super) fn election_described(&self) -> Option<watchkeeper_description::Election> {
        let lease = self.election.as_ref();
        (lease.is_some() || self.about.has_options).then(|| watchkeeper_description::Election {
            lease: lease.and_then(|lease| lease.name.clone()).unwrap_or_else(|| self.name.clone()),
            namespace: lease.and_then(|lease| lease.namespace.clone()),
            option: self.about.has_options.then(|| "--leader-elect".to_owned()),
        })
    }
}
