//! The times that objects carry.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What time it is, as objects will say.
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
    let time = time.min(last());
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// A time that [`stamp`] wrote, or any RFC 3339 time in UTC; fractions of a second are dropped.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let bytes = text.as_bytes();
    if bytes.len() < 20 || bytes.last() != Some(&b'Z') || bytes[10] != b'T' {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let clock = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    UNIX_EPOCH.checked_add(Duration::from_secs(days(year, month, day) * 86_400 + clock))
}

/// The date so many days after 1970-01-01, in the Gregorian calendar: years begin in March, so that leap days come last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The opposite of [`civil`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    (era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year)
        .saturating_sub(719_468)
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
        for wrong in ["", "2025-11-15", "2025-13-15T06:23:41Z", "2025-11-15T06:23:41+01:00", "äääääääääääZ"]
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
