use std::time::Duration;

use tokio::time::Instant;

/// The back-off of a reflector: the time before a failed source is asked again.
///
/// The wait doubles from `base` to `cap`, and up to as much again is added at random, so that a thousand clients do not
/// come back at the same moment. After `reset_after` without a failure it starts at `base` again.
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_informer::SourceBackoff;
/// let patient = SourceBackoff::new(Duration::from_secs(1), Duration::from_secs(60)).with_refused_cap(Duration::from_secs(10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceBackoff {
    /// The first wait.
    pub base: Duration,
    /// The longest wait, before the random part.
    pub cap: Duration,
    /// The longest wait, before the random part, where the source says that this is denied or not there. Such an answer
    /// costs it little, and whoever grants a right or installs a definition wants to see that it helped.
    pub refused_cap: Duration,
    /// The time without a failure after which the next failure counts as the first.
    pub reset_after: Duration,
}

impl SourceBackoff {
    /// Waits from `base` up to `cap`, or up to 4 s where the source refuses; from the start again after 2 minutes without a failure.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap, refused_cap: Duration::from_secs(4), reset_after: Duration::from_secs(120) }
    }

    /// Sets the longest wait after the source denied access or was missing.
    #[must_use]
    pub const fn with_refused_cap(mut self, cap: Duration) -> Self {
        self.refused_cap = cap;
        self
    }

    /// Sets the time without a failure after which the back-off starts again.
    #[must_use]
    pub const fn with_reset_after(mut self, time: Duration) -> Self {
        self.reset_after = time;
        self
    }
}

impl Default for SourceBackoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(800), Duration::from_secs(30))
    }
}

/// Where in its curve a back-off is.
#[derive(Debug)]
pub(crate) struct Curve {
    backoff: SourceBackoff,
    next: Duration,
    last: Option<Instant>,
}

impl Curve {
    pub(crate) fn new(backoff: SourceBackoff) -> Self {
        Self { backoff, next: backoff.base, last: None }
    }

    /// The next wait, from `now` on.
    pub(crate) fn wait(&mut self, now: Instant, random: &mut fastrand::Rng) -> Duration {
        self.wait_at_most(self.backoff.cap, now, random)
    }

    /// The next wait after the source has refused.
    pub(crate) fn wait_refused(&mut self, now: Instant, random: &mut fastrand::Rng) -> Duration {
        self.wait_at_most(self.backoff.refused_cap, now, random)
    }

    fn wait_at_most(&mut self, cap: Duration, now: Instant, random: &mut fastrand::Rng) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= self.backoff.reset_after) {
            self.next = self.backoff.base;
        }
        let wait = self.next.min(cap);
        self.next = wait.saturating_mul(2).min(cap);
        let wait = wait.saturating_add(wait.mul_f64(random.f64()));
        self.last = now.checked_add(wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_cap_within_their_bounds() {
        let now = Instant::now();
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut curve = Curve::new(SourceBackoff::default());
            for step in 0..12 {
                let floor = Duration::from_millis(800 << step.min(10)).min(Duration::from_secs(30));
                let wait = curve.wait(now, &mut random);
                assert!(wait >= floor && wait <= floor * 2, "step {step}: {wait:?}");
            }
        }
    }

    #[test]
    fn who_is_refused_asks_again_within_ten_seconds() {
        let now = Instant::now();
        let mut random = fastrand::Rng::with_seed(1);
        let mut curve = Curve::new(SourceBackoff::default());
        for _ in 0..6 {
            curve.wait(now, &mut random);
        }
        for _ in 0..6 {
            assert!(curve.wait_refused(now, &mut random) <= Duration::from_secs(8));
        }
    }

    #[test]
    fn a_hundred_clients_do_not_come_back_together() {
        let now = Instant::now();
        let mut waits: Vec<_> = (0..100)
            .map(|seed| {
                Curve::new(SourceBackoff::default())
                    .wait(now, &mut fastrand::Rng::with_seed(seed))
                    .as_millis()
                    / 80
            })
            .collect();
        waits.sort_unstable();
        let largest = waits.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
        assert!(largest < 30, "{largest} of 100 in one tenth of the range");
    }

    #[test]
    fn two_good_minutes_reset_it() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut curve = Curve::new(SourceBackoff::default());
        let mut now = Instant::now();
        for _ in 0..6 {
            now += curve.wait(now, &mut random);
        }
        now += Duration::from_secs(119);
        assert!(curve.wait(now, &mut random) >= Duration::from_secs(25));
        now += Duration::from_secs(300);
        assert!(curve.wait(now, &mut random) <= Duration::from_millis(1600));
    }
}
