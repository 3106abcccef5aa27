use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::MonotonicClock;

/// One term of a leader.
///
/// [`is_held`](Self::is_held) costs a look at the clock. It is true only as long as no other candidate can have taken
/// over: up to the lease duration after the last renewal that succeeded was *sent*. When the process was stopped, or the
/// machine suspended, for longer than that, it is false as soon as they go on. Once it is false it stays false; a new term
/// is a new `Leadership`.
///
/// It cannot stop what was sent while it was true. The leader steps down at the renew deadline, and what it sent before that
/// has the rest of the lease duration to arrive.
#[derive(Clone)]
pub struct Leadership(Arc<Term>);

struct Term {
    number: u64,
    clock: MonotonicClock,
    /// Until when it is held, in nanoseconds of the clock; 0 if it has ended.
    until: AtomicU64,
    ended: watch::Sender<bool>,
}

impl Leadership {
    pub(crate) fn new(number: u64, clock: MonotonicClock, until: Duration) -> Self {
        Self(Arc::new(Term {
            number,
            clock,
            until: AtomicU64::new(nanos(until)),
            ended: watch::Sender::new(false),
        }))
    }

    /// Whether the lease is held at this moment.
    pub fn is_held(&self) -> bool {
        let until = self.0.until.load(Ordering::Acquire);
        if until == 0 {
            return false;
        }
        if nanos(self.0.clock.now()) < until {
            return true;
        }
        // Once it was in doubt, a late renewal does not bring it back.
        self.end();
        false
    }

    /// The number of this term of the candidate, counted from 1.
    pub fn term(&self) -> u64 {
        self.0.number
    }

    /// Waits until the lease is not held any more.
    pub async fn lost(&self) {
        // The sender lives as long as this.
        let _ = self.0.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Extends it, unless it has ended. Returns whether it is still held.
    pub(crate) fn extend(&self, until: Duration) -> bool {
        let extended = self.0.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            (now != 0).then(|| now.max(nanos(until)))
        });
        extended.is_ok() && self.is_held()
    }

    pub(crate) fn end(&self) {
        self.0.until.store(0, Ordering::Release);
        self.0.ended.send_replace(true);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("term", &self.0.number).field("held", &self.is_held()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_by_itself_and_for_good() {
        let second = Duration::from_secs(1);
        let clock = MonotonicClock::default();
        let leadership = Leadership::new(1, clock.clone(), clock.now() + second);
        assert!(leadership.is_held());
        assert!(leadership.extend(clock.now() + second * 2));
        tokio::time::advance(second).await;
        assert!(leadership.is_held());
        tokio::time::advance(second).await;
        assert!(!leadership.is_held());
        assert!(!leadership.extend(clock.now() + second * 5));
        leadership.lost().await;
    }
}
