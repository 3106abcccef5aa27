use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::Sleep;
use crate::queue::Queue;
use crate::state::State;

/// The keys that were left when a queue was drained. Each key is in one of the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Left<K> {
    /// Ready, never started, in order of priority and then age.
    pub queued: Vec<K>,
    /// Waiting for a timer: delayed adds, requeues and retries, in no order.
    pub delayed: Vec<K>,
    /// Still running when the grace was over; empty without one.
    pub running: Vec<K>,
}

impl<K> Left<K> {
    /// Whether nothing was left.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.delayed.is_empty() && self.running.is_empty()
    }
}

/// The future of [`Queue::drain`]. It may be dropped at any time; the queue stays shut down.
#[must_use = "does not wait unless awaited"]
pub struct Drain<'a, K> {
    queue: &'a Queue<K>,
    /// Among the drains, once it has had to wait.
    waiter: Option<usize>,
    grace: Option<Sleep>,
}

impl<'a, K> Drain<'a, K> {
    pub(crate) fn new(queue: &'a Queue<K>, grace: Option<Duration>) -> Self {
        queue.shutdown();
        let shared = &queue.shared;
        let grace = grace.map(|grace| {
            let nanos = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
            shared.clock.sleep_until(shared.instant(shared.now().saturating_add(nanos)))
        });
        Drain { queue, waiter: None, grace }
    }
}

impl<K: Clone> Future for Drain<'_, K> {
    type Output = Left<K>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Left<K>> {
        let this = &mut *self;
        let over = this.grace.as_mut().is_some_and(|grace| grace.as_mut().poll(cx).is_ready());
        let waiter = &mut this.waiter;
        // A waker that is no longer needed comes out of the lock to be dropped: that may run foreign code.
        let (polled, _old) = this.queue.shared.with_inner(|inner| {
            if over || inner.state.counts().running == 0 {
                return (Poll::Ready(left(&inner.state)), None);
            }
            let waker = cx.waker().clone();
            let old = match waiter.and_then(|id| inner.drains.get_mut(id)) {
                Some(old) => Some(mem::replace(old, waker)),
                None => {
                    *waiter = Some(inner.drains.insert(waker));
                    None
                }
            };
            (Poll::Pending, old)
        });
        polled
    }
}

fn left<K: Clone>(state: &State<K>) -> Left<K> {
    Left {
        queued: state.queued_keys().cloned().collect(),
        delayed: state.delayed_keys().cloned().collect(),
        running: state.running_keys().cloned().collect(),
    }
}

impl<K> Drop for Drain<'_, K> {
    fn drop(&mut self) {
        let Some(id) = self.waiter.take() else { return };
        let _old = self.queue.shared.with_inner(|inner| inner.drains.try_remove(id));
    }
}

impl<K> fmt::Debug for Drain<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("waiting", &self.waiter.is_some()).finish_non_exhaustive()
    }
}
