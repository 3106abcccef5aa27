use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use watchkeeper_client::{Children, Client, Kind, StatusWriter, named, named_after};
use watchkeeper_core::{Key, ObjectStatus, Source, Version};
use watchkeeper_queue::Priority;

use crate::cause::Cause;
use crate::clusters::Clusters;
use crate::error::{Error, Result};
use crate::events::Recorder;
#[cfg(feature = "events")]
use crate::events::{Event, record};

/// The context of a reconcile: its object, the client of its cluster, why it runs, and when it has to stop.
///
/// `K` is the type of the object. The controller of a kind hands out a `Context<K>` for one object of it; a
/// [keyed](crate::Controller::keyed) controller has no object, and its runs get a plain `Context`.
///
/// A handle: clones are cheap and may be moved into tasks. They should not outlive the reconcile.
///
/// ```
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use watchkeeper_events::Event;
/// use watchkeeper_runtime::{Action, Context, Result};
///
/// async fn reconcile(secret: Arc<Secret>, cx: Context<Secret>) -> Result<Action> {
///     let page = ConfigMap { immutable: secret.immutable, ..cx.named() };
///     if cx.children().apply([page]).await?.is_changed() {
///         cx.event(Event::normal("PageWritten", "Reconcile", "The page is up to date"));
///     }
///     Ok(Action::done())
/// }
/// ```
pub struct Context<K = ()> {
    run: Arc<Inner>,
    object: Arc<K>,
    key: Key,
    /// Where the object came from, if that is no cluster.
    origin: Option<Arc<Origin>>,
}

/// An object of a source: which one, and in which state it was given to the reconcile.
pub(crate) struct Origin {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) key: Key,
    pub(crate) version: Version,
}

pub(crate) struct Inner {
    pub(crate) controller: Arc<str>,
    pub(crate) client: Client,
    pub(crate) clusters: Clusters,
    #[cfg_attr(not(feature = "events"), allow(dead_code, reason = "records nothing"))]
    pub(crate) recorder: Recorder,
    pub(crate) attempt: u32,
    pub(crate) priority: Priority,
    pub(crate) cause: Option<Cause>,
    pub(crate) cancelled: CancellationToken,
}

impl Context {
    pub(crate) fn new(run: Inner) -> Self {
        Self { run: Arc::new(run), object: Arc::default(), key: Key::new(None, ""), origin: None }
    }

    /// The context of the same run, for the object under this key.
    pub(crate) fn under(mut self, key: &Key) -> Self {
        self.key = key.clone();
        self
    }

    /// The context of the same run, for an object that came from here.
    pub(crate) fn with_origin(mut self, origin: Option<Arc<Origin>>) -> Self {
        self.origin = origin;
        self
    }

    /// The context of the same run, with the object that the run is for.
    pub(crate) fn about<K>(self, object: Arc<K>) -> Context<K> {
        Context { run: self.run, object, key: self.key, origin: self.origin }
    }
}

/// What a run can do for its own object.
impl<K: Kind> Context<K> {
    /// The objects that this object wants to exist: applies, adopts and prunes them. See [`Client::children`].
    pub fn children(&self) -> Children<'_> {
        self.run.client.children(&*self.object)
    }

    /// Writes the status of this object, if it differs. See [`Client::status`].
    pub fn status(&self) -> StatusWriter<'_, K> {
        self.run.client.status(&*self.object)
    }

    /// Records an event about this object, as `kubectl describe` and `kubectl events` show it. Never waits and never
    /// fails: events are written in the background, repeated ones are counted, too many are dropped.
    #[cfg(feature = "events")]
    pub fn event(&self, event: Event) {
        self.event_for(&*self.object, event);
    }

    /// An empty object with the name and the namespace of this object, to be filled in.
    pub fn named<C: Kind + Default>(&self) -> C {
        named(&*self.object)
    }

    /// An empty object in the namespace of this object, with its name and a suffix: `web` and `cache` make `web-cache`.
    pub fn named_after<C: Kind + Default>(&self, suffix: &str) -> C {
        named_after(&*self.object, suffix)
    }
}

impl<K> Context<K> {
    /// The object that this run is for, in the state that the reconcile was given.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// The key of the object of this run: its namespace and name in a cluster; in another source, the key in that source. Empty in
    /// [keyed](crate::Controller::keyed) controllers, whose requests are keys of their own kind.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Writes the status of this object back to where it came from, for controllers [over](crate::Controller::over) a source that can take
    /// it. Objects of a cluster have [`status`](Self::status). It wakes no reconcile.
    ///
    /// # Errors
    ///
    /// If the source cannot take statuses, does not answer, or the object has changed since the reconcile was given it: then there will be
    /// another one.
    pub async fn write_status(&self, status: &impl Serialize) -> Result<()> {
        let Some(origin) = &self.origin else {
            return Err(Error::terminal("there is no source to write this status to: use Context::status"));
        };
        let json = serde_json::to_vec(status).map_err(Error::terminal)?;
        let Origin { source, key, version } = &**origin;
        source.write_status(ObjectStatus::new(key.clone(), version.clone(), json)).await?;
        Ok(())
    }

    /// The client of the object's cluster. Its reads show its own writes.
    pub fn client(&self) -> &Client {
        &self.run.client
    }

    /// The client of another cluster, by its name in the manager.
    pub fn cluster(&self, name: &str) -> Result<&Client> {
        self.run.clusters.get(Some(name)).ok_or_else(|| {
            Error::message(format!("the manager knows no cluster {name:?}: add it with Manager::cluster"))
        })
    }

    /// The objects that another object wants to exist. See [`Client::children`].
    pub fn children_of<O: Kind>(&self, owner: &O) -> Children<'_> {
        self.run.client.children(owner)
    }

    /// Writes the status of another object, or of a newer state of this one. See [`Client::status`].
    pub fn status_of<'a, O: Kind>(&'a self, object: &'a O) -> StatusWriter<'a, O> {
        self.run.client.status(object)
    }

    /// Records an event about another object.
    #[cfg(feature = "events")]
    pub fn event_for<O: Kind>(&self, object: &O, event: Event) {
        record(&self.run.recorder, object, event);
    }

    /// The name of the controller that runs this.
    pub fn controller(&self) -> &str {
        &self.run.controller
    }

    /// The failures of this key in a row; 0 at first.
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// The priority with which this run was asked for.
    pub fn priority(&self) -> Priority {
        self.run.priority
    }

    /// The newest change that asked for this run, if it was a change. For logs and traces, not for decisions.
    pub fn cause(&self) -> Option<&Cause> {
        self.run.cause.as_ref()
    }

    /// Resolves when this run has to end: the program stops, the lead is lost. The run is dropped at its next await a
    /// little later in any case.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.run.cancelled.cancelled()
    }

    /// Whether this run has to end.
    pub fn is_cancelled(&self) -> bool {
        self.run.cancelled.is_cancelled()
    }
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self {
            run: Arc::clone(&self.run),
            object: Arc::clone(&self.object),
            key: self.key.clone(),
            origin: self.origin.clone(),
        }
    }
}

/// Shows which run this is, never what is in the object.
impl<K> std::fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.run.controller)
            .field("attempt", &self.run.attempt)
            .field("cause", &self.run.cause)
            .finish_non_exhaustive()
    }
}
