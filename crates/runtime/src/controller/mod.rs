//! Controllers: what they work on, what wakes them, and their workers.

mod access;
mod keyed;
mod object;
mod object_task;
mod settings;
mod watches;
pub(crate) mod worker;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use watchkeeper_core::Source;
use watchkeeper_informer::{Readable, SourceStatus};
use watchkeeper_queue::Queue;

pub use keyed::Keyed;
pub use object::Primary;
pub use object_task::Every;
pub use settings::ControllerBuilder;
pub use watches::{DynamicWatches, WatchId};

use crate::declared::Declared;
use crate::degradation::Kept;
use crate::hot_loop::HotLoops;
use crate::leadership::LeadershipWatch;
use crate::manager::{Environment, StartError};
use crate::request::WorkKey;
use crate::watch_task::{WatchTask, WorkSink};
use settings::Settings;
use watchkeeper_client::{DynamicKind, DynamicObject, StaticKind};
use worker::{Run, Workers};

/// A controller: its watches and its reconciler.
///
/// Described by a [`ControllerBuilder`], run by a [`Manager`](crate::Manager).
///
/// # How it works
///
/// Changes of what it watches become keys in a queue; workers take a key each and reconcile. A key that is woken several
/// times before it runs runs once; one that is woken while it runs runs once more afterwards. Work for objects of the first
/// list and of resyncs comes after work for real changes. A reconcile that fails is tried again, with a back-off of its
/// own for each key. One that panics or takes too long counts as failed, and disturbs no other.
///
/// Workers start when everything that this controller watches has been listed once, and, with election, while this process
/// leads. A watch that is denied or whose kind is missing is asked for again until it works; meanwhile this
/// controller waits, the others do not, and probes and metrics say why.
pub struct Controller {
    pub(crate) name: String,
    /// What it says about itself.
    pub(crate) declared: Declared,
    pub(crate) start: Start,
}

type Start = Box<dyn FnOnce(&Environment) -> Result<Running, StartError> + Send>;

impl Controller {
    /// A controller for the objects of a kind.
    pub fn of<K: StaticKind>() -> ControllerBuilder<Primary<K>> {
        ControllerBuilder::new(K::kind(&()).to_lowercase(), Primary::kind())
    }

    /// A controller for the objects of a kind that is known at run time only. For its client, and for that of its runs,
    /// [`DynamicObject`] means this kind.
    pub fn dynamic(kind: DynamicKind) -> ControllerBuilder<Primary<DynamicObject>> {
        let mut builder = ControllerBuilder::new(kind.kind().to_lowercase(), Primary::dynamic(kind.clone()));
        builder.settings.dynamic = Some(kind);
        builder
    }

    /// A controller of the objects of a source: files, rows, documents behind an HTTP API.
    pub fn over<T: Readable>(name: impl Into<String>, source: impl Source) -> ControllerBuilder<Primary<T>> {
        ControllerBuilder::new(name.into(), Primary::source(source))
    }

    /// A controller of keys that are not objects, which its watches make.
    pub fn keyed<R: WorkKey>(name: impl Into<String>) -> ControllerBuilder<Keyed, R> {
        ControllerBuilder::new(name.into(), Keyed)
    }

    /// The name of the controller.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A controller that runs.
pub(crate) struct Running {
    pub(crate) name: String,
    /// Everything that it watches or reads, and how that is doing.
    pub(crate) sources: Vec<(Arc<str>, tokio::sync::watch::Receiver<Vec<SourceStatus>>)>,
    /// Stops it: nothing new begins, what runs may end within the grace and is dropped then. Says what was left.
    pub(crate) stop: Box<dyn FnOnce(Duration) -> BoxFuture<'static, Stopped> + Send + Sync>,
    /// How long a reconcile may take.
    pub(crate) timeout: Option<Duration>,
    /// How long the longest one has been running.
    pub(crate) longest: Arc<dyn Fn() -> Option<Duration> + Send + Sync>,
}

/// How long a worker that was told to drop what it does may take to do so.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// How much a controller left undone when it was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) waiting: usize,
    pub(crate) dropped: usize,
}

/// Everything of a controller that has been started before its workers.
pub(crate) struct Prepared<R> {
    pub(crate) sink: Arc<WorkSink<R>>,
    pub(crate) watch_tasks: Vec<WatchTask>,
    pub(crate) clusters: Vec<crate::clusters::Cluster>,
    kept: Vec<Kept>,
}

impl<R: WorkKey> Settings<R> {
    /// Makes the queue and starts the watches.
    pub(crate) fn prepare(
        &mut self,
        environment: &Environment,
        alarm: crate::hot_loop::Alarm<R>,
    ) -> Result<Prepared<R>, StartError> {
        let controller = self.name.clone();
        let clusters = environment
            .clusters
            .selected(self.clusters.as_deref())
            .map_err(|cluster| StartError::UnknownCluster { controller: controller.clone(), cluster })?;
        let failed = |error| StartError::Watch { controller: controller.clone(), error };
        let sink = Arc::new(WorkSink {
            controller: controller.as_str().into(),
            queue: self.queue(environment),
            causes: crate::cause::Causes::default(),
            hot_loops: HotLoops::new(self.hot_loop_limit, alarm),
            supervisor: environment.metrics.supervisor.clone(),
            priority: self.priority,
        });
        let mut kept = Vec::new();
        for declare in &self.reads {
            for cluster in &clusters {
                kept.push(declare(&cluster.client).map_err(failed)?);
            }
        }
        let mut watch_tasks = Vec::new();
        for watch in self.watches.drain(..) {
            watch_tasks.extend(watch.start(&clusters, &environment.informers, &sink).map_err(failed)?);
        }
        self.run_time.connect(&clusters, &environment.informers, &sink).map_err(failed)?;
        self.trigger.connect(&sink.queue);
        Ok(Prepared { sink, watch_tasks, clusters, kept })
    }

    /// Starts the workers, as soon as all watches are synced, and what else lives as long as they do.
    pub(crate) fn run(
        self,
        prepared: Prepared<R>,
        environment: &Environment,
        run: Run<R>,
        cluster: fn(&R) -> Option<&str>,
        object_tasks: Vec<object_task::ObjectTaskRunner>,
    ) -> Running {
        let Prepared { sink, watch_tasks, kept, .. } = prepared;
        let (abort, stopping) = (CancellationToken::new(), CancellationToken::new());
        let leadership = if self.needs_lead { &environment.leadership } else { &environment.always }.clone();
        let clusters = self.clusters_of(environment);
        let metrics = environment.metrics.controller(&self.name);
        metrics.workers.set(self.concurrency as i64);
        let workers = Arc::new(Workers {
            sink: Arc::clone(&sink),
            run,
            cluster,
            clusters,
            recorder: environment.recorder.clone(),
            timeout: self.timeout,
            metrics,
            leadership: leadership.clone(),
            abort: abort.clone(),
            stopping: stopping.clone(),
        });
        let watched = watch_tasks.iter().map(|task| (Arc::clone(&task.name), task.status.clone()));
        let read = kept.iter().map(|kept| (Arc::clone(&kept.name), kept.status.clone()));
        let sources = watched.chain(read).collect();
        let synced = synced(&watch_tasks, &kept);
        let supervisor = tokio::spawn(supervise(
            workers,
            synced,
            self.concurrency,
            object_tasks,
            leadership,
            stopping.clone(),
        ));
        let (queue, run_time) = (sink.queue.clone(), self.run_time);
        let stop = move |grace: Duration| -> BoxFuture<'static, Stopped> {
            Box::pin(async move {
                stopping.cancel();
                run_time.disconnect();
                drop((watch_tasks, kept));
                let deadline = Instant::now().checked_add(grace.saturating_add(ABORT_TIMEOUT));
                let left = drain(&queue, grace, &abort).await;
                // It ends with its workers, which end with the queue, and with the timers and tasks of objects; unless one
                // of them does not await, and cannot be dropped. Then it is left behind.
                match deadline {
                    Some(deadline) => drop(timeout_at(deadline, supervisor).await),
                    None => drop(supervisor.await),
                }
                left
            })
        };
        let running = sink.queue.clone();
        let longest = Arc::new(move || running.longest_run());
        Running { name: self.name, sources, stop: Box::new(stop), timeout: self.timeout, longest }
    }
}

/// Resolves when everything that is watched has become work, and everything that is read is there.
fn synced(watch_tasks: &[WatchTask], kept: &[Kept]) -> BoxFuture<'static, ()> {
    let watch_tasks = futures_util::future::join_all(watch_tasks.iter().map(WatchTask::synced));
    let kept = futures_util::future::join_all(kept.iter().map(Kept::synced));
    Box::pin(async move {
        watch_tasks.await;
        kept.await;
    })
}

async fn drain<R: WorkKey>(queue: &Queue<R>, grace: Duration, abort: &CancellationToken) -> Stopped {
    let left = queue.drain_within(grace).await;
    abort.cancel();
    Stopped { waiting: left.queued.len() + left.delayed.len(), dropped: left.running.len() }
}

/// Waits until everything has been listed, then lets the workers work. Ends when they have ended.
async fn supervise<R: WorkKey>(
    workers: Arc<Workers<R>>,
    synced: BoxFuture<'static, ()>,
    concurrency: usize,
    object_tasks: Vec<object_task::ObjectTaskRunner>,
    leadership: LeadershipWatch,
    stopping: CancellationToken,
) {
    tokio::select! {
        biased;
        () = stopping.cancelled() => return,
        () = synced => {}
    }
    let mut tasks = JoinSet::new();
    let supervisor = workers.sink.supervisor.clone();
    let name: Arc<str> = format!("controller {}", workers.sink.controller).into();
    for _ in 0..concurrency {
        let (workers, supervisor, name) = (Arc::clone(&workers), supervisor.clone(), Arc::clone(&name));
        // What it has in hand when it panics is tried again.
        tasks.spawn(async move { supervisor.run(&name, || Arc::clone(&workers).work()).await });
    }
    for run in object_tasks {
        let (leadership, stopping, supervisor) = (leadership.clone(), stopping.clone(), supervisor.clone());
        let name = format!("{name} tasks");
        tasks.spawn(async move { supervisor.run(&name, || run(leadership.clone(), stopping.clone())).await });
    }
    // Panics are caught inside.
    while tasks.join_next().await.is_some() {}
}
