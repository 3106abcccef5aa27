#[cfg(all(any(feature = "server", feature = "webhooks"), unix))]
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_supervision::Supervisor;

use crate::clusters::Clusters;
use crate::controller;
use crate::degradation::{Kept, Watched};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::health::Checks;
use crate::leadership::{LeadershipSender, LeadershipWatch};
use crate::manager::lease::RunningElection;
use crate::metrics::Metrics;
#[cfg(all(feature = "server", unix))]
use crate::server::Server;
use crate::signals::Signals;

/// A running manager. Dropping it ends everything without waiting; [`stop`](Self::stop) stops it in order.
pub struct Running {
    pub(super) name: String,
    pub(super) clusters: Clusters,
    pub(super) controllers: Vec<controller::Running>,
    pub(super) tasks: JoinSet<Result<()>>,
    pub(super) stop_tasks: CancellationToken,
    pub(super) stopping: CancellationToken,
    pub(super) election: Option<RunningElection>,
    pub(super) leadership: LeadershipWatch,
    /// Taken by whoever stops in order.
    pub(super) events: Option<Events>,
    pub(super) ready: Checks,
    pub(super) metrics: Metrics,
    #[cfg(all(feature = "server", unix))]
    pub(super) server: Option<Server>,
    #[cfg(all(feature = "webhooks", unix))]
    pub(super) webhook_address: Option<SocketAddr>,
    pub(super) grace: Duration,
    /// The time that webhooks have to stop, whatever is left of the grace.
    pub(super) webhook_stop: Duration,
    pub(super) _watched: Watched,
    pub(super) _kept: Vec<Kept>,
    /// What says to those who do not depend on an election that they may work, for as long as this lives.
    pub(super) _always: (LeadershipSender, Option<LeadershipSender>),
}

/// The work that was left undone when a manager was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Keys that waited for a worker or for their time.
    pub waiting: usize,
    /// Reconciles that did not end within the grace and were dropped.
    pub dropped: usize,
}

/// How long the events that are still to be written, and then the release of the lease, may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How often readiness is looked at while somebody waits for it.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The metrics and readiness of a [running manager](Running).
///
/// It outlives the manager, so that a program can print what the manager did.
///
/// ```no_run
/// # use watchkeeper_runtime::{Manager, Result};
/// # async fn example(manager: Manager) -> Result<()> {
/// let running = manager.start().await?;
/// let observer = running.observer();
/// for (check, reason) in observer.not_ready() {
///     println!("{check}: {reason}");
/// }
/// running.stop().await;
/// print!("{}", observer.metrics());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Observer {
    metrics: Metrics,
    ready: Checks,
}

impl Observer {
    /// All metrics, as `/metrics` shows them.
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// The checks that fail, by name, with the reason.
    pub fn not_ready(&self) -> Vec<(String, String)> {
        self.ready.failing()
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("not_ready", &self.not_ready()).finish_non_exhaustive()
    }
}

impl Running {
    /// Resolves when all checks of `/readyz` pass: caches are listed, and the leader is known.
    pub async fn ready(&self) {
        while !self.not_ready().is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The checks that fail, by name, with the reason.
    pub fn not_ready(&self) -> Vec<(String, String)> {
        self.ready.failing()
    }

    /// Whether this process leads. Without election, it always does.
    pub fn is_leading(&self) -> bool {
        self.leadership.is_leading()
    }

    /// Resolves when this process leads.
    pub async fn leading(&self) {
        if self.leadership.clone().won().await.is_none() {
            // It stops, and will not.
            std::future::pending::<()>().await;
        }
    }

    /// The leader, if it is known and another process.
    pub fn leader(&self) -> Option<String> {
        self.election.as_ref()?.leader()
    }

    /// A client of the manager's own cluster, with its caches. What it sends need not be declared: it is for whoever runs the manager,
    /// such as a test.
    pub fn client(&self) -> &Client {
        self.clusters.own()
    }

    /// The address on which probes and metrics are served.
    #[cfg(all(feature = "server", unix))]
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(|server| server.address)
    }

    /// The address on which webhooks are served, if there are some.
    #[cfg(all(feature = "webhooks", unix))]
    pub fn webhook_address(&self) -> Option<SocketAddr> {
        self.webhook_address
    }

    /// The supervisor of the tasks of this manager.
    pub fn supervisor(&self) -> &Supervisor {
        &self.metrics.supervisor
    }

    /// A handle to the metrics and readiness of the manager, also after its end.
    pub fn observer(&self) -> Observer {
        Observer { metrics: self.metrics.clone(), ready: self.ready.clone() }
    }

    /// All metrics, as `/metrics` shows them.
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// Runs until SIGTERM or SIGINT (where there are no such signals: Ctrl-C), or until a task fails; then stops in order.
    ///
    /// A second signal while it stops drops everything and is returned as an error, so that the program can end.
    pub async fn run(self) -> Result<()> {
        let mut signals = Signals::new()?;
        let name = self.name.clone();
        let first = async {
            let signal = signals.next().await;
            tracing::info!(manager = %name, signal, "shutting down; a second signal exits at once");
        };
        let (running, ended) = self.until(first).await;
        tokio::select! {
            () = running.stop_and_log() => ended,
            signal = signals.next() => {
                Err(Error::message(format!("ended by a second {signal} before everything had stopped")))
            }
        }
    }

    /// Runs until the future resolves, or until a task fails; then stops in order. Signals are not listened to.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let (running, ended) = self.until(shutdown).await;
        running.stop_and_log().await;
        ended
    }

    /// Waits for the shutdown or for a task that fails.
    async fn until(mut self, shutdown: impl Future<Output = ()>) -> (Self, Result<()>) {
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => return (self, Ok(())),
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = flatten(ended) {
                        return (self, Err(error));
                    }
                }
            }
        }
    }

    async fn stop_and_log(self) {
        let name = self.name.clone();
        let stopped = self.stop().await;
        tracing::info!(manager = %name, waiting = stopped.waiting, dropped = stopped.dropped, "stopped");
    }

    /// Stops everything in order, as [`Manager`](crate::Manager) describes it.
    pub async fn stop(mut self) -> Stopped {
        self.stopping.cancel();
        // A grace that the clock cannot measure has no end.
        let deadline = Instant::now().checked_add(self.grace);
        let grace = self.grace;
        let stops = self.controllers.drain(..).map(|controller| (controller.stop)(grace));
        let left = futures_util::future::join_all(stops).await;
        self.stop_tasks.cancel();
        // Reconciles that used up the grace take nothing from the reviews that run, nor from the removal of configurations.
        let deadline = deadline.and_then(|deadline| {
            let served = Instant::now().checked_add(self.webhook_stop)?;
            Some(deadline.max(served))
        });
        while let Some(ended) = within(deadline, self.tasks.join_next()).await.flatten() {
            if let Err(error) = flatten(ended) {
                tracing::warn!(%error, "task failed during shutdown");
            }
        }
        self.tasks.shutdown().await;
        if let Some(events) = self.events.take() {
            events.shutdown(SHUTDOWN_TIMEOUT).await;
        }
        if let Some(running) = self.election.take() {
            running.release(SHUTDOWN_TIMEOUT).await;
        }
        left.iter().fold(Stopped::default(), |sum, left| Stopped {
            waiting: sum.waiting + left.waiting,
            dropped: sum.dropped + left.dropped,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.stop_tasks.cancel();
        if let Some(running) = &self.election {
            running.abort();
        }
    }
}

/// What comes of something, unless it comes too late.
async fn within<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

fn flatten(ended: Result<Result<()>, tokio::task::JoinError>) -> Result<()> {
    match ended {
        Ok(result) => result,
        Err(error) if error.is_cancelled() => Ok(()),
        Err(error) => Err(Error::from(error)),
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("name", &self.name)
            .field("leading", &self.is_leading())
            .field("not_ready", &self.not_ready())
            .finish_non_exhaustive()
    }
}
