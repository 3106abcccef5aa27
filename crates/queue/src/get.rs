use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::clock::Sleep;
use crate::job::Job;
use crate::queue::{Queue, unlock};
use crate::timers::Nanos;

/// The future of [`Queue::get`]. It may be dropped at any time without losing an item or a wake-up.
#[must_use = "does nothing unless awaited"]
pub struct Get<'a, K> {
    queue: &'a Queue<K>,
    /// Among the waiters, once it has had to wait.
    waiter: Option<u32>,
    /// While it keeps the time for all waiters.
    alarm: Option<(Nanos, Sleep)>,
}

impl<'a, K> Get<'a, K> {
    pub(crate) fn new(queue: &'a Queue<K>) -> Self {
        Get { queue, waiter: None, alarm: None }
    }

    /// Ready once `until` has come.
    fn poll_alarm(&mut self, until: Option<Nanos>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(until) = until else {
            self.alarm = None;
            return Poll::Pending;
        };
        if self.alarm.as_ref().is_none_or(|(at, _)| until < *at) {
            let shared = &self.queue.shared;
            self.alarm = Some((until, shared.clock.sleep_until(shared.instant(until))));
        }
        let Some((_, sleep)) = &mut self.alarm else {
            return Poll::Pending;
        };
        let polled = sleep.as_mut().poll(cx);
        if polled.is_ready() {
            self.alarm = None;
        }
        polled
    }
}

impl<K: Clone> Future for Get<'_, K> {
    type Output = Option<Job<K>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let mut inner = this.queue.shared.lock();
            let started = inner.state.start();
            if started.is_some() || inner.state.is_shut_down() {
                let old = this.waiter.take().and_then(|id| inner.waiters.leave(id));
                unlock(inner);
                drop(old);
                this.alarm = None;
                return Poll::Ready(started.map(|started| Job::new(this.queue.clone(), started)));
            }
            let next_timer = inner.state.next_timer();
            let (until, old) = inner.waiters.sleep(&mut this.waiter, cx.waker(), next_timer);
            unlock(inner);
            drop(old);
            if this.poll_alarm(until, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<K> Drop for Get<'_, K> {
    fn drop(&mut self) {
        let Some(id) = self.waiter.take() else { return };
        let mut inner = self.queue.shared.lock();
        let old = inner.waiters.leave(id);
        unlock(inner);
        drop(old);
    }
}

impl<K> fmt::Debug for Get<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("waiting", &self.waiter.is_some()).finish_non_exhaustive()
    }
}
