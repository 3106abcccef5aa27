//! From changes to work: one task for each watch of a controller in each cluster.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use watchkeeper_client::Client;
use watchkeeper_core::{Change, ChangeKind, Delivery, Key};
use watchkeeper_informer::{Informer, InformerSet, Object, SourceStatus, Subscription};
use watchkeeper_queue::{Add, Priority, Queue};
use watchkeeper_supervision::Supervisor;

use crate::cause::{Cause, Causes};
use crate::clusters::Cluster;
use crate::hot_loop::HotLoops;
use crate::request::WorkKey;
use crate::watch::{AnyWatch, Origin, Rules, Wrote};

/// After so many changes in a row without waiting, others get their turn.
const TURN: u32 = 128;

/// Where the work of a controller goes.
pub(crate) struct WorkSink<R> {
    pub(crate) controller: Arc<str>,
    pub(crate) queue: Queue<R>,
    pub(crate) causes: Causes<R>,
    pub(crate) hot_loops: HotLoops<R>,
    pub(crate) supervisor: Supervisor,
    /// What every priority of this controller is relative to.
    pub(crate) priority: Priority,
}

/// The task of a watch that runs. Dropping it stops it.
pub(crate) struct WatchTask {
    pub(crate) name: Arc<str>,
    pub(crate) status: watch::Receiver<Vec<SourceStatus>>,
    synced: Shared<BoxFuture<'static, bool>>,
    task: AbortOnDropHandle<()>,
}

impl WatchTask {
    /// Resolves when all that was there has become work; `false` if that will never be.
    pub(crate) fn synced(&self) -> impl Future<Output = bool> + Send + 'static {
        self.synced.clone()
    }

    /// Stops it; nothing of it happens after this returns.
    pub(crate) async fn stop(self) {
        self.task.abort();
        // It was cancelled, or had ended.
        let _ = self.task.await;
    }
}

impl<R: WorkKey> AnyWatch<R> {
    pub(crate) fn start(
        self,
        clusters: &[Cluster],
        informers: &InformerSet,
        sink: &Arc<WorkSink<R>>,
    ) -> Result<Vec<WatchTask>, watchkeeper_client::Error> {
        let rules = Arc::new(self.rules);
        let opened = self.origin.open(clusters, informers)?;
        Ok(opened.into_iter().map(|opened| opened.map_changes(&rules, sink, Box::new(|_, _| {}))).collect())
    }
}

/// An informer that is watched for a controller, in one cluster.
pub(crate) struct Opened {
    pub(crate) informer: Informer,
    /// `None` for a source that is in no cluster.
    pub(crate) cluster: Option<(Cluster, Wrote)>,
}

impl Origin {
    /// Starts watching, in every cluster, what is not watched already.
    pub(crate) fn open(
        self,
        clusters: &[Cluster],
        informers: &InformerSet,
    ) -> Result<Vec<Opened>, watchkeeper_client::Error> {
        match self {
            Self::Source(open) => Ok(vec![Opened { informer: open(informers), cluster: None }]),
            Self::Cluster { open, wrote, .. } => clusters
                .iter()
                .map(|cluster| {
                    let informer = open(&cluster.client)?;
                    Ok(Opened { informer, cluster: Some((cluster.clone(), Arc::clone(&wrote))) })
                })
                .collect(),
        }
    }
}

impl Opened {
    pub(crate) fn cluster_name(&self) -> Option<&Arc<str>> {
        self.cluster.as_ref().and_then(|(cluster, _)| cluster.name.as_ref())
    }

    /// Makes work of every change. `each` hears of every change that makes work, before the work is queued.
    pub(crate) fn map_changes<R: WorkKey>(
        self,
        rules: &Arc<Rules<R>>,
        sink: &Arc<WorkSink<R>>,
        each: Each,
    ) -> WatchTask {
        let cluster = self.cluster_name().cloned();
        let wrote = self.cluster.map(|(cluster, wrote)| (wrote, cluster.client));
        let (rules, sink, informer) = (Arc::clone(rules), Arc::clone(sink), self.informer);
        Mapper { rules, sink, cluster, wrote, each, informer }.start()
    }
}

/// What hears of every change that makes work.
pub(crate) type Each = Box<dyn Fn(&Change<Object>, Option<&Arc<str>>) + Send>;

struct Mapper<R> {
    rules: Arc<Rules<R>>,
    sink: Arc<WorkSink<R>>,
    cluster: Option<Arc<str>>,
    wrote: Option<(Wrote, Client)>,
    each: Each,
    informer: Informer,
}

impl<R: WorkKey> Mapper<R> {
    fn start(self) -> WatchTask {
        let informer = &self.informer;
        let status = informer.watch_status();
        let source = status.borrow().first().map_or("source", |status| &status.name).to_owned();
        let name: Arc<str> = match &self.cluster {
            Some(cluster) => format!("{cluster}:{source}").into(),
            None => source.into(),
        };
        let subscription = informer.subscribe(&self.sink.controller);
        let synced = subscription.synced().boxed().shared();
        let supervisor = self.sink.supervisor.clone();
        let (task, state) = (format!("feed {name}"), (self, subscription, Arc::clone(&name)));
        let task = tokio::spawn(async move {
            let mapped = supervisor
                .run_with(&task, state, |(mapper, changes, source)| Box::pin(mapper.run(changes, source)));
            mapped.await;
        });
        WatchTask { name, status, synced, task: AbortOnDropHandle::new(task) }
    }

    async fn run(&mut self, subscription: &mut Subscription, source: &Arc<str>) {
        let mut turn: u32 = 0;
        while let Some(change) = subscription.next().await {
            // A mistake of ours, for user code is caught where it is called; it costs this change and not all that follow.
            self.sink.supervisor.caught("feed", &change.key, || self.make_work(&change, source));
            turn = turn.wrapping_add(1);
            if turn.is_multiple_of(TURN) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn make_work(&self, change: &Change<Object>, source: &Arc<str>) {
        let work = self.rules.work(change, self.cluster.as_ref());
        if work.is_empty() {
            return;
        }
        (self.each)(change, self.cluster.as_ref());
        let own_write = self.is_own_write(change);
        // Of a source that is made of others, the one that it came from.
        let origin = change.newest().and_then(|object| self.informer.origin(object.version()));
        let source = origin.as_ref().unwrap_or(source);
        let base = self.rules.priority.unwrap_or(self.sink.priority);
        let priority = if change.delivery == Delivery::Live {
            base
        } else {
            Priority(base.0.saturating_add(Priority::LOW.0))
        };
        for item in work {
            if own_write {
                self.sink.hot_loops.note(&item, source, change);
            }
            let cause = Cause {
                source: Arc::clone(source),
                object: change.key.clone(),
                change: change.kind(),
                initial: change.delivery == Delivery::Initial,
                own_write,
            };
            self.sink.causes.note(&item, cause);
            self.sink.queue.add_with(item, Add::from(priority));
        }
    }

    fn is_own_write(&self, change: &Change<Object>) -> bool {
        let (Some((wrote, client)), Some(new)) = (&self.wrote, &change.new) else { return false };
        change.kind() == ChangeKind::Modified && wrote(client, &change.key, new.version())
    }
}

/// A cluster and a key.
type Name = (Option<Arc<str>>, Key);

/// The last states of objects that are gone and whose deletion has not been reconciled yet.
#[derive(Default)]
pub(crate) struct Gone {
    last: Mutex<HashMap<Name, Object>>,
}

impl Gone {
    /// Takes note of a change: of a deletion its last state, of anything else that there is nothing to be told.
    pub(crate) fn note(&self, change: &Change<Object>, cluster: Option<&Arc<str>>) {
        let name = (cluster.cloned(), change.key.clone());
        match (&change.old, &change.new) {
            (Some(last), None) => drop(self.last.lock().insert(name, last.clone())),
            _ => drop(self.last.lock().remove(&name)),
        }
    }

    pub(crate) fn get(&self, cluster: Option<&Arc<str>>, key: &Key) -> Option<Object> {
        self.last.lock().get(&(cluster.cloned(), key.clone())).cloned()
    }

    /// This state has been told. A newer one stays.
    pub(crate) fn forget(&self, cluster: Option<&Arc<str>>, key: &Key, told: &Object) {
        let mut last = self.last.lock();
        let name = (cluster.cloned(), key.clone());
        if last.get(&name).is_some_and(|last| last.is_same_state(told)) {
            last.remove(&name);
        }
    }
}
