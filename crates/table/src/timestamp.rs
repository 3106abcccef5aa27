use crate::duration::human_seconds;
use std::time::{SystemTime, UNIX_EPOCH};

/// How far apart two moments can be, in seconds: Go counts nanoseconds in 64 bits.
const LONGEST: i64 = i64::MAX / NANOS;
const NANOS: i64 = 1_000_000_000;
/// The first second of the year 1, which stands for "no time".
const ZERO: i64 = -62_135_596_800;

/// A moment: seconds since 1970 and nanoseconds into that second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp {
    seconds: i64,
    nanos: i64,
}

impl Timestamp {
    /// "No time" of Go.
    pub(crate) const NONE: Self = Self { seconds: ZERO, nanos: 0 };

    /// Reads RFC 3339 as Go reads it: a fraction may follow a comma, an hour may be one digit, and a second is never 60.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = Digits(text.as_bytes());
        let year = rest.number(4, 4)?;
        rest.skip(b"-")?;
        let month = rest.number(2, 2)?;
        rest.skip(b"-")?;
        let day = rest.number(2, 2)?;
        rest.skip(b"T")?;
        let hour = rest.number(1, 2)?;
        rest.skip(b":")?;
        let minute = rest.number(2, 2)?;
        rest.skip(b":")?;
        let second = rest.number(2, 2)?;
        let nanos = rest.fraction();
        let offset = rest.offset()?;
        let fits = rest.0.is_empty()
            && (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let seconds =
            days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        fits.then_some(Self { seconds, nanos })
    }

    /// Whether this is "no time".
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// How long ago this was, for a person.
    pub(crate) fn age(self, now: Self) -> String {
        human_seconds(now.seconds_since(self))
    }

    /// Whole seconds from `earlier` to here, rounded towards zero.
    pub(crate) fn seconds_since(self, earlier: Self) -> i64 {
        let nanos = i128::from(self.seconds - earlier.seconds) * i128::from(NANOS)
            + i128::from(self.nanos - earlier.nanos);
        let seconds = nanos / i128::from(NANOS);
        i64::try_from(seconds).unwrap_or(LONGEST).clamp(-LONGEST, LONGEST)
    }

    /// RFC 3339 in UTC, without fraction.
    pub(crate) fn rfc3339(self) -> String {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (clamp(after.as_secs()), i64::from(after.subsec_nanos())),
            Err(error) => {
                let before = error.duration();
                (-clamp(before.as_secs()), -i64::from(before.subsec_nanos()))
            }
        };
        Self { seconds: seconds + nanos.div_euclid(NANOS), nanos: nanos.rem_euclid(NANOS) }
    }
}

/// Seconds that stay far from the ends of 64 bits, so that sums of them do too.
fn clamp(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).min(1 << 50)
}

/// What is left of a text to read.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// Nanoseconds after a point or comma; what is finer is dropped.
    fn fraction(&mut self) -> i64 {
        let [b'.' | b',', rest @ ..] = self.0 else {
            return 0;
        };
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return 0;
        }
        let (digits, rest) = rest.split_at(count);
        self.0 = rest;
        (0..9)
            .fold(0, |nanos, place| nanos * 10 + digits.get(place).map_or(0, |digit| i64::from(digit - b'0')))
    }

    /// Seconds that local time is ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        if self.skip(b"Z").is_some() {
            return Some(0);
        }
        let sign = if self.skip(b"+").is_some() {
            1
        } else {
            self.skip(b"-")?;
            -1
        };
        let hours = self.number(2, 2)?;
        self.skip(b":")?;
        let minutes = self.number(2, 2)?;
        (hours <= 24 && minutes <= 60).then_some(sign * (hours * 3600 + minutes * 60))
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date of the Gregorian calendar, whose years are counted from March so that the leap day is last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_is_written_as_it_was_read() {
        for day in -150_000..150_000 {
            let (year, month, date) = civil_from_days(day);
            assert_eq!(days_from_civil(year, month, date), day);
            let text = format!("{year:04}-{month:02}-{date:02}T23:59:58Z");
            let read = Timestamp::parse(&text).map(Timestamp::rfc3339);
            assert_eq!(read, Some(text));
        }
    }

    #[test]
    fn moments_are_read_with_offset_and_fraction() {
        let at = |text| Timestamp::parse(text).map(|time| (time.seconds, time.nanos));
        assert_eq!(at("1970-01-01T00:00:00Z"), Some((0, 0)));
        assert_eq!(at("1970-01-01T01:30:00.5+01:30"), Some((0, 500_000_000)));
        assert_eq!(at("1969-12-31T23:00:01,0000000019-01:00"), Some((1, 1)));
        assert_eq!(at("2026-11-15T6:00:00Z"), at("2026-11-15T06:00:00Z"));
        for wrong in [
            "",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00+25:00",
            "2026-01-01T00:00:00Zx",
            "26-01-01T00:00:00Z",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ages_are_cut_off_where_go_runs_out_of_nanoseconds() {
        let now = Timestamp::from(SystemTime::UNIX_EPOCH);
        assert_eq!(Timestamp::NONE.age(now), "292y");
        assert_eq!(now.age(now), "0s");
        assert_eq!(Timestamp { seconds: 1, nanos: 999_999_999 }.age(now), "0s");
        assert_eq!(Timestamp { seconds: 2, nanos: 0 }.age(now), "<invalid>");
    }
}
