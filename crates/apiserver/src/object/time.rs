//! The times that objects carry.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use watchkeeper_go::Time;

/// The clock of the times in objects.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// A clock that says what this function says.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Now.
    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// Now, as `metadata.creationTimestamp` has it: whole seconds, UTC.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.now())
    }
}

/// The clock of this machine.
impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The last time that is written, in seconds since 1970: the beginning of 9999. RFC 3339 ends with that year, and clients have to
/// be able to read it in any zone; some cannot hold its last day.
const LAST_SECOND: u64 = 253_370_764_800;

/// The last time that objects carry.
fn last() -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(LAST_SECOND)).unwrap_or(UNIX_EPOCH)
}

/// So long after a time, but not after the last time that objects carry. kube-apiserver overflows instead, and says some
/// time in the past.
pub(crate) fn after(time: SystemTime, wait: Duration) -> SystemTime {
    time.checked_add(wait).map_or_else(last, |time| time.min(last()))
}

/// A time as RFC 3339 in whole seconds, UTC. Times before 1970 are 1970, those after the last time that objects carry are that.
pub(crate) fn stamp(time: SystemTime) -> String {
    Time::from(time.clamp(UNIX_EPOCH, last())).rfc3339()
}

/// A time of an object from 1970 on; fractions of a second are dropped.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let seconds = Time::parse(text).ok()?.seconds();
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_763_187_821, "2025-11-15T06:23:41Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(stamp(time), text);
            assert_eq!(parse(text), Some(time));
        }
        assert_eq!(parse("9999-01-01T00:00:00Z"), Some(last()));
        let with_fraction = parse("2025-11-15T06:23:41.123456Z");
        assert_eq!(with_fraction, parse("2025-11-15T06:23:41Z"));
        assert_eq!(parse("2025-11-15T07:23:41+01:00"), parse("2025-11-15T06:23:41Z"));
        for wrong in ["", "2025-11-15", "2025-13-15T06:23:41Z", "1969-12-31T23:59:59Z", "äääääääääääZ"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_time_is_later_than_all_clients_can_read() {
        let now = UNIX_EPOCH + Duration::from_secs(1_763_187_821);
        let after = |seconds| stamp(after(now, Duration::from_secs(seconds)));
        assert_eq!(after(30), "2025-11-15T06:24:11Z");
        for seconds in [LAST_SECOND, i64::MAX as u64, u64::MAX] {
            assert_eq!(after(seconds), "9999-01-01T00:00:00Z");
        }
        assert_eq!(stamp(now + Duration::from_secs(1 << 40)), "9999-01-01T00:00:00Z");
    }
}
