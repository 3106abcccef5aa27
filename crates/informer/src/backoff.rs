use std::time::Duration;

use tokio::time::Instant;

/// How long a reflector waits before it asks a source again that failed.
///
/// The wait doubles from `base` to `cap`, and up to as much again is added at random, so that a thousand clients do not
/// come back at the same moment. After `reset_after` without a failure it starts at `base` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub base: Duration,
    /// The longest wait, before the random part.
    pub cap: Duration,
    /// The longest wait, before the random part, where the source says that this is denied or not there. Such an answer
    /// costs it little, and whoever grants a right or installs a definition wants to see that it helped.
    pub refused_cap: Duration,
    /// How long all must be well before the next failure counts as the first.
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(800),
            cap: Duration::from_secs(30),
            refused_cap: Duration::from_secs(4),
            reset_after: Duration::from_secs(120),
        }
    }
}

/// Where in its curve a back-off is.
#[derive(Debug)]
pub(crate) struct Curve {
    backoff: Backoff,
    next: Duration,
    last: Option<Instant>,
}

impl Curve {
    pub(crate) fn new(backoff: Backoff) -> Self {
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
            let mut curve = Curve::new(Backoff::default());
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
        let mut curve = Curve::new(Backoff::default());
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
                Curve::new(Backoff::default()).wait(now, &mut fastrand::Rng::with_seed(seed)).as_millis() / 80
            })
            .collect();
        waits.sort_unstable();
        let largest = waits.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
        assert!(largest < 30, "{largest} of 100 in one tenth of the range");
    }

    #[test]
    fn two_good_minutes_reset_it() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut curve = Curve::new(Backoff::default());
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
