use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::pool::Pool;

/// Repetitions that are allowed each second however few requests there are, and that are allowed at most, in hundredths.
const BUDGET: (i64, i64) = (1_000, 10_000);
/// What a request adds to the budget, in hundredths of a repetition: a fifth of all requests may be repeated.
const BUDGET_SHARE: i64 = 20;
/// How often in a row leaving out a server takes longer each time.
const MOST_EJECTIONS: u32 = 10;

/// What is learned and counted of a backend.
#[derive(Debug)]
pub struct BackendState {
    /// Requests under way.
    pub active: AtomicU32,
    /// Requests that were refused because there were too many.
    pub overflowed: AtomicU64,
    /// Requests that were repeated.
    pub retried: AtomicU64,
    /// Repetitions that were not made because there had been too many.
    pub retries_denied: AtomicU64,
    pub(super) next: AtomicUsize,
    budget: AtomicI64,
    /// Until when time has added to the budget, in milliseconds since the process began to look.
    budgeted: AtomicU64,
}

impl Default for BackendState {
    fn default() -> Self {
        Self {
            active: AtomicU32::new(0),
            overflowed: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            retries_denied: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            budget: AtomicI64::new(BUDGET.0),
            budgeted: AtomicU64::new(0),
        }
    }
}

/// A request that is under way until this is dropped.
pub(crate) struct Active(Arc<BackendState>);

impl BackendState {
    /// Begins a request, if there are fewer than so many.
    pub(crate) fn begin(self: &Arc<Self>, most: Option<u32>) -> Option<Active> {
        let before = self.active.fetch_add(1, Relaxed);
        let active = Active(Arc::clone(self));
        if most.is_some_and(|most| before >= most) {
            self.overflowed.fetch_add(1, Relaxed);
            return None;
        }
        if self.budget.load(Relaxed) < BUDGET.1 {
            self.budget.fetch_add(BUDGET_SHARE, Relaxed);
        }
        Some(active)
    }

    /// Whether a request may be repeated.
    pub(crate) fn may_retry(&self) -> bool {
        self.may_retry_at(now())
    }

    fn may_retry_at(&self, now: u64) -> bool {
        self.add_time(now);
        let allowed = self.budget.fetch_update(Relaxed, Relaxed, |left| (left >= 100).then_some(left - 100));
        let counter = if allowed.is_ok() { &self.retried } else { &self.retries_denied };
        counter.fetch_add(1, Relaxed);
        allowed.is_ok()
    }
}

impl BackendState {
    /// Adds what time allows: a second is worth as much as there is to begin with, and brings no more than that.
    fn add_time(&self, now: u64) {
        let before = self.budgeted.fetch_max(now, Relaxed);
        let earned =
            i64::try_from(now.saturating_sub(before)).unwrap_or(i64::MAX).saturating_mul(BUDGET.0) / 1_000;
        let more = |left: i64| (left < BUDGET.0).then(|| left.saturating_add(earned).min(BUDGET.0));
        // Who has more than that already gets nothing for waiting.
        let _ = self.budget.fetch_update(Relaxed, Relaxed, more);
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Relaxed);
    }
}

/// A request to a server, from before it is sent until this is dropped.
pub(crate) struct Counted(Arc<EndpointState>);

impl Counted {
    pub(crate) fn begin(endpoint: &Arc<EndpointState>) -> Self {
        endpoint.active.fetch_add(1, Relaxed);
        Self(Arc::clone(endpoint))
    }

    pub(crate) fn endpoint(&self) -> &Arc<EndpointState> {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Relaxed);
    }
}

/// What is learned and counted of a server of a backend.
pub struct EndpointState {
    /// `host:port`.
    pub address: Arc<str>,
    /// Requests under way.
    pub active: AtomicU32,
    /// Connections that are open.
    pub connections: AtomicU32,
    /// Requests that were sent.
    pub requests: AtomicU64,
    /// Requests that failed.
    pub failures: AtomicU64,
    pub(super) pool: Pool,
    unhealthy: AtomicBool,
    /// Checks in a row that found another health than what it is taken for.
    contradictions: AtomicU32,
    failures_in_a_row: AtomicU32,
    ejections: AtomicU32,
    /// In milliseconds since the process began.
    ejected_until: AtomicU64,
}

/// Milliseconds since the process began to look.
fn now() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let elapsed = BEGIN.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

impl EndpointState {
    /// A server that nothing is known of.
    pub fn new(address: &str) -> Self {
        Self {
            address: address.into(),
            active: AtomicU32::new(0),
            connections: AtomicU32::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            pool: Pool::default(),
            unhealthy: AtomicBool::new(false),
            contradictions: AtomicU32::new(0),
            failures_in_a_row: AtomicU32::new(0),
            ejections: AtomicU32::new(0),
            ejected_until: AtomicU64::new(0),
        }
    }

    /// Whether it may get requests.
    pub fn is_available(&self) -> bool {
        !self.unhealthy.load(Relaxed) && !self.is_ejected()
    }

    /// Whether it is left out because requests failed.
    pub fn is_ejected(&self) -> bool {
        match self.ejected_until.load(Relaxed) {
            0 => false,
            until => now() < until,
        }
    }

    /// Whether it says that it is well, or was not asked.
    pub fn is_healthy(&self) -> bool {
        !self.unhealthy.load(Relaxed)
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.contradictions.store(0, Relaxed);
        self.unhealthy.store(!healthy, Relaxed);
    }

    /// Takes what a check found. So many in a row change what the server is taken for; says whether this one did.
    pub(super) fn checked(&self, ok: bool, enough: u32) -> bool {
        if ok == self.is_healthy() {
            self.contradictions.store(0, Relaxed);
            return false;
        }
        if self.contradictions.fetch_add(1, Relaxed).saturating_add(1) < enough {
            return false;
        }
        self.set_healthy(ok);
        true
    }

    pub(super) fn succeeded(&self) {
        if self.failures_in_a_row.load(Relaxed) != 0 {
            self.failures_in_a_row.store(0, Relaxed);
        }
        if self.ejections.load(Relaxed) != 0 && !self.is_ejected() {
            self.ejections.store(0, Relaxed);
        }
    }

    /// Counts a failure; says how many there were in a row.
    pub(super) fn failed(&self) -> u32 {
        self.failures.fetch_add(1, Relaxed);
        self.failures_in_a_row.fetch_add(1, Relaxed).saturating_add(1)
    }

    /// Leaves it out; false if it is already.
    pub(super) fn eject(&self, first: Duration) -> bool {
        let (begin, before) = (now(), self.ejected_until.load(Relaxed));
        if begin < before {
            return false;
        }
        let times = self.ejections.load(Relaxed).saturating_add(1).min(MOST_EJECTIONS);
        let time = u64::try_from((first * times).as_millis()).unwrap_or(u64::MAX).max(1);
        let until = begin.saturating_add(time);
        let ejected = self.ejected_until.compare_exchange(before, until, Relaxed, Relaxed).is_ok();
        if ejected {
            self.ejections.store(times, Relaxed);
            self.failures_in_a_row.store(0, Relaxed);
        }
        ejected
    }

    /// Closes connections that were idle for too long.
    pub(super) fn sweep(&self, idle: Duration) {
        self.pool.sweep(idle);
    }

    /// How many connections are free.
    pub fn idle(&self) -> usize {
        self.pool.idle()
    }
}

impl fmt::Debug for EndpointState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EndpointState").field(&self.address).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_requests_may_be_repeated() {
        let state = Arc::new(BackendState::default());
        let begin = now();
        let retries = |state: &BackendState| (0..1_000).take_while(|_| state.may_retry_at(begin)).count();
        assert_eq!(retries(&state), 10, "to begin with");
        for _ in 0..100 {
            drop(state.begin(None).unwrap());
        }
        assert_eq!(retries(&state), 20);
        for _ in 0..100_000 {
            drop(state.begin(None).unwrap());
        }
        assert_eq!(retries(&state), 100, "and no more however many there were");
    }

    #[test]
    fn ten_requests_a_second_may_be_repeated_however_few_there_are() {
        let state = Arc::new(BackendState::default());
        let retries = |at: u64| (0..1_000).take_while(|_| state.may_retry_at(at)).count();
        assert_eq!(retries(5_000), 10, "to begin with");
        assert_eq!((retries(5_000), retries(5_099)), (0, 0));
        assert_eq!(retries(5_600), 6, "six tenths of a second after the first");
        assert_eq!(retries(3_600_000), 10, "an hour brings no more than a second");
    }

    #[test]
    fn no_more_requests_than_allowed_are_under_way() {
        let state = Arc::new(BackendState::default());
        let first = state.begin(Some(2)).unwrap();
        let _second = state.begin(Some(2)).unwrap();
        assert!(state.begin(Some(2)).is_none());
        drop(first);
        assert!(state.begin(Some(2)).is_some());
        assert_eq!((state.active.load(Relaxed), state.overflowed.load(Relaxed)), (1, 1));
    }

    #[test]
    fn a_server_is_left_out_once_at_a_time() {
        let server = EndpointState::new("a:1");
        assert!(server.eject(Duration::from_secs(60)) && !server.eject(Duration::from_secs(60)));
        assert!(!server.is_available() && server.is_healthy());
        server.set_healthy(false);
        assert!(!server.is_healthy());
    }

    #[test]
    fn so_many_checks_in_a_row_change_what_a_server_is_taken_for() {
        let server = EndpointState::new("a:1");
        let found = [false, false, true, false, false, false, true, false, true, true];
        let changed = found.map(|ok| server.checked(ok, if ok { 2 } else { 3 }));
        assert_eq!(changed, [false, false, false, false, false, true, false, false, false, true]);
        assert!(server.is_healthy());
    }
}
