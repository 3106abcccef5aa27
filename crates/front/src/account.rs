use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// The share of one processor that an account may use and stay light: a quarter. Each nanosecond that it uses is owed for four.
const SHARE: u64 = 4;
/// Processor time that an account may use at once and stay light: listing a few thousand objects.
const BURST: Duration = Duration::from_millis(10);
/// How long an account that uses nothing any more stays heavy at the most.
const MEMORY: Duration = Duration::from_millis(100);

/// The processor time of a client: of one user, or of all at one address whose user is not known yet.
///
/// An account that used more than its share of late is *heavy*, and its work waits for turns; see [`Gate`](crate::gate::Gate).
#[derive(Debug)]
pub(crate) struct Account {
    epoch: Instant,
    /// When what was used will have been paid for by the share, in nanoseconds since `epoch`.
    owed: AtomicU64,
    heavy: AtomicBool,
    /// Limits how much of this account's work waits in the common line, so that one with much work waits no less than others.
    pub(crate) line: Semaphore,
}

impl Account {
    /// An account that has as many places in the common line as there are slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            epoch: Instant::now(),
            owed: AtomicU64::new(0),
            heavy: AtomicBool::new(false),
            line: Semaphore::new(slots),
        }
    }

    /// Whether it had used more than its share when it was charged last.
    pub(crate) fn is_heavy(&self) -> bool {
        self.heavy.load(Ordering::Relaxed)
    }

    /// Does some work, which begins now, and charges the time that it takes. Says when it ended.
    pub(crate) fn charged<T>(&self, begin: Instant, work: impl FnOnce() -> T) -> (T, Instant) {
        let done = work();
        let end = Instant::now();
        self.charge(end.duration_since(self.epoch), end.duration_since(begin));
        (done, end)
    }

    /// Charges the time used until `now`, which is counted from the beginning of the account.
    fn charge(&self, now: Duration, used: Duration) {
        let (now, used) = (nanoseconds(now), nanoseconds(used));
        let burst = nanoseconds(BURST).saturating_mul(SHARE);
        let most = now.saturating_add(burst).saturating_add(nanoseconds(MEMORY));
        let charged = |owed: u64| owed.max(now).saturating_add(used.saturating_mul(SHARE)).min(most);
        let update = |owed: u64| Some(charged(owed));
        // It cannot fail: the update always has a value.
        let owed = self.owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).map_or(0, charged);
        let heavy = owed > now.saturating_add(burst);
        if heavy != self.is_heavy() {
            self.heavy.store(heavy, Ordering::Relaxed);
        }
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Account {
    /// Makes it heavy.
    pub(crate) fn overdraw(&self) {
        self.charge(self.epoch.elapsed(), Duration::from_secs(3600));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn whoever_keeps_to_its_share_stays_light() {
        let account = Account::new(1);
        for step in 1..10_000 {
            account.charge(4 * MILLISECOND * step, MILLISECOND);
            assert!(!account.is_heavy(), "after {step} steps");
        }
        // All that may be used at once is left.
        account.charge(40_001 * MILLISECOND, 9 * MILLISECOND);
        assert!(!account.is_heavy());
    }

    #[test]
    fn whoever_uses_more_than_its_share_becomes_heavy() {
        let account = Account::new(1);
        let step = (1..1_000).find(|step| {
            account.charge(3 * MILLISECOND * *step, MILLISECOND);
            account.is_heavy()
        });
        // The first step leaves four milliseconds owed and each of the others one more, and 40 may be.
        assert_eq!(step, Some(38));
    }

    #[test]
    fn what_was_used_long_ago_is_forgotten() {
        let account = Account::new(1);
        account.charge(MILLISECOND, Duration::from_secs(3600));
        assert!(account.is_heavy());
        account.charge(MEMORY / 2, Duration::ZERO);
        assert!(account.is_heavy());
        account.charge(MEMORY + 2 * MILLISECOND, Duration::ZERO);
        assert!(!account.is_heavy());
    }

    #[test]
    fn work_is_charged_as_long_as_it_takes() {
        let account = Account::new(1);
        let begin = Instant::now();
        let work = || while begin.elapsed() < 2 * BURST {};
        account.charged(begin, work);
        assert!(account.is_heavy());
    }
}
