use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Of the time of the last event, the bits that say whose connection it is.
const STANDING: u64 = 0b11;
const AUTHENTICATED: u64 = 0b01;
const EVICTED: u64 = 0b10;

/// What is known about a connection: whether its client has been authenticated, when something happened last, and how
/// many requests run.
///
/// All of it is atomic, so that requests of one connection do not wait for each other, and so that a connection is either
/// evicted or used, never both.
pub(crate) struct ConnectionState {
    /// Where it comes from; `None` for this machine.
    pub(crate) address: Option<IpAddr>,
    /// From when the times of events are counted.
    epoch: Instant,
    /// When something happened last (it was opened, finished its handshake, began or ended a request), in microseconds
    /// since `epoch`, above the two bits of `STANDING`.
    last: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    evicted: Notify,
}

/// Why a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Another takes its place.
    Evicted,
    /// Nothing was asked for too long.
    Idle,
}

/// How long a connection may be idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    /// Before its first request.
    pub(crate) first: Duration,
    /// That of a stranger, between requests.
    pub(crate) stranger: Duration,
    /// That of somebody who was authenticated, between requests.
    pub(crate) authenticated: Duration,
}

/// One request that runs until this is dropped.
pub(crate) struct Run(Arc<ConnectionState>);

impl ConnectionState {
    pub(crate) fn new(address: Option<IpAddr>, epoch: Instant) -> Self {
        let state = Self {
            address,
            epoch,
            last: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            evicted: Notify::new(),
        };
        state.touch();
        state
    }

    /// Notes that something happened.
    pub(crate) fn touch(&self) {
        let micros = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX >> 2);
        let update = |last: u64| Some(micros << 2 | last & STANDING);
        // It cannot fail: the update always has a value.
        let _ = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
    }

    /// Begins a request.
    pub(crate) fn begin(self: &Arc<Self>) -> Run {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.touch();
        Run(Arc::clone(self))
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.last.load(Ordering::Acquire) & STANDING == AUTHENTICATED
    }

    /// Makes it the connection of somebody who was authenticated. False if it has been evicted.
    pub(crate) fn authenticate(&self) -> bool {
        self.last.fetch_or(AUTHENTICATED, Ordering::AcqRel) & EVICTED == 0
    }

    /// When something happened last.
    pub(crate) fn last(&self) -> Instant {
        self.epoch + Duration::from_micros(self.last.load(Ordering::Acquire) >> 2)
    }

    /// Tells the connection to close, unless something has happened since `seen`.
    pub(crate) fn evict(&self, seen: Instant) -> bool {
        let word = self.last.load(Ordering::Acquire);
        let unchanged = word & STANDING == 0 && self.epoch + Duration::from_micros(word >> 2) <= seen;
        let evicted = unchanged
            && self.last.compare_exchange(word, word | EVICTED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if evicted {
            self.evicted.notify_one();
        }
        evicted
    }

    /// Waits until the connection has to make room for another.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Whether no request has come yet.
    #[cfg(feature = "http2")]
    pub(crate) fn is_fresh(&self) -> bool {
        self.begun.load(Ordering::Relaxed) == 0
    }

    /// How many requests have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether no request is running.
    pub(crate) fn is_idle(&self) -> bool {
        // Ended first: one that begins and ends in between must not make it look as if none ran.
        let ended = self.ended.load(Ordering::Acquire);
        ended == self.begun.load(Ordering::Relaxed)
    }

    /// Waits until the connection has been idle for too long, or has to make room for another.
    pub(crate) async fn over(&self, limits: Idle) -> Over {
        loop {
            let limit = match self.begun.load(Ordering::Relaxed) {
                _ if self.is_authenticated() => limits.authenticated,
                0 => limits.first,
                _ => limits.stranger,
            };
            let now = Instant::now();
            // A request that runs now ends later than now, and its connection is idle from then on.
            let deadline = if self.is_idle() { self.last() + limit } else { now + limit };
            if deadline <= now {
                return Over::Idle;
            }
            tokio::select! {
                () = self.evicted() => return Over::Evicted,
                () = sleep_until(deadline) => {}
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.touch();
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}
