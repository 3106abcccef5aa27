use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_informer::{InformerSet, Readable};

use crate::clusters::Cluster;
use crate::request::{Request, WorkKey};
use crate::watch::{AnyWatch, Watch};
use crate::watch_task::{WatchTask, WorkSink};

/// Adds and removes watches of a controller while it runs; from [`ControllerBuilder::dynamic_watches`](crate::ControllerBuilder::dynamic_watches).
///
/// For controllers that learn what to watch from the objects that they reconcile. A handle: clones are the same
/// controller's.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_client::{DynamicKind, DynamicObject};
/// use watchkeeper_core::Key;
/// use watchkeeper_runtime::{Action, Context, Controller, Manager, Result, Watch};
/// # async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Action> { Ok(Action::done()) }
/// # async fn example() -> Result<()> {
/// let certificates = DynamicKind::namespaced("cert-manager.io", "v1", "Certificate", "certificates");
/// let controller = Controller::of::<ConfigMap>().reads_dynamic(&certificates);
/// let watches = controller.dynamic_watches();
/// let running = Manager::from_environment("maps").controller(controller.reconcile(reconcile)).start().await?;
///
/// // From now on, a map is reconciled when the certificate with its name changes.
/// let id = watches.add(Watch::dynamic(certificates, |certificate: &DynamicObject| {
///     let metadata = &certificate.metadata;
///     metadata.name.as_deref().map(|name| Key::new(metadata.namespace.as_deref(), name))
/// }))?;
/// // Not any more.
/// watches.remove(id).await;
/// running.stop().await;
/// # Ok(()) }
/// ```
pub struct DynamicWatches<R = Request> {
    state: Arc<Mutex<State<R>>>,
}

/// Names a watch that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(u64);

struct State<R> {
    next: u64,
    running: Option<Running<R>>,
    early: BTreeMap<u64, AnyWatch<R>>,
    tasks: BTreeMap<u64, Vec<WatchTask>>,
}

/// What a watch needs to be started.
struct Running<R> {
    clusters: Vec<Cluster>,
    informers: InformerSet,
    sink: Arc<WorkSink<R>>,
}

impl<R: WorkKey> DynamicWatches<R> {
    pub(crate) fn new() -> Self {
        let state = State { next: 0, running: None, early: BTreeMap::new(), tasks: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Adds a watch. What is there is work at once, at low priority. Does not wait for it; a kind that is not there yet
    /// or denied is asked for again until it is there. Before the manager runs, the watch waits for it.
    pub fn add<K: Readable>(&self, watch: Watch<K, R>) -> Result<WatchId, watchkeeper_client::Error> {
        self.add_any(watch.watch)
    }

    fn add_any(&self, watch: AnyWatch<R>) -> Result<WatchId, watchkeeper_client::Error> {
        let state = &mut *self.state.lock();
        let id = state.next;
        state.next += 1;
        match &state.running {
            Some(running) => {
                let tasks = watch.start(&running.clusters, &running.informers, &running.sink)?;
                state.tasks.insert(id, tasks);
            }
            None => drop(state.early.insert(id, watch)),
        }
        Ok(WatchId(id))
    }

    /// Removes a watch; it makes no more work after this returns. A source of its own is not asked any more, unless somebody
    /// else watches it; the cache of a kind stays, since clients read from it.
    pub async fn remove(&self, id: WatchId) {
        let tasks = {
            let mut state = self.state.lock();
            state.early.remove(&id.0);
            state.tasks.remove(&id.0)
        };
        for task in tasks.into_iter().flatten() {
            task.stop().await;
        }
    }

    pub(crate) fn connect(
        &self,
        clusters: &[Cluster],
        informers: &InformerSet,
        sink: &Arc<WorkSink<R>>,
    ) -> Result<(), watchkeeper_client::Error> {
        let state = &mut *self.state.lock();
        for (id, watch) in std::mem::take(&mut state.early) {
            state.tasks.insert(id, watch.start(clusters, informers, sink)?);
        }
        let (clusters, informers, sink) = (clusters.to_vec(), informers.clone(), Arc::clone(sink));
        state.running = Some(Running { clusters, informers, sink });
        Ok(())
    }

    /// The end: no more watches.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.running = None;
        state.early.clear();
        state.tasks.clear();
    }
}

impl<R> Clone for DynamicWatches<R> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<R> std::fmt::Debug for DynamicWatches<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamicWatches").field("watches", &self.state.lock().tasks.len()).finish()
    }
}
