//! When a service that was asked to wait is asked again. Without I/O and without a clock.

use std::time::Duration;

/// A service that answers sooner than this has not waited, or had something new to say.
const AT_ONCE: Duration = Duration::from_secs(1);
/// So many answers with something new may come at once, one after the other, before requests are spaced.
const BURST: u32 = 8;

/// What is known of how a service waits.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// It was seen to wait.
    waits: bool,
    /// How many answers in a row came at once.
    at_once: u32,
}

impl Pace {
    /// How long to wait before the next request, after an answer that took so long and had something new to say or not.
    ///
    /// A service that waits is asked again immediately: also after a burst of changes, but not more often than once a second if they do not
    /// end. One that does not wait is asked after the interval, even if each of its answers differs from the one before.
    pub(super) fn answered(&mut self, took: Duration, news: bool, interval: Duration) -> Duration {
        if took >= AT_ONCE {
            *self = Self { waits: true, at_once: 0 };
            return Duration::ZERO;
        }
        self.at_once = self.at_once.saturating_add(1);
        if news && self.at_once <= BURST {
            return Duration::ZERO;
        }
        if self.waits { interval.min(AT_ONCE) } else { interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);
    const QUICK: Duration = Duration::from_millis(3);
    const SLOW: Duration = Duration::from_secs(20);

    #[test]
    fn a_service_that_waits_is_asked_again_immediately() {
        let mut pace = Pace::default();
        assert_eq!(pace.answered(SLOW, false, INTERVAL), Duration::ZERO);
        assert_eq!(pace.answered(QUICK, true, INTERVAL), Duration::ZERO);
        assert_eq!(pace.answered(SLOW, true, INTERVAL), Duration::ZERO);
    }

    #[test]
    fn a_service_that_does_not_wait_is_asked_after_the_interval() {
        let mut pace = Pace::default();
        assert_eq!(pace.answered(QUICK, false, INTERVAL), INTERVAL);
        let mut pace = Pace::default();
        let pauses: Vec<_> = (0..20).map(|_| pace.answered(QUICK, true, INTERVAL)).collect();
        assert_eq!(pauses.iter().filter(|pause| pause.is_zero()).count(), BURST as usize);
        assert_eq!(pauses[19], INTERVAL, "a list that differs with every answer");
    }

    #[test]
    fn changes_without_end_are_asked_for_once_a_second() {
        let mut pace = Pace::default();
        pace.answered(SLOW, false, INTERVAL);
        let last = (0..20).map(|_| pace.answered(QUICK, true, INTERVAL)).last();
        assert_eq!(last, Some(AT_ONCE));
        assert_eq!(pace.answered(QUICK, false, Duration::from_millis(50)), Duration::from_millis(50));
    }
}
