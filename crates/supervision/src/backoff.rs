use std::time::Duration;

use tokio::time::Instant;

/// The pause before a task begins again after its first panic. Doubles with each that follows.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// A task that has run for so long without a panic has recovered.
const SETTLED: Duration = Duration::from_secs(10);
/// So many panics in a row are no accident.
const TOO_MANY: u32 = 3;

/// How one task is doing: a state machine that is given the time.
#[derive(Debug)]
pub(crate) struct Backoff {
    /// Panics since the task last ran for long enough.
    row: u32,
    /// When the present run began; `None` between two runs.
    began: Option<Instant>,
}

impl Backoff {
    pub(crate) fn begun(now: Instant) -> Self {
        Self { row: 0, began: Some(now) }
    }

    pub(crate) fn begins(&mut self, now: Instant) {
        self.began = Some(now);
    }

    /// Takes note of a panic. Returns how long to wait before the task begins again.
    pub(crate) fn panicked(&mut self, now: Instant) -> Duration {
        if self.has_settled(now) {
            self.row = 0;
        }
        self.began = None;
        let pause = 2_u32.checked_pow(self.row).and_then(|factor| FIRST.checked_mul(factor));
        self.row = self.row.saturating_add(1);
        pause.map_or(LONGEST, |pause| pause.min(LONGEST))
    }

    /// Whether the task has panicked again and again, and has not recovered since.
    pub(crate) fn is_failing(&self, now: Instant) -> bool {
        self.row >= TOO_MANY && !self.has_settled(now)
    }

    fn has_settled(&self, now: Instant) -> bool {
        self.began.is_some_and(|began| now.saturating_duration_since(began) >= SETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_begin_anew_after_a_long_run() {
        let now = Instant::now();
        let mut backoff = Backoff::begun(now);
        let pauses: Vec<u128> = (0..40)
            .map(|_| {
                backoff.begins(now);
                backoff.panicked(now).as_millis()
            })
            .collect();
        assert_eq!(pauses[..5], [100, 200, 400, 800, 1600]);
        assert!(pauses[9..].iter().all(|pause| *pause == 30_000), "{pauses:?}");
        backoff.begins(now);
        assert_eq!(backoff.panicked(now + SETTLED).as_millis(), 100);
    }

    #[test]
    fn a_task_fails_from_its_third_panic_in_a_row_until_it_has_run_for_long_enough() {
        let now = Instant::now();
        let mut backoff = Backoff::begun(now);
        for _ in 0..2 {
            backoff.panicked(now);
            assert!(!backoff.is_failing(now));
            backoff.begins(now);
        }
        backoff.panicked(now);
        assert!(backoff.is_failing(now));
        assert!(backoff.is_failing(now + SETTLED), "a task that does not run does not recover");
        backoff.begins(now + SETTLED);
        assert!(backoff.is_failing(now + SETTLED));
        assert!(!backoff.is_failing(now + SETTLED * 2));
    }
}
