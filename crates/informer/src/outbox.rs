use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use watchkeeper_core::Change;

use crate::metrics::SubscriberMetrics;
use crate::object::Object;
use crate::pending::Pending;
use crate::store::State;

/// Where the writer leaves what one subscriber has yet to see.
///
/// Locked only while the store is locked (by the writer for writing, by the subscriber for reading), always in this
/// order; so an entry and the state it points to are seen together.
pub(crate) struct Outbox {
    pending: Mutex<Pending>,
    wake: Notify,
    closed: AtomicBool,
    synced: watch::Sender<bool>,
    pub(crate) metrics: SubscriberMetrics,
}

impl Outbox {
    pub(crate) fn new(metrics: SubscriberMetrics) -> Self {
        Self {
            pending: Mutex::new(Pending::new()),
            wake: Notify::new(),
            closed: AtomicBool::new(false),
            synced: watch::Sender::new(false),
            metrics,
        }
    }

    /// An object was put. Called with the store locked for writing.
    pub(crate) fn put(&self, new: &Object, old: Option<&Object>, stamp: u32) {
        let mut pending = self.pending.lock();
        let joined = pending.put(new, old, stamp);
        self.count(&pending, joined);
    }

    /// An object is gone. Called with the store locked for writing.
    pub(crate) fn delete(&self, last: &Object, stamp: u32) {
        let mut pending = self.pending.lock();
        let joined = pending.delete(last, stamp);
        self.count(&pending, joined);
    }

    /// Counted by the writer: a subscriber that has stalled does not count itself.
    fn count(&self, pending: &Pending, joined: bool) {
        self.metrics.pending.set(pending.len() as i64);
        if joined {
            self.metrics.coalesced.inc();
        }
    }

    /// Shows every object of the store (again): to a new subscriber as unseen, else as a resync.
    pub(crate) fn show_all(&self, state: &State, as_new: bool, stamp: u32) {
        let mut pending = self.pending.lock();
        for object in state.objects() {
            if as_new {
                pending.put(object, None, stamp);
            } else {
                pending.show_again(object, stamp);
            }
        }
        self.metrics.pending.set(pending.len() as i64);
    }

    /// All of the first snapshot is in the store.
    pub(crate) fn initial_complete(&self) {
        self.pending.lock().initial_complete();
    }

    /// Takes the next change. Called with the store locked for reading.
    pub(crate) fn take(&self, state: &State) -> Option<(Change<Object>, u32)> {
        self.pending.lock().take(|key| state.get(key).cloned())
    }

    /// The subscriber is back for more: what it was given before, it has seen.
    pub(crate) fn note_progress(&self) {
        let (over, waiting) = {
            let mut pending = self.pending.lock();
            (pending.initial_over(), pending.len())
        };
        self.metrics.pending.set(waiting as i64);
        if over {
            self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
    }

    /// Tells the subscriber that there may be something new.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Nothing will come any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.metrics.pending.set(0);
        self.wake.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }
}
