use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use watchkeeper_core::Change;

use crate::informer::Inner;
use crate::object::{Object, Untyped};
use crate::outbox::Outbox;

/// The changes of a store, as one subscriber sees them.
///
/// # What it promises
///
/// - For each key, the states come in order and end in the newest one. Every change is delivered after the store and all
///   its indexes show it.
/// - What was there before is delivered first, as additions with [`Delivery::Initial`](watchkeeper_core::Delivery::Initial), each
///   object once. [`synced`](Self::synced) resolves when the subscriber has seen all of that.
/// - Old and new state are both there. A delete carries the last state that is known, also if it was missed and only
///   noticed by a later snapshot. A delete and a re-create are two changes.
/// - A subscriber that is slow delays nobody. What waits for it is at most one entry per key; several changes of a key
///   become one, from the state it saw last to the newest. A key that comes and goes unseen is not reported.
///
/// # What it does not promise
///
/// Not every state of an object, no order between objects, and not that `new` is still the newest state when it is
/// looked at.
///
/// Dropping a subscription ends it. While it is alive, the informer goes on.
pub struct Subscription<K = Untyped> {
    changes: Changes,
    kind: PhantomData<fn() -> K>,
}

/// The same, of whatever type.
struct Changes {
    inner: Arc<Inner>,
    outbox: Arc<Outbox>,
    resync: Option<Resync>,
}

struct Resync {
    every: Duration,
    due: Instant,
}

impl<K> Subscription<K> {
    pub(crate) fn new(inner: Arc<Inner>, name: &str) -> Self {
        let outbox = Arc::new(Outbox::new(inner.shared.metrics.subscriber(name)));
        inner.shared.attach(&outbox);
        Self { changes: Changes { inner, outbox, resync: None }, kind: PhantomData }
    }

    /// From now on, every object is shown again after each `period`, with
    /// [`Delivery::Resync`](watchkeeper_core::Delivery::Resync), unless a change of it waits anyway. Local: nobody is asked.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        let due = Instant::now().checked_add(period);
        self.changes.resync = due.map(|due| Resync { every: period, due });
        self
    }

    /// The next change; `None` when the informer was stopped. Cancel-safe: a change is taken or it is not.
    pub async fn next(&mut self) -> Option<Change<Object<K>>> {
        self.changes.next().await.map(|change| change.map(Object::typed))
    }

    /// The next change, if there is one now.
    pub fn try_next(&mut self) -> Option<Change<Object<K>>> {
        self.changes.try_next().map(|change| change.map(Object::typed))
    }

    /// Resolves when this subscriber has seen everything that was there when it came (it has, when it asks for the next
    /// change after the last of them), or when the informer is stopped: then the answer is `false`.
    pub fn synced(&self) -> impl Future<Output = bool> + Send + 'static {
        self.changes.synced()
    }

    /// Calls a handler for every change, in a task of its own, one change after the other. A handler that panics is
    /// counted and called again for the next change.
    ///
    /// ```no_run
    /// # use watchkeeper_informer::Informer;
    /// # #[derive(serde::Deserialize)] struct Route {}
    /// # async fn example(routes: Informer<Route>) {
    /// let handler = routes.subscribe("log").handle(|change| async move {
    ///     println!("{} {}", change.kind(), change.key);
    /// });
    /// handler.synced().await;
    /// // Dropping the handler ends it; this also waits for the change that is being handled.
    /// handler.stop().await;
    /// # }
    /// ```
    pub fn handle<F, R>(self, mut handler: F) -> Handler
    where
        F: FnMut(Change<Object<K>>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.changes.handle(Box::new(move |change| handler(change.map(Object::typed)).boxed()))
    }
}

/// What is called for each change.
type Call = Box<dyn FnMut(Change<Object>) -> BoxFuture<'static, ()> + Send>;

impl Changes {
    async fn next(&mut self) -> Option<Change<Object>> {
        loop {
            self.outbox.note_progress();
            if self.resync.as_ref().is_some_and(|resync| resync.due <= Instant::now()) {
                self.show_again();
            }
            if let Some(change) = self.try_next() {
                return Some(change);
            }
            if self.outbox.is_closed() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.outbox.woken() => {}
                () = due(self.resync.as_ref()) => {}
            }
        }
    }

    fn try_next(&mut self) -> Option<Change<Object>> {
        let shared = &self.inner.shared;
        let (change, stamp) = self.outbox.take(&shared.state.read())?;
        let delay = shared.stamp().wrapping_sub(stamp);
        self.outbox.metrics.delay.observe(f64::from(delay) / 1e3);
        self.outbox.metrics.delivered.inc();
        Some(change)
    }

    fn synced(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut synced = self.outbox.synced();
        async move { synced.wait_for(|synced| *synced).await.is_ok() }
    }

    fn handle(self, call: Call) -> Handler {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let synced = self.synced();
        let task = tokio::spawn(async move {
            let supervisor = self.inner.shared.metrics.supervisor().clone();
            let name = format!("handler of {}", self.inner.shared.name);
            let state = (self, call, stopped);
            let handled = supervisor.run_with(&name, state, |(changes, call, stopped)| {
                Box::pin(changes.handle_all(call, stopped))
            });
            handled.await;
        });
        Handler { stop, task, synced: synced.boxed().shared() }
    }

    async fn handle_all(&mut self, call: &mut Call, stopped: &mut tokio::sync::watch::Receiver<bool>) {
        loop {
            // An error means that the handle was dropped, which stops as well.
            let change = tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => break,
                change = self.next() => change,
            };
            let Some(change) = change else { break };
            let key = change.key.clone();
            let called = AssertUnwindSafe(async { call(change).await });
            if called.catch_unwind().await.is_err() {
                self.outbox.metrics.panics.inc();
                tracing::error!(informer = %self.inner.shared.name, object = %key, "handler panicked");
            }
        }
    }

    fn show_again(&mut self) {
        if let Some(resync) = &mut self.resync {
            // It was possible to wait as long before.
            resync.due = Instant::now().checked_add(resync.every).unwrap_or(resync.due);
            let shared = &self.inner.shared;
            self.outbox.show_all(&shared.state.read(), false, shared.stamp());
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.inner.shared.detach(&self.outbox);
    }
}

async fn due(resync: Option<&Resync>) {
    match resync {
        Some(resync) => sleep_until(resync.due).await,
        None => std::future::pending().await,
    }
}

/// A running handler. Dropping it stops the handler without waiting.
pub struct Handler {
    stop: tokio::sync::watch::Sender<bool>,
    task: JoinHandle<()>,
    synced: futures_util::future::Shared<futures_util::future::BoxFuture<'static, bool>>,
}

impl Handler {
    /// As [`Subscription::synced`]: all that was there has been handled.
    pub async fn synced(&self) -> bool {
        self.synced.clone().await
    }

    /// Stops the handler: lets the call that is running end, and makes no other. Must not be awaited by the handler
    /// itself.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        // A panic was caught inside; the task can only have ended or been cancelled with the runtime.
        let _ = self.task.await;
    }
}
