//! A clock that stands still until it is told to move on.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::{Clock, Sleep};

#[derive(Clone)]
pub(crate) struct ManualClock {
    epoch: Instant,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    now: Duration,
    sleepers: Vec<(u64, Duration, Option<Waker>)>,
    made: u64,
}

impl ManualClock {
    pub(crate) fn new() -> Self {
        ManualClock { epoch: Instant::now(), inner: Arc::default() }
    }

    pub(crate) fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut inner = self.inner.lock().unwrap();
            inner.now += by;
            let now = inner.now;
            inner
                .sleepers
                .iter_mut()
                .filter(|(_, at, _)| *at <= now)
                .filter_map(|(_, _, w)| w.take())
                .collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How many sleeps are going on.
    pub(crate) fn sleepers(&self) -> usize {
        self.inner.lock().unwrap().sleepers.len()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.epoch + self.inner.lock().unwrap().now
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        let mut inner = self.inner.lock().unwrap();
        inner.made += 1;
        let id = inner.made;
        inner.sleepers.push((id, deadline - self.epoch, None));
        Box::pin(Sleeper { id, clock: self.clone() })
    }
}

struct Sleeper {
    id: u64,
    clock: ManualClock,
}

impl Future for Sleeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.inner.lock().unwrap();
        let now = inner.now;
        let (_, at, waker) = inner.sleepers.iter_mut().find(|(id, ..)| *id == self.id).unwrap();
        if *at <= now {
            return Poll::Ready(());
        }
        *waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.clock.inner.lock().unwrap().sleepers.retain(|(id, ..)| *id != self.id);
    }
}
