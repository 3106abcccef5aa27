use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Two readings of one clock this close together tell what another said in between.
const CLOSE: Duration = Duration::from_micros(50);

/// A clock that never goes back: the time since some moment, whatever the date is set to. It goes on while the process is stopped and
/// while the machine is suspended.
#[derive(Clone)]
pub struct MonotonicClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl MonotonicClock {
    /// Makes a clock whose time is that of this function.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time since some fixed moment.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

/// Tokio's clock, which tests can pause, and on top of it the time that the machine was suspended: tokio's clock stands
/// still then.
impl Default for MonotonicClock {
    fn default() -> Self {
        let start = Instant::now();
        let before = gap().unwrap_or_default();
        let suspended = AtomicU64::new(0);
        Self::new(move || {
            if let Some(gap) = gap() {
                let nanos = u64::try_from(gap.saturating_sub(before).as_nanos()).unwrap_or(u64::MAX);
                suspended.fetch_max(nanos, Ordering::Relaxed);
            }
            let suspended = Duration::from_nanos(suspended.load(Ordering::Relaxed));
            // What is shorter than this is not sleep, but the error of the measurement.
            let suspended = if suspended > 2 * CLOSE { suspended } else { Duration::ZERO };
            start.elapsed() + suspended
        })
    }
}

/// How far the clock that counts suspended time is ahead of the one that does not; `None` if they could not be read
/// close enough together.
fn gap() -> Option<Duration> {
    (0..4).find_map(|_| {
        let before = awake();
        let all = with_suspension();
        let after = awake();
        (after.saturating_sub(before) <= CLOSE).then(|| all.saturating_sub(before))
    })
}

#[cfg(target_os = "linux")]
fn awake() -> Duration {
    read(rustix::time::ClockId::Monotonic)
}

#[cfg(target_os = "linux")]
fn with_suspension() -> Duration {
    read(rustix::time::ClockId::Boottime)
}

/// The time since the first call, by a clock that may stand still while the machine is suspended.
#[cfg(not(target_os = "linux"))]
fn awake() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// The time of day. Whoever sets it forward has a leader doubt its lease, which is safe; backward changes nothing.
#[cfg(not(target_os = "linux"))]
fn with_suspension() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn read(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

impl fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MonotonicClock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_follows_the_time_of_tests() {
        let clock = MonotonicClock::default();
        let before = clock.now();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now() - before, Duration::from_secs(3600));
    }
}
