//! Lengths of time in two or three digits: `45s`, `5m10s`, `3h7m`, `12d`, `2y40d`.

use std::time::Duration;
use watchkeeper_go::Time;

/// What stands where a length of time would, if a moment lies more than a second in the future.
const INVALID: &str = "<invalid>";

/// Writes a duration for people, as `kubectl` does: the shorter, the more exact.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_table::duration::human;
/// assert_eq!(human(Duration::from_secs(119)), "119s");
/// assert_eq!(human(Duration::from_secs(310)), "5m10s");
/// assert_eq!(human(Duration::from_secs(3 * 3600 + 7 * 60)), "3h7m");
/// ```
pub fn human(duration: Duration) -> String {
    human_seconds(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

/// Writes a duration in one unit: `59s`, `59m`, `23h`, `364d`, `3y`.
pub fn human_short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match () {
        () if seconds < 60 => format!("{seconds}s"),
        () if minutes < 60 => format!("{minutes}m"),
        () if hours < 24 => format!("{hours}h"),
        () if hours < 24 * 365 => format!("{}d", hours / 24),
        () => format!("{}y", hours / 24 / 365),
    }
}

/// Writes the time since a moment.
pub fn age(since: Time, now: Time) -> String {
    human_seconds(now.seconds_since(since))
}

/// Writes whole seconds as [`human`] does. They may be negative: clocks differ, so one second into the future is still now.
pub fn human_seconds(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match () {
        () if seconds < -1 => INVALID.into(),
        () if seconds < 0 => "0s".into(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

/// A large unit and, unless there is nothing of it, a small one.
fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_cut_off_where_go_runs_out_of_nanoseconds() {
        let now = Time::from_unix(0);
        let at = |text: &str| age(Time::parse(text).unwrap(), now);
        assert_eq!(age(Time::ZERO, now), "292y");
        assert_eq!(age(now, now), "0s");
        assert_eq!(at("1970-01-01T00:00:01.999999999Z"), "0s");
        assert_eq!(at("1970-01-01T00:00:02Z"), "<invalid>");
    }
}
