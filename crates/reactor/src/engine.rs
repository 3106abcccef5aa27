//! A running reactor.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use watchkeeper_client::{Client, Connection};
use watchkeeper_core::{Freshness, Source};
use watchkeeper_informer::Informer;
use watchkeeper_queue::Queue;
use watchkeeper_supervision::Supervisor;

use crate::action::{Action, Means, Scratch};
use crate::delivered::Delivered;
use crate::drift;
use crate::error::Error;
use crate::feed::{Follower, Settled};
use crate::file::{ReactionSpec, Reactor};
use crate::leftovers::Leftovers;
use crate::metrics::{Metrics, MetricsServer};
use crate::reaction::{Reaction, Shared, Tally};
use crate::source::{ClusterKind, Origin};
use crate::state::beside;

/// The options of a running reactor.
#[derive(Debug, Default)]
pub struct Options {
    /// The cluster, for a reactor that [needs one](Reactor::needs_cluster).
    pub connection: Option<Connection>,
    /// The file that records the states that were delivered. Without it, all objects are delivered again after a restart.
    pub state: Option<PathBuf>,
    /// The address that `/metrics` is served at.
    pub metrics: Option<SocketAddr>,
    /// Whether actions are only printed, not run. The state file is read and not written.
    pub dry_run: bool,
    /// Whether a change is given up when it has failed as often as its reaction allows, or once; see [`Engine::finished`].
    pub once: bool,
}

/// A reactor that runs.
///
/// # What it promises
///
/// - For each reaction and object, changes are delivered in order, one after the other. Several changes in quick succession are one, from the
///   state that was delivered last to the newest.
/// - Every change is delivered at least once: until its reaction succeeds, it is tried again. With a state file this holds over restarts,
///   however the process ended, also for objects that went away meanwhile.
/// - What was delivered is not delivered again as long as the object does not change, also after a restart if there is a state file. What
///   was delivered in the instant before the process was killed may be delivered a second time.
/// - One reaction does not hold up another one, one object does not hold up another one beyond the reaction's concurrency.
/// - Memory and state file grow with the objects there are, not with the changes.
///
/// # What it does not promise
///
/// Not that every state of an object is seen, and no order between objects.
pub struct Engine {
    shared: Arc<Shared>,
    reactions: Vec<Arc<Reaction>>,
    informers: Vec<Informer<Value>>,
    settled: Vec<watch::Receiver<Settled>>,
    followers: Vec<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
    syncing: JoinHandle<()>,
    server: Option<MetricsServer>,
    _scratch: Arc<Scratch>,
    leftovers: Option<Arc<Leftovers>>,
}

/// Counts of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Changes that were delivered.
    pub done: u64,
    /// Changes that no reaction was for.
    pub filtered: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Changes that were given up.
    pub given_up: u64,
    /// Objects that could not be understood.
    pub rejected: u64,
}

/// Commands of a run that was killed are waited for as long as commands may take, and this much longer.
const KILLED_COMMANDS: Duration = Duration::from_secs(5);
/// So many entries of a journal may wait.
const WAITING: usize = 1024;
/// How often what was delivered is brought to the disk. A process that is killed loses nothing of it, a machine that loses power may.
const SYNC: Duration = Duration::from_millis(200);

impl Engine {
    /// Starts a reactor, on the current tokio runtime.
    ///
    /// # Errors
    ///
    /// If the state file cannot be used, or something else that does not depend on a source. Sources that do not answer are waited for.
    pub fn start(reactor: Reactor, options: Options) -> Result<Self, Error> {
        let Reactor { name, sources, reactions } = reactor;
        let running = |error: std::io::Error| Error::Running(error.to_string());
        let metrics = Metrics::new();
        let server =
            match options.metrics {
                Some(address) => {
                    let started = MetricsServer::start(address, metrics.clone());
                    Some(started.map_err(|error| {
                        Error::Running(format!("cannot serve metrics on {address}: {error}"))
                    })?)
                }
                None => None,
            };
        let names = reactions.iter().map(|reaction| Arc::clone(&reaction.name)).collect();
        let shared = Arc::new(Shared {
            delivered: Delivered::open(names, options.state.as_deref(), options.dry_run)?,
            metrics,
            tally: Tally::default(),
            progress: Notify::new(),
            abort: watch::Sender::new(false),
            dry_run: options.dry_run,
            once: options.once,
        });
        let scratch = Arc::new(Scratch::new().map_err(running)?);
        let client = options
            .connection
            .map(|connection| Client::builder(connection).user_agent("watchkeeper-run").build());
        let leftovers = match options.state.filter(|_| !options.dry_run) {
            Some(state) => {
                let longest = reactions.iter().map(|reaction| reaction.timeout).max().unwrap_or_default();
                let path = beside(&state, "running");
                Some(Arc::new(Leftovers::new(path, longest + KILLED_COMMANDS).map_err(running)?))
            }
            None => None,
        };
        let means = Means {
            reactor: name.into(),
            client,
            scratch: Arc::clone(&scratch),
            leftovers: leftovers.clone(),
        };
        let mut engine = Self {
            syncing: tokio::spawn(sync(Arc::clone(&shared))),
            shared,
            reactions: Vec::new(),
            informers: Vec::new(),
            settled: Vec::new(),
            followers: Vec::new(),
            workers: Vec::new(),
            server,
            _scratch: scratch,
            leftovers,
        };
        let mut specs: Vec<Vec<(usize, ReactionSpec)>> = sources.iter().map(|_| Vec::new()).collect();
        for (index, spec) in reactions.into_iter().enumerate() {
            specs[spec.source].push((index, spec));
        }
        for (source, specs) in sources.into_iter().zip(specs) {
            engine.follow(source.name, source.origin, specs, &means)?;
        }
        Ok(engine)
    }

    fn follow(
        &mut self,
        name: Arc<str>,
        origin: Origin,
        specs: Vec<(usize, ReactionSpec)>,
        means: &Means,
    ) -> Result<(), Error> {
        if specs.is_empty() {
            tracing::warn!("{name}: no reaction is on this source, and it is not watched");
            return Ok(());
        }
        let (source, kind): (Arc<dyn Source>, _) = match origin {
            Origin::Url(source) => (source, None),
            Origin::Kind(origin) => {
                let client = means.client.clone();
                let client =
                    client.ok_or_else(|| Error::Input(format!("{name}: there is no cluster to watch")))?;
                let kind = Some((origin.api_version.clone(), origin.kind.clone()));
                (Arc::new(ClusterKind::new(origin, client)), kind)
            }
        };
        let (journal, entries) = mpsc::channel(WAITING);
        let informer = Informer::<Value>::builder()
            .name(&*name)
            .first_snapshot(Freshness::Newest)
            .metrics(&self.shared.metrics.informers)
            .journal(journal)
            .start(Arc::clone(&source));
        let complete = Arc::new(AtomicBool::new(false));
        let mut reactions = Vec::new();
        for (index, spec) in specs {
            let delivered = &self.shared.delivered;
            let action = Action::new(spec.action, &spec.name, delivered.kinds(index), means)?;
            let noted = delivered.set_kinds(index, action.kinds());
            noted.map_err(|error| Error::Running(format!("the state file cannot be written: {error}")))?;
            let reaction = Arc::new(Reaction {
                queue: Queue::builder().metrics(&self.shared.metrics.queues, &*spec.name).build(),
                name: spec.name,
                index,
                source: Arc::clone(&name),
                kind: kind.clone(),
                filter: spec.filter,
                action,
                timeout: spec.timeout,
                retry: spec.retry,
                store: informer.store(),
                complete: Arc::clone(&complete),
                shared: Arc::clone(&self.shared),
                strays: Mutex::default(),
            });
            self.watch_children(&reaction, means);
            for _ in 0..spec.concurrency {
                self.workers.push(tokio::spawn(Arc::clone(&reaction).work()));
            }
            reactions.push(reaction);
        }
        self.reactions.extend(reactions.iter().cloned());
        let (settled, settling) = watch::channel(Settled::NotYet);
        self.settled.push(settling);
        let follower = Follower {
            name,
            source,
            store: informer.store(),
            reactions,
            complete,
            settled,
            shared: Arc::clone(&self.shared),
            doubtful: AtomicBool::new(false),
        };
        self.followers.push(tokio::spawn(follower.follow(entries)));
        self.informers.push(informer);
        Ok(())
    }

    fn watch_children(&mut self, reaction: &Arc<Reaction>, means: &Means) {
        let (Action::Apply(apply), Some(client)) = (&reaction.action, &means.client) else { return };
        for (api_version, kind) in apply.kinds().into_iter().filter(|_| reaction.puts_right()) {
            let (reaction, client) = (Arc::clone(reaction), client.clone());
            let supervisor = self.shared.metrics.supervisor.clone();
            self.followers.push(tokio::spawn(async move {
                let watch =
                    || drift::watch(Arc::clone(&reaction), client.clone(), api_version.clone(), kind.clone());
                supervisor.run(&format!("children of {}", reaction.name), watch).await;
            }));
        }
    }

    /// The address that metrics are served at.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(MetricsServer::address)
    }

    /// Resolves when everything that was there at the beginning is done or given up.
    ///
    /// # Errors
    ///
    /// If a source cannot be read. Only with [`Options::once`]: otherwise it is waited for.
    pub async fn finished(&self) -> Result<(), Error> {
        for settled in &self.settled {
            let mut settled = settled.clone();
            match settled.wait_for(|settled| *settled != Settled::NotYet).await.as_deref() {
                Ok(Settled::Never(why)) => return Err(Error::Running(why.clone())),
                Ok(_) => {}
                Err(_) => return Err(Error::Running("the reactor was stopped".into())),
            }
        }
        loop {
            let progress = self.shared.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            if self.is_idle() {
                return Ok(());
            }
            progress.await;
        }
    }

    /// Counts of the deliveries so far.
    pub fn summary(&self) -> Summary {
        let tally = &self.shared.tally;
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Summary {
            done: read(&tally.done),
            filtered: read(&tally.filtered),
            failed: read(&tally.failed),
            given_up: read(&tally.given_up),
            rejected: read(&tally.rejected),
        }
    }

    /// The supervisor of its tasks.
    #[doc(hidden)]
    pub fn supervisor(&self) -> &Supervisor {
        &self.shared.metrics.supervisor
    }

    /// The number of states that are held as delivered, over all reactions.
    pub fn delivered(&self) -> usize {
        self.shared.delivered.len()
    }

    /// Whether nothing is left to do for what is known of the sources.
    pub fn is_idle(&self) -> bool {
        self.reactions.iter().all(|reaction| reaction.is_idle())
    }

    /// The number of reactions that are running.
    pub fn running(&self) -> usize {
        self.reactions.iter().map(|reaction| reaction.queue.counts().running).sum()
    }

    /// A way to end what runs at once, for the time of [`stop`](Self::stop).
    pub fn aborter(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            shared.abort.send_replace(true);
        }
    }

    /// Begins nothing more, and waits for what runs.
    pub async fn stop(mut self) -> Summary {
        for reaction in &self.reactions {
            reaction.queue.shutdown();
        }
        for follower in &self.followers {
            follower.abort();
        }
        for informer in &self.informers {
            informer.stop().await;
        }
        for worker in &mut self.workers {
            let _ = worker.await; // it catches panics itself
        }
        if let Some(leftovers) = &self.leftovers {
            leftovers.end();
        }
        self.syncing.abort();
        if let Some(file) = self.shared.delivered.unsynced() {
            let _ = tokio::task::spawn_blocking(move || file.sync_data()).await;
        }
        self.summary()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let tasks = self.followers.iter().chain(&self.workers);
        tasks.chain([&self.syncing]).for_each(JoinHandle::abort);
    }
}

/// Brings to the disk what was delivered.
async fn sync(shared: Arc<Shared>) {
    let sync = || async {
        loop {
            tokio::time::sleep(SYNC).await;
            if let Some(file) = shared.delivered.unsynced() {
                let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
                if let Ok(Err(error)) = synced {
                    tracing::error!("the state file is not on the disk: {error}");
                }
            }
        }
    };
    shared.metrics.supervisor.run("state", sync).await;
}
