//! What a reflector does next: a state machine without I/O and without a clock of its own.

use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_core::{Capabilities, Error, Follow, Freshness, Start, Version};

use crate::backoff::{Curve, SourceBackoff};

/// The decisions of one reflector.
///
/// It resumes whenever it can. It asks for a new snapshot only if the source says that the version is gone, if it cannot
/// know what it missed, or if resuming keeps failing though the source answers.
#[derive(Debug)]
pub(crate) struct Plan {
    follow: Follow,
    confirm_shrink: Option<f32>,
    curve: Curve,
    random: fastrand::Rng,
    first: Freshness,
    /// How far the log has been followed; `None` before the first complete snapshot.
    position: Option<Version>,
    /// When the last snapshot was completed.
    completed: Option<Instant>,
    /// Only the newest state will do: the source could not serve the version it was asked for.
    newest: bool,
    /// Failures in a row in which the source did answer.
    answered_failures: u32,
    /// Something was lost that could not be named: when to take a new snapshot.
    doubt: Option<Instant>,
    /// A snapshot has shrunk the set suspiciously and has to be confirmed.
    unconfirmed: bool,
    /// Why the next snapshot is not the first.
    reason: Option<&'static str>,
}

/// How a feed ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The source closed it in good order.
    Closed,
    /// It failed.
    Failed(Error),
    /// We left it, to take the snapshot that was due.
    Left,
}

/// What there is to know about a feed that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// Whether it had delivered everything up to the log.
    pub(crate) following: bool,
    /// How long it followed.
    pub(crate) followed_for: Duration,
    /// How many log entries it delivered.
    pub(crate) entries: u64,
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub(crate) struct Next {
    pub(crate) wait: Duration,
    pub(crate) start: Start,
    /// For a snapshot after the first: why.
    pub(crate) reason: Option<&'static str>,
}

/// A feed that ends sooner than this without an entry is not worth reopening at once.
const SHORT: Duration = Duration::from_secs(1);
/// So many failures in a row from a source that answers, and a snapshot is tried instead of resuming.
const ANSWERED_FAILURES: u32 = 5;
/// A snapshot that has to be confirmed is followed by the next after this time.
const CONFIRM_AFTER: Duration = Duration::from_secs(1);

impl Plan {
    pub(crate) fn new(
        capabilities: &Capabilities,
        backoff: SourceBackoff,
        first: Freshness,
        seed: u64,
    ) -> Self {
        Self {
            follow: capabilities.follow,
            confirm_shrink: capabilities.confirm_shrink,
            curve: Curve::new(backoff),
            random: fastrand::Rng::with_seed(seed),
            first,
            position: None,
            completed: None,
            newest: false,
            answered_failures: 0,
            doubt: None,
            unconfirmed: false,
            reason: None,
        }
    }

    pub(crate) fn position(&self) -> Option<&Version> {
        self.position.as_ref()
    }

    /// Where the very first feed begins.
    pub(crate) fn start(&self) -> Start {
        Start::Snapshot(self.freshness())
    }

    /// The log has been followed to here.
    pub(crate) fn reached(&mut self, position: Version) {
        self.position = Some(position);
        self.answered_failures = 0;
    }

    /// A snapshot is complete. `lossy` if something in it could not even be named.
    pub(crate) fn completed(&mut self, version: Version, lossy: bool, now: Instant) {
        self.reached(version);
        self.completed = Some(now);
        self.newest = false;
        self.reason = None;
        self.doubt = None;
        if self.unconfirmed {
            self.reason = Some("confirm");
            self.doubt = Some(now + CONFIRM_AFTER);
        } else if lossy {
            self.doubt(now);
        }
    }

    /// Something was lost that could not be named: a new snapshot is due in a while.
    pub(crate) fn doubt(&mut self, now: Instant) {
        if self.doubt.is_none() {
            self.doubt = now.checked_add(self.curve.wait(now, &mut self.random));
        }
    }

    /// When to leave the feed and take a new snapshot, if that is so.
    pub(crate) fn leave_at(&self) -> Option<Instant> {
        self.doubt
    }

    /// Whether a snapshot that drops `gone` of `held` objects may delete them now. If not, the next one will.
    pub(crate) fn accept_shrink(&mut self, gone: usize, held: usize) -> bool {
        self.unconfirmed = self.is_suspicious(gone, held) && !self.unconfirmed;
        !self.unconfirmed
    }

    fn is_suspicious(&self, gone: usize, held: usize) -> bool {
        let is_much = |share: f32| gone == held || gone as f32 > share * held as f32;
        gone > 0 && self.confirm_shrink.is_some_and(is_much)
    }

    /// Whether a snapshot lacked most objects, and none has confirmed it.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.unconfirmed
    }

    /// What was told since a snapshot that lacked most objects leaves `gone` of `held` of which nothing was heard. If those are not many, it was
    /// a false alarm, and confirms no other.
    pub(crate) fn reconsider(&mut self, gone: usize, held: usize) {
        self.unconfirmed &= self.is_suspicious(gone, held);
    }

    /// A feed has ended: what now?
    pub(crate) fn next(&mut self, ended: &Ended, now: Instant) -> Next {
        let wait = self.wait(ended, now);
        let resumes = self.resumes(ended);
        let start = match self.position.clone() {
            Some(position) if resumes => Start::Resume(position),
            _ => {
                self.doubt = None;
                Start::Snapshot(self.freshness())
            }
        };
        let reason = match start {
            Start::Snapshot(_) if self.position.is_some() => self.reason.or(Some("failed")),
            _ => None,
        };
        Next { wait, start, reason }
    }

    fn freshness(&self) -> Freshness {
        match &self.position {
            _ if self.newest => Freshness::Newest,
            Some(position) => Freshness::NotOlderThan(position.clone()),
            None => self.first.clone(),
        }
    }

    /// Whether to resume the log rather than to take a snapshot. Takes note of what the end says about versions.
    fn resumes(&mut self, ended: &Ended) -> bool {
        let because = match &ended.end {
            End::Left => Some(self.reason.unwrap_or("doubt")),
            End::Failed(Error::Expired(_)) => {
                // A snapshot that cannot be served at a version can be served without one. Following is different: the
                // state must not go back to before what is known.
                self.newest |= !ended.following;
                Some("expired")
            }
            End::Failed(Error::Missing(_)) => Some("missing"),
            End::Failed(Error::Fatal(_)) => Some("fatal"),
            End::Failed(Error::Unavailable { answered: true, .. }) if ended.following => {
                self.answered_failures += u32::from(ended.entries == 0);
                (self.answered_failures >= ANSWERED_FAILURES).then_some("failing")
            }
            End::Closed if self.follow != Follow::Log => Some("poll"),
            End::Closed | End::Failed(_) => None,
        };
        if because.is_some() {
            self.reason = because;
            self.answered_failures = 0;
        }
        because.is_none() && ended.following && self.follow == Follow::Log
    }

    fn wait(&mut self, ended: &Ended, now: Instant) -> Duration {
        let long_enough = ended.entries > 0 || ended.followed_for >= SHORT;
        match &ended.end {
            End::Left => Duration::ZERO,
            End::Closed if ended.following => match self.follow {
                Follow::Poll(interval) if self.unconfirmed => interval.min(CONFIRM_AFTER),
                Follow::Poll(interval) => interval,
                _ if long_enough => Duration::ZERO,
                _ => self.back_off(now),
            },
            End::Failed(Error::Expired(_)) if ended.following && !self.just_completed(now) => Duration::ZERO,
            End::Failed(Error::Expired(_)) if !ended.following && !self.newest => Duration::ZERO,
            End::Failed(Error::Throttled { after, .. }) => self.back_off(now).max(after.unwrap_or_default()),
            End::Failed(Error::Denied(_) | Error::Missing(_)) => {
                self.curve.wait_refused(now, &mut self.random)
            }
            End::Closed | End::Failed(_) => self.back_off(now),
        }
    }

    /// A version that expires as soon as it was given would make snapshots go in circles.
    fn just_completed(&self, now: Instant) -> bool {
        self.completed.is_some_and(|completed| now.saturating_duration_since(completed) < SHORT)
    }

    fn back_off(&mut self, now: Instant) -> Duration {
        self.curve.wait(now, &mut self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_core::Order;

    fn plan() -> Plan {
        let capabilities = Capabilities::new(Order::Total, Follow::Log).status_write_back(true);
        Plan::new(&capabilities, SourceBackoff::default(), Freshness::Any, 1)
    }

    fn synced() -> Plan {
        let mut plan = plan();
        plan.completed(Version::from(7), false, Instant::now());
        plan
    }

    fn ended(end: End, following: bool, seconds: u64) -> Ended {
        Ended { end, following, followed_for: Duration::from_secs(seconds), entries: 0 }
    }

    fn expired() -> End {
        End::Failed(Error::Expired("gone".into()))
    }

    fn unavailable(answered: bool) -> End {
        End::Failed(Error::Unavailable { answered, reason: "down".into() })
    }

    const BASE: Duration = Duration::from_millis(800);

    #[test]
    fn the_first_snapshot_may_be_old_and_later_ones_may_not() {
        let mut plan = plan();
        assert_eq!(plan.start(), Start::Snapshot(Freshness::Any));
        plan.completed(Version::from(7), false, Instant::now());
        plan.reached(Version::from(9));
        let next = plan.next(&ended(expired(), true, 0), Instant::now() + Duration::from_secs(60));
        assert_eq!(next.start, Start::Snapshot(Freshness::NotOlderThan(Version::from(9))));
        assert_eq!((next.wait, next.reason), (Duration::ZERO, Some("expired")));
    }

    #[test]
    fn an_expired_snapshot_is_asked_for_without_a_version_once_at_once() {
        let mut plan = plan();
        let next = plan.next(&ended(expired(), false, 0), Instant::now());
        assert_eq!((next.wait, next.start), (Duration::ZERO, Start::Snapshot(Freshness::Newest)));
        let next = plan.next(&ended(expired(), false, 0), Instant::now());
        assert_eq!(next.start, Start::Snapshot(Freshness::Newest));
        assert!(next.wait >= BASE);
        plan.completed(Version::from(7), false, Instant::now());
        let next = plan.next(&ended(expired(), true, 60), Instant::now());
        assert_eq!(next.start, Start::Snapshot(Freshness::NotOlderThan(Version::from(7))));
    }

    #[test]
    fn a_clean_close_resumes_at_once() {
        let next = synced().next(&ended(End::Closed, true, 300), Instant::now());
        assert_eq!(next, Next { wait: Duration::ZERO, start: Start::Resume(Version::from(7)), reason: None });
    }

    #[test]
    fn a_source_without_a_log_is_asked_for_a_snapshot_whatever_happened() {
        for follow in [Follow::Hints, Follow::Poll(Duration::from_secs(1))] {
            for end in [End::Closed, unavailable(false), unavailable(true)] {
                let mut plan = synced();
                plan.follow = follow;
                let next = plan.next(&ended(end, true, 300), Instant::now());
                assert_eq!(next.start, Start::Snapshot(Freshness::NotOlderThan(Version::from(7))));
            }
        }
    }

    #[test]
    fn a_feed_that_closes_too_soon_resumes_after_a_wait() {
        let mut plan = synced();
        for step in 0..4 {
            let next = plan.next(&ended(End::Closed, true, 0), Instant::now());
            assert_eq!(next.start, Start::Resume(Version::from(7)));
            assert!(next.wait >= BASE * 2u32.pow(step), "{:?}", next.wait);
        }
    }

    #[test]
    fn a_source_out_of_reach_is_never_asked_for_a_snapshot() {
        let mut plan = synced();
        for _ in 0..100 {
            let next = plan.next(&ended(unavailable(false), true, 0), Instant::now());
            assert_eq!(next.start, Start::Resume(Version::from(7)));
            assert!(next.wait >= BASE && next.wait <= Duration::from_secs(60));
        }
    }

    #[test]
    fn a_source_that_keeps_failing_is_asked_for_a_snapshot_instead() {
        let mut plan = synced();
        let starts: Vec<_> =
            (0..5).map(|_| plan.next(&ended(unavailable(true), true, 0), Instant::now()).start).collect();
        assert!(starts[..4].iter().all(|start| *start == Start::Resume(Version::from(7))));
        assert_eq!(starts[4], Start::Snapshot(Freshness::NotOlderThan(Version::from(7))));
    }

    #[test]
    fn throttling_waits_as_long_as_asked_and_repeats_the_same() {
        let throttled =
            || End::Failed(Error::Throttled { after: Some(Duration::from_secs(90)), reason: "".into() });
        let next = synced().next(&ended(throttled(), true, 0), Instant::now());
        assert_eq!((next.wait, next.start), (Duration::from_secs(90), Start::Resume(Version::from(7))));
        let next = plan().next(&ended(throttled(), false, 0), Instant::now());
        assert_eq!((next.wait, next.start), (Duration::from_secs(90), Start::Snapshot(Freshness::Any)));
    }

    #[test]
    fn what_is_denied_is_asked_for_again_and_what_is_missing_is_listed_anew() {
        let next = synced().next(&ended(End::Failed(Error::Denied("no".into())), true, 0), Instant::now());
        assert_eq!(next.start, Start::Resume(Version::from(7)));
        let next = synced().next(&ended(End::Failed(Error::Missing("no".into())), true, 0), Instant::now());
        assert_eq!(next.start, Start::Snapshot(Freshness::NotOlderThan(Version::from(7))));
        assert!(next.wait >= BASE);
    }

    #[test]
    fn a_snapshot_cut_short_starts_over() {
        let mut plan = synced();
        let next = plan.next(&ended(unavailable(true), false, 0), Instant::now());
        assert_eq!(next.start, Start::Snapshot(Freshness::NotOlderThan(Version::from(7))));
        assert!(next.wait >= BASE);
        let next = plan.next(&ended(End::Closed, false, 0), Instant::now());
        assert!(next.wait >= BASE);
    }

    #[test]
    fn a_loss_that_cannot_be_named_leads_to_a_snapshot_after_a_while() {
        let mut plan = synced();
        let now = Instant::now();
        assert_eq!(plan.leave_at(), None);
        plan.doubt(now);
        let due = plan.leave_at().unwrap();
        assert!(due >= now + BASE);
        plan.doubt(now + BASE);
        assert_eq!(plan.leave_at(), Some(due), "more losses do not put it off");
        let next = plan.next(&ended(End::Left, true, 5), due);
        assert_eq!((next.wait, next.reason), (Duration::ZERO, Some("doubt")));
        plan.completed(Version::from(8), false, due);
        assert_eq!(plan.leave_at(), None);
    }

    #[test]
    fn a_suspicious_shrink_needs_a_second_snapshot() {
        let mut plan = plan();
        plan.confirm_shrink = Some(0.5);
        let now = Instant::now();
        assert!(plan.accept_shrink(0, 0));
        assert!(plan.accept_shrink(5, 10));
        assert!(!plan.accept_shrink(6, 10));
        plan.completed(Version::from(1), false, now);
        assert_eq!(plan.leave_at(), Some(now + CONFIRM_AFTER));
        assert!(plan.accept_shrink(6, 10), "the second one says the same");
        assert!(!plan.accept_shrink(1, 1), "the last object");
        assert!(plan.accept_shrink(0, 1), "a false alarm");
        assert!(!plan.accept_shrink(1, 1), "and the next alarm is a first one again");
        plan.reconsider(6, 10);
        assert!(plan.is_unconfirmed(), "most are as silent as before");
        plan.reconsider(5, 10);
        assert!(!plan.is_unconfirmed() && !plan.accept_shrink(6, 10), "they were told of again");
    }
}
