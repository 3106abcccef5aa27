//! Timers and tasks that run for an object for as long as it exists.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use watchkeeper_core::{Change, Key};
use watchkeeper_informer::{Informer, Object};
use watchkeeper_queue::{Backoff, Priority};
use watchkeeper_supervision::Supervisor;

use crate::clusters::Clusters;
use crate::context::{Context, Inner};
use crate::controller::access::{Access, Read};
use crate::controller::object::AnyReconciler;
use crate::events::Recorder;
use crate::leadership::LeadershipWatch;
use crate::metrics::ControllerMetrics;
use crate::watch_task::Opened;

/// The interval of a periodic call for an object.
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_runtime::Every;
/// // About once a minute, first after a minute, and not while the object is being edited.
/// let probe = Every::new(Duration::from_secs(60)).idle(Duration::from_secs(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Every {
    interval: Duration,
    jitter: f64,
    idle: Duration,
}

impl Every {
    /// A call in each interval, counted from the end of one call to the beginning of the next.
    pub const fn new(interval: Duration) -> Self {
        Self { interval, jitter: 0.1, idle: Duration::ZERO }
    }

    /// Sets the share of the interval that is random, so that a thousand objects are not due at the same moment.
    /// Default: 0.1, which makes of a minute something between 54 and 66 seconds.
    #[must_use]
    pub const fn jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// Waits until the object has not changed for so long. Default: does not mind changes.
    #[must_use]
    pub const fn idle(mut self, quiet: Duration) -> Self {
        self.idle = quiet;
        self
    }

    fn wait(&self) -> Duration {
        let jitter = if self.jitter > 0.0 { self.jitter.min(1.0) } else { 0.0 };
        let share = 1.0 + jitter * (2.0 * fastrand::f64() - 1.0);
        Duration::try_from_secs_f64(self.interval.as_secs_f64() * share).unwrap_or(Duration::MAX)
    }
}

/// One timer or one kind of task of a controller.
pub(crate) struct ObjectTask {
    how: How,
    call: Arc<dyn AnyReconciler>,
}

#[derive(Clone, Copy)]
enum How {
    Timer(Every),
    Task { grace: Duration },
}

/// How long a timer's call is waited for when its object goes.
const TIMER_GRACE: Duration = Duration::from_secs(10);

impl ObjectTask {
    pub(crate) fn timer(every: Every, call: Arc<dyn AnyReconciler>) -> Self {
        Self { how: How::Timer(every), call }
    }

    pub(crate) fn task(grace: Duration, call: Arc<dyn AnyReconciler>) -> Self {
        Self { how: How::Task { grace }, call }
    }
}

/// Runs while this process leads, until it stops.
pub(crate) type ObjectTaskRunner =
    Box<dyn Fn(LeadershipWatch, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// What all timers and tasks of a controller share.
pub(crate) struct ObjectTasks {
    pub(crate) access: Arc<dyn Access>,
    pub(crate) controller: Arc<str>,
    pub(crate) clusters: Clusters,
    pub(crate) recorder: Recorder,
    pub(crate) backoff: Backoff,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) supervisor: Supervisor,
}

impl ObjectTasks {
    /// A timer or a kind of task, for the objects of all these clusters.
    pub(crate) fn runner(self: &Arc<Self>, task: ObjectTask, opened: &[Opened]) -> ObjectTaskRunner {
        let task = Arc::new(task);
        let clusters: Vec<_> = opened
            .iter()
            .map(|opened| {
                let (shared, task) = (Arc::clone(self), Arc::clone(&task));
                let in_cluster = InCluster { shared, cluster: opened.cluster_name().cloned(), task };
                (Arc::new(in_cluster), opened.informer.clone())
            })
            .collect();
        Box::new(move |leadership, stopping| {
            let clusters = clusters.iter().map(|(in_cluster, informer)| {
                Arc::clone(in_cluster).run(informer.clone(), leadership.clone(), stopping.clone())
            });
            Box::pin(futures_util::future::join_all(clusters).map(drop))
        })
    }
}

/// A timer or a kind of task, in one cluster.
struct InCluster {
    shared: Arc<ObjectTasks>,
    cluster: Option<Arc<str>>,
    task: Arc<ObjectTask>,
}

/// One object's timer or task.
struct RunningTask {
    stop: CancellationToken,
    changed: watch::Sender<Instant>,
    task: JoinHandle<()>,
}

/// The timers or tasks in one cluster.
#[derive(Default)]
struct Tasks {
    running: HashMap<Key, RunningTask>,
    /// Those of objects that are gone or going, until they have ended. Nobody of the same name begins before.
    ending: HashMap<Key, JoinHandle<()>>,
}

impl Tasks {
    /// The object goes: its task is told, and ends within its grace.
    fn end(&mut self, key: &Key) {
        let Some(RunningTask { stop, task, .. }) = self.running.remove(key) else { return };
        stop.cancel();
        if self.ending.len() >= 64 && self.ending.len().is_power_of_two() {
            self.ending.retain(|_, task| !task.is_finished());
        }
        self.ending.insert(key.clone(), task);
    }

    /// Ends all of them and waits for it.
    async fn end_all(mut self) {
        for one in self.running.values() {
            one.stop.cancel();
        }
        let running = self.running.drain().map(|(_, one)| one.task);
        for task in running.chain(self.ending.drain().map(|(_, task)| task)) {
            // Panics are caught inside.
            let _ = task.await;
        }
    }
}

/// A panic leaves no task behind that would run a second time.
impl Drop for Tasks {
    fn drop(&mut self) {
        self.running.values().for_each(|one| one.task.abort());
        self.ending.values().for_each(JoinHandle::abort);
    }
}

impl InCluster {
    async fn run(
        self: Arc<Self>,
        informer: Informer,
        mut leadership: LeadershipWatch,
        stopping: CancellationToken,
    ) {
        loop {
            let won = tokio::select! {
                () = stopping.cancelled() => return,
                won = leadership.won() => won,
            };
            let Some(term) = won else { return };
            let mut tasks = Tasks::default();
            let mut changes = informer.subscribe(&format!("{} tasks", self.shared.controller));
            let over = loop {
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => break true,
                    () = leadership.lost(term) => break false,
                    change = changes.next() => match change {
                        Some(change) => self.follow(&mut tasks, &change),
                        None => break true,
                    },
                }
            };
            drop(changes);
            tasks.end_all().await;
            if over {
                return;
            }
        }
    }

    fn follow(self: &Arc<Self>, tasks: &mut Tasks, change: &Change<Object>) {
        let key = &change.key;
        if change.new.as_ref().is_none_or(Object::is_deleting) {
            tasks.end(key);
        } else if let Some(one) = tasks.running.get(key) {
            one.changed.send_replace(Instant::now());
        } else {
            let before = tasks.ending.remove(key);
            tasks.running.insert(key.clone(), self.begin(key, before));
        }
    }

    fn begin(self: &Arc<Self>, key: &Key, before: Option<JoinHandle<()>>) -> RunningTask {
        let (stop, (changed, changes)) = (CancellationToken::new(), watch::channel(Instant::now()));
        let (this, key, token) = (Arc::clone(self), key.clone(), stop.clone());
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            let grace = match this.task.how {
                How::Timer(_) => TIMER_GRACE,
                How::Task { grace } => grace,
            };
            let run = || async {
                match this.task.how {
                    How::Timer(every) => this.tick(every, &key, &token, changes.clone()).await,
                    How::Task { .. } => this.keep_up(&key, &token).await,
                }
            };
            let object = key.to_string();
            let run = this.shared.supervisor.run_for("object-task", &object, run);
            end_within(run, &token, grace).await;
        });
        RunningTask { stop, changed, task }
    }

    /// A timer: waits, calls, and again.
    async fn tick(
        &self,
        every: Every,
        key: &Key,
        stop: &CancellationToken,
        changes: watch::Receiver<Instant>,
    ) {
        let mut failures = 0;
        while !stop.is_cancelled() {
            // What is too far away for the clock never comes.
            let Some(mut due) = Instant::now().checked_add(every.wait()) else {
                return stop.cancelled().await;
            };
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = sleep_until(due) => {}
                }
                let quiet_at = changes.borrow().checked_add(every.idle).unwrap_or_else(Instant::now);
                if every.idle.is_zero() || quiet_at <= Instant::now() {
                    break;
                }
                due = quiet_at;
            }
            failures = if self.call(key, stop, failures).await { 0 } else { failures.saturating_add(1) };
        }
    }

    /// A task: calls once, and again only if that failed.
    async fn keep_up(&self, key: &Key, stop: &CancellationToken) {
        let mut failures = 0;
        while !stop.is_cancelled() && !self.call(key, stop, failures).await {
            failures = failures.saturating_add(1);
            let wait = self.shared.backoff.delay(failures, &mut fastrand::Rng::new());
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Calls it with the newest state; says whether it went well. An object that is gone is no failure.
    async fn call(&self, key: &Key, stop: &CancellationToken, attempt: u32) -> bool {
        let ObjectTasks { access, controller, clusters, recorder, metrics, .. } = &*self.shared;
        let Some(client) = clusters.get(self.cluster.as_deref()) else { return true };
        let cx = Context::new(Inner {
            controller: Arc::clone(controller),
            client: client.clone(),
            clusters: clusters.clone(),
            recorder: recorder.clone(),
            attempt,
            priority: Priority::NORMAL,
            cause: None,
            cancelled: stop.child_token(),
        });
        let call = async {
            match access.read(client, key).await? {
                Some(Read { object, origin }) => {
                    self.task.call.reconcile(object, cx.under(key).with_origin(origin)).await.map(drop)
                }
                None => Ok(()),
            }
        };
        let ended = match AssertUnwindSafe(call).catch_unwind().await {
            Ok(ended) => ended,
            Err(_) => {
                metrics.panics.inc();
                Err(crate::Error::message("panicked"))
            }
        };
        if let Err(error) = &ended {
            metrics.errors.inc();
            tracing::warn!(%controller, object = %key, attempt, %error, "timer or task of an object failed");
        }
        ended.is_ok() || ended.is_err_and(|error| error.is_terminal())
    }
}

/// Runs until it ends, or until its grace after the stop is over.
async fn end_within(run: impl Future<Output = ()>, stop: &CancellationToken, grace: Duration) {
    tokio::pin!(run);
    tokio::select! {
        biased;
        () = &mut run => {}
        () = stop.cancelled() => drop(timeout(grace, run).await),
    }
}
