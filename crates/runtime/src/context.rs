use std::sync::Arc;

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use watchkeeper_client::{Children, Client, Kind, StatusWriter};
use watchkeeper_events::{Event, Recorder};
use watchkeeper_queue::Priority;

use crate::cause::Cause;
use crate::clusters::Clusters;
use crate::error::{Error, Result};
use crate::reference::reference;

/// What a reconcile has at hand: the client of its cluster, why it runs, and when it has to stop.
///
/// A handle; clones are cheap and may be moved into tasks. They should not outlive the reconcile.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) controller: Arc<str>,
    pub(crate) client: Client,
    pub(crate) clusters: Clusters,
    pub(crate) recorder: Recorder,
    pub(crate) attempt: u32,
    pub(crate) priority: Priority,
    pub(crate) cause: Option<Cause>,
    pub(crate) cancelled: CancellationToken,
}

impl Context {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// The client of the cluster that the object is in. Its reads show what it wrote.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The client of another cluster, by the name under which the manager knows it.
    pub fn cluster(&self, name: &str) -> Result<&Client> {
        self.inner.clusters.get(Some(name)).ok_or_else(|| {
            Error::message(format!("the manager knows no cluster {name:?}: add it with Manager::cluster"))
        })
    }

    /// The objects that `owner` wants to exist: applies, adopts and prunes. See [`Client::children`].
    pub fn children<O: Kind>(&self, owner: &O) -> Children<'_> {
        self.inner.client.children(owner)
    }

    /// Writes the status of an object, if something in it moved. See [`Client::status`].
    pub fn status<'a, K: Kind>(&'a self, object: &'a K) -> StatusWriter<'a, K> {
        self.inner.client.status(object)
    }

    /// Tells people something about an object, as `kubectl describe` and `kubectl events` show it. Never waits and
    /// never fails: events are written in the background, repeated ones are counted, too many are dropped.
    pub fn event<K: Kind>(&self, object: &K, event: Event) {
        self.inner.recorder.event(&reference(object), event);
    }

    /// The name of the controller that runs this.
    pub fn controller(&self) -> &str {
        &self.inner.controller
    }

    /// How often in a row this has failed before; 0 at first.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// The priority with which this run was asked for.
    pub fn priority(&self) -> Priority {
        self.inner.priority
    }

    /// The newest change that asked for this run, if it was a change. For logs and traces, not for decisions.
    pub fn cause(&self) -> Option<&Cause> {
        self.inner.cause.as_ref()
    }

    /// Resolves when this run has to end: the program stops, the lead is lost. The run is dropped at its next await a
    /// little later in any case.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.inner.cancelled.cancelled()
    }

    /// Whether this run has to end.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.is_cancelled()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.inner.controller)
            .field("attempt", &self.inner.attempt)
            .field("cause", &self.inner.cause)
            .finish_non_exhaustive()
    }
}
