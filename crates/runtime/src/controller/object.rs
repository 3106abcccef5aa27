use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use parking_lot::RwLock;
use watchkeeper_client::{DynamicKind, DynamicObject, Kind, StaticKind};
use watchkeeper_core::{ChangeKind, Source};
use watchkeeper_description::{Resource, Right, Verbs};
use watchkeeper_informer::{AnyValue, Readable, Store};

use crate::action::Action;
use crate::context::Context;
use crate::controller::access::{Access, OfKind, OfSource, Read, typed};
use crate::controller::object_task::{Every, ObjectTask, ObjectTasks};
use crate::controller::settings::Settings;
use crate::controller::worker::Run;
use crate::controller::{Controller, ControllerBuilder, Running};
use crate::declared::{dynamic_resource, resource};
use crate::error::Result;
use crate::hot_loop::Loop;
use crate::manager::{Environment, StartError};
use crate::predicate::Predicate;
use crate::reconciler::Reconciler;
use crate::request::Request;
use crate::watch::{Origin, Rules, Watch};
use crate::watch_task::{Each, Gone, Opened};

/// The objects that a controller works on: those of a kind, or those of a source.
pub struct Primary<T: Readable> {
    inner: AnyPrimary,
    kind: PhantomData<fn(T)>,
}

/// The same, of whatever type.
struct AnyPrimary {
    origin: Origin,
    access: Arc<dyn Access>,
    /// Of a source, its store, as soon as it is open.
    store: Arc<RwLock<Option<Store>>>,
    rules: Rules<Request>,
    finalizer: Option<String>,
    cleanup: Option<Arc<dyn AnyReconciler>>,
    deleted: Option<Arc<dyn AnyReconciler>>,
    reconcile_deleting: bool,
    object_tasks: Vec<ObjectTask>,
}

impl<T: Readable> Primary<T> {
    fn new(origin: Origin, access: Arc<dyn Access>, store: Arc<RwLock<Option<Store>>>) -> Self {
        let inner = AnyPrimary {
            origin,
            access,
            store,
            rules: Rules::itself(),
            finalizer: None,
            cleanup: None,
            deleted: None,
            reconcile_deleting: false,
            object_tasks: Vec::new(),
        };
        Self { inner, kind: PhantomData }
    }

    pub(crate) fn source(source: impl Source) -> Self {
        let store = Arc::new(RwLock::new(None));
        let source: Arc<dyn Source> = Arc::new(source);
        let access = OfSource { store: Arc::clone(&store), source: Arc::clone(&source) };
        Self::new(Origin::source::<T>(source), Arc::new(access), store)
    }
}

impl<K: Kind> Primary<K> {
    pub(crate) fn kind() -> Self {
        Self::new(Origin::cluster::<K>(), Arc::new(OfKind::<K>::default()), Arc::default())
    }
}

impl Primary<DynamicObject> {
    pub(crate) fn dynamic(kind: DynamicKind) -> Self {
        Self::new(Origin::dynamic(kind), Arc::new(OfKind::<DynamicObject>::default()), Arc::default())
    }
}

impl<K: Kind> ControllerBuilder<Primary<K>> {
    /// Reconciles an object when an object of kind `C` that it controls changes. Declares that `C` may be applied, changed and
    /// deleted, as [`Context::children`] does.
    #[must_use]
    pub fn owns<C: StaticKind>(mut self) -> Self {
        self.declare_owned(resource::<C>());
        let rules = self.owned();
        self.watch(Watch::<C>::with_rules(rules))
    }

    /// As [`owns`](Self::owns), for a kind that is known at run time only. Its objects are then known to [`Context::children`] by
    /// their own `apiVersion` and `kind`.
    #[must_use]
    pub fn owns_dynamic(mut self, kind: &DynamicKind) -> Self {
        self.declare_owned(dynamic_resource(kind));
        let rules = self.owned();
        self.watch(Watch::dynamic_with_rules(kind.clone(), rules))
    }

    fn declare_owned(&mut self, owned: Resource) {
        let verbs = Verbs::APPLY | Verbs::DELETE;
        self.settings.rights.push(Right::of(owned, verbs, "owns them"));
        if let Some(owner) = self.primary.inner.origin.resource() {
            let why = "is the owner of others, which keeps it from going first";
            self.settings.rights.push(Right::of(owner.clone(), Verbs::UPDATE, why).on("finalizers"));
        }
    }

    /// A change of an object is work for the object of this controller's kind that controls it.
    fn owned(&self) -> Rules<Request> {
        match &self.settings.dynamic {
            Some(kind) => Rules::owned_by_dynamic(kind),
            None => Rules::owned_by::<K>(),
        }
    }

    /// Puts this finalizer on every object before it is reconciled for the first time, so that it cannot go before
    /// [`Reconciler::cleanup`] is done. The name is a domain and a word: `demo.dev/pages`.
    #[must_use]
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.primary.inner.finalizer = Some(name.into());
        self
    }

    /// Sets a finalizer, and a function that cleans up before the finalizer is removed.
    #[must_use]
    pub fn cleanup(mut self, finalizer: impl Into<String>, cleanup: impl Reconciler<K>) -> Self {
        self.primary.inner.finalizer = Some(finalizer.into());
        self.primary.inner.cleanup = Some(erased(cleanup));
        self
    }

    /// Reconciles objects also while they are being deleted, for reconcilers that mind finalizers themselves. Default:
    /// an object that is being deleted is cleaned up, if this controller has a finalizer on it, and left alone otherwise.
    #[must_use]
    pub fn reconcile_deleting(mut self) -> Self {
        self.primary.inner.reconcile_deleting = true;
        self
    }
}

impl<T: Readable> ControllerBuilder<Primary<T>> {
    /// Ignores changes of its own objects that do not pass. Of several predicates, all have to pass. Default: none.
    #[must_use]
    pub fn filter(mut self, predicate: Predicate<T>) -> Self {
        self.primary.inner.rules = self.primary.inner.rules.filter(predicate.test);
        self
    }

    /// Sets the function that is called when an object is gone; see [`Reconciler::deleted`].
    #[must_use]
    pub fn deleted(mut self, deleted: impl Reconciler<T>) -> Self {
        self.primary.inner.deleted = Some(erased(deleted));
        self
    }

    /// Calls a function for every object periodically, as long as the object exists. Apart from reconciles: it may run at the same
    /// time as one.
    #[must_use]
    pub fn every(mut self, every: Every, call: impl Reconciler<T>) -> Self {
        self.primary.inner.object_tasks.push(ObjectTask::timer(every, erased(call)));
        self
    }

    /// Runs a task for every object, from when the object appears until it is gone or being deleted. Then
    /// [`Context::cancelled`] resolves, and the task is awaited, for as long as `grace`, before it is dropped. A task that
    /// returns is not started again; one that fails or panics is, after the controller's back-off.
    #[must_use]
    pub fn task(mut self, grace: std::time::Duration, task: impl Reconciler<T>) -> Self {
        self.primary.inner.object_tasks.push(ObjectTask::task(grace, erased(task)));
        self
    }

    /// Sets the reconciler of an object. Completes the controller.
    pub fn reconcile(self, reconciler: impl Reconciler<T>) -> Controller {
        let Self { settings, primary } = self;
        primary.inner.controller(settings, erased(reconciler))
    }
}

impl AnyPrimary {
    fn controller(self, mut settings: Settings<Request>, reconciler: Arc<dyn AnyReconciler>) -> Controller {
        let name = settings.name.clone();
        if let Some(resource) = self.origin.resource() {
            settings.rights.push(Right::of(resource.clone(), Verbs::READ, "works on them"));
            if self.finalizer.is_some() {
                settings.rights.push(Right::of(resource.clone(), Verbs::PATCH, "has a finalizer on them"));
            }
        }
        let declared = settings.declared(self.origin.resource().cloned(), self.finalizer.clone());
        let start = move |environment: &Environment| self.start(settings, environment, reconciler);
        Controller { name, declared, start: Box::new(start) }
    }

    fn start(
        self,
        mut settings: Settings<Request>,
        environment: &Environment,
        reconciler: Arc<dyn AnyReconciler>,
    ) -> Result<Running, StartError> {
        let primary = self;
        let alarm = alarm(environment, &settings, &primary.access);
        let mut prepared = settings.prepare(environment, alarm)?;
        let opened = primary
            .origin
            .open(&prepared.clusters, &environment.informers)
            .map_err(|error| StartError::Watch { controller: settings.name.clone(), error })?;
        if let [Opened { informer, cluster: None }] = opened.as_slice() {
            *primary.store.write() = Some(informer.store());
        }
        let shared = Arc::new(ObjectTasks {
            access: Arc::clone(&primary.access),
            controller: Arc::clone(&prepared.sink.controller),
            clusters: settings.clusters_of(environment),
            recorder: environment.recorder.clone(),
            backoff: settings.backoff,
            metrics: environment.metrics.controller(&settings.name),
            supervisor: environment.metrics.supervisor.clone(),
        });
        let object_tasks =
            primary.object_tasks.into_iter().map(|task| shared.runner(task, &opened)).collect();
        let gone = Arc::new(Gone::default());
        let rules = Arc::new(primary.rules);
        for opened in opened {
            let (noted, queue) = (Arc::clone(&gone), prepared.sink.queue.clone());
            let each: Each = Box::new(move |change, cluster| {
                noted.note(change, cluster);
                if change.kind() == ChangeKind::Deleted {
                    // What earlier runs of the object left behind is of no use to the next one of that name.
                    queue.forget(&Request::at(cluster, change.key.clone()));
                }
            });
            prepared.watch_tasks.push(opened.map_changes(&rules, &prepared.sink, each));
        }
        let run = ObjectRun {
            access: primary.access,
            gone,
            cleanup: primary.cleanup,
            deleted: primary.deleted,
            finalizer: primary.finalizer,
            reconcile_deleting: primary.reconcile_deleting,
            reconciler,
        };
        let run = Arc::new(run);
        let run: Run<Request> = Arc::new(move |request, cx| {
            let run = Arc::clone(&run);
            Box::pin(async move { run.run(&request, cx).await })
        });
        Ok(settings.run(prepared, environment, run, Request::cluster, object_tasks))
    }
}

/// What happens when an object keeps its own controller busy: a metric, a line in the log, and an event on the object.
fn alarm(
    environment: &Environment,
    settings: &Settings<Request>,
    access: &Arc<dyn Access>,
) -> crate::hot_loop::Alarm<Request> {
    let (metrics, recorder) = (environment.metrics.clone(), environment.recorder.clone());
    let (clusters, access, controller) =
        (settings.clusters_of(environment), Arc::clone(access), settings.name.clone());
    Box::new(move |request, hot: &Loop| {
        metrics.hot_loop(&controller, request, hot);
        let Some(client) = clusters.get(request.cluster()).cloned() else { return };
        let (access, recorder) = (Arc::clone(&access), recorder.clone());
        let (name, request, hot) = (request.to_string(), request.clone(), hot.clone());
        // Reading the object may take a moment, and this is called by the one who delivers changes.
        let supervisor = metrics.supervisor.clone();
        let told = async move {
            if let Ok(Some(Read { object, .. })) = access.read(&client, request.key()).await {
                let Loop { source, field, times } = &hot;
                let note = format!(
                    "Reconciled {times} times within a minute because of own writes to {source}: {field}"
                );
                access.record_hot_loop(&recorder, &object, note);
            }
        };
        tokio::spawn(async move { supervisor.caught_async("hot-loop", &name, told).await });
    })
}

/// A reconciler, whatever it reconciles.
pub(crate) trait AnyReconciler: Send + Sync {
    fn reconcile(&self, object: AnyValue, cx: Context) -> BoxFuture<'_, Result<Action>>;
    fn cleanup(&self, object: AnyValue, cx: Context) -> BoxFuture<'_, Result<Action>>;
    fn deleted(&self, last: AnyValue, cx: Context) -> BoxFuture<'_, Result<Action>>;
}

/// The reconciler of a type, for those who do not know the type.
struct Erased<T, R> {
    reconciler: R,
    kind: PhantomData<fn(T)>,
}

fn erased<T: Readable>(reconciler: impl Reconciler<T>) -> Arc<dyn AnyReconciler> {
    Arc::new(Erased { reconciler, kind: PhantomData })
}

impl<T: Readable, R: Reconciler<T>> AnyReconciler for Erased<T, R> {
    fn reconcile(&self, object: AnyValue, cx: Context) -> BoxFuture<'_, Result<Action>> {
        match typed(object) {
            Ok(object) => Box::pin(self.reconciler.reconcile(Arc::clone(&object), cx.about(object))),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn cleanup(&self, object: AnyValue, cx: Context) -> BoxFuture<'_, Result<Action>> {
        match typed(object) {
            Ok(object) => Box::pin(self.reconciler.cleanup(Arc::clone(&object), cx.about(object))),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn deleted(&self, last: AnyValue, cx: Context) -> BoxFuture<'_, Result<Action>> {
        match typed(last) {
            Ok(last) => Box::pin(self.reconciler.deleted(Arc::clone(&last), cx.about(last))),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

/// What is done for one request: which of the reconciler's functions is called, and what happens to the finalizer.
struct ObjectRun {
    access: Arc<dyn Access>,
    gone: Arc<Gone>,
    finalizer: Option<String>,
    cleanup: Option<Arc<dyn AnyReconciler>>,
    deleted: Option<Arc<dyn AnyReconciler>>,
    reconcile_deleting: bool,
    reconciler: Arc<dyn AnyReconciler>,
}

impl ObjectRun {
    async fn run(&self, request: &Request, cx: Context) -> Result<Action> {
        let cx = cx.under(request.key());
        match self.access.read(cx.client(), request.key()).await? {
            None => self.gone(request, cx).await,
            Some(Read { object, .. }) if self.access.is_deleting(&object) => self.deleting(object, cx).await,
            Some(Read { object, origin }) => self.present(object, cx.with_origin(origin)).await,
        }
    }

    async fn present(&self, mut object: AnyValue, cx: Context) -> Result<Action> {
        if let Some(finalizer) = &self.finalizer
            && !self.access.has_finalizer(&object, finalizer)
        {
            object = self.access.add_finalizer(cx.client(), object, finalizer).await?;
        }
        self.reconciler.reconcile(object, cx).await
    }

    async fn deleting(&self, object: AnyValue, cx: Context) -> Result<Action> {
        match &self.finalizer {
            Some(finalizer) if self.access.has_finalizer(&object, finalizer) => {
                let client = cx.client().clone();
                let action = match &self.cleanup {
                    Some(cleanup) => cleanup.reconcile(Arc::clone(&object), cx).await?,
                    None => self.reconciler.cleanup(Arc::clone(&object), cx).await?,
                };
                if action.after.is_none() {
                    self.access.remove_finalizer(&client, &object, finalizer).await?;
                }
                Ok(action)
            }
            _ if self.reconcile_deleting => self.reconciler.reconcile(object, cx).await,
            _ => Ok(Action::done()),
        }
    }

    async fn gone(&self, request: &Request, cx: Context) -> Result<Action> {
        let cluster = request.cluster_name();
        let Some(last) = self.gone.get(cluster, request.key()) else { return Ok(Action::done()) };
        let action = match last.value() {
            Ok(last) => match &self.deleted {
                Some(deleted) => deleted.reconcile(last, cx).await?,
                None => self.reconciler.deleted(last, cx).await?,
            },
            // There is nothing that could be shown to the reconciler.
            Err(error) => {
                tracing::warn!(%error, "last state of a deleted object cannot be decoded");
                Action::done()
            }
        };
        self.gone.forget(cluster, request.key(), &last);
        Ok(action)
    }
}

impl<T: Readable> std::fmt::Debug for Primary<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Primary").field("finalizer", &self.inner.finalizer).finish_non_exhaustive()
    }
}
