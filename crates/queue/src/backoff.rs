use std::time::Duration;

/// The back-off of a key, by its failures in a row.
///
/// The wait after the `n`-th failure is `base * 2^(n-1)`, at most `max`, and then shortened by a random part of
/// up to `jitter` of it, so that keys which failed together do not come back together.
///
/// ```
/// # use std::time::Duration;
/// # use watchkeeper_queue::Backoff;
/// let backoff = Backoff::default().with_jitter(0.0);
/// let mut rng = fastrand::Rng::with_seed(1);
/// assert_eq!(backoff.delay(1, &mut rng), Duration::from_millis(5));
/// assert_eq!(backoff.delay(4, &mut rng), Duration::from_millis(40));
/// assert_eq!(backoff.delay(99, &mut rng), Duration::from_secs(1000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// The wait after the first failure; 5 ms by default.
    pub base: Duration,
    /// The longest wait; 1000 s by default.
    pub max: Duration,
    /// The share of a wait that is left to chance, from 0 (none) to 1 (all). By default 0.5: a wait of `d` becomes
    /// one in `[d/2, d]`. It never gets longer than `max`.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl Backoff {
    /// Waits from `base` up to `max`, half of each left to chance.
    pub const fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, jitter: 0.5 }
    }

    /// Sets the share of the delay that is random.
    #[must_use]
    pub const fn with_jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// The wait after `failures` failures in a row.
    pub fn delay(&self, failures: u32, rng: &mut fastrand::Rng) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.base.saturating_mul(1 << doublings).min(self.max);
        // Written so that a jitter that is not a number counts as none.
        let jitter = if self.jitter > 0.0 {
            self.jitter.min(1.0)
        } else {
            return full;
        };
        full.saturating_sub(full.mul_f64(jitter * rng.f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_from_five_milliseconds_to_a_thousand_seconds_and_stays_there() {
        let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
        let mut rng = fastrand::Rng::with_seed(7);
        let delays: Vec<_> = (1..=20).map(|n| backoff.delay(n, &mut rng)).collect();
        for n in 1..18 {
            assert_eq!(delays[n], 2 * delays[n - 1]);
        }
        assert_eq!(delays[17], Duration::from_millis(655_360));
        assert_eq!(delays[18], Duration::from_secs(1000));
        assert_eq!(backoff.delay(u32::MAX, &mut rng), Duration::from_secs(1000));
    }

    #[test]
    fn jitter_keeps_a_wait_between_half_of_it_and_all_of_it() {
        let backoff = Backoff::default();
        let mut rng = fastrand::Rng::with_seed(7);
        for failures in 1..=40 {
            let full = Backoff { jitter: 0.0, ..backoff }.delay(failures, &mut rng);
            let delays: Vec<_> = (0..200).map(|_| backoff.delay(failures, &mut rng)).collect();
            assert!(delays.iter().all(|&d| d >= full / 2 && d <= full), "{failures}: {delays:?}");
            let spread = delays.iter().max().unwrap().saturating_sub(*delays.iter().min().unwrap());
            assert!(spread > full / 4, "{failures}: {spread:?} of {full:?}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_waits_again() {
        let draw = |seed| {
            let mut rng = fastrand::Rng::with_seed(seed);
            (1..10).map(|n| Backoff::default().delay(n, &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn bad_settings_do_not_panic() {
        let mut rng = fastrand::Rng::with_seed(7);
        for jitter in [f64::NAN, -1.0, 9.0] {
            let backoff = Backoff { base: Duration::MAX, max: Duration::MAX, jitter };
            assert!(backoff.delay(u32::MAX, &mut rng) <= Duration::MAX);
        }
    }
}
