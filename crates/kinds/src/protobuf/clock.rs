//! Times as protobuf has them: seconds since 1970, and their fractions.
//!
//! All functions give `None` for what is no time, and `Some(None)` for the one that Go holds for no time at all.

use crate::time;

/// The first moment of the year 1: the zero of Go's times.
const NEVER: i64 = -62_135_596_800;
const SECONDS_OF_A_DAY: i64 = 86_400;

/// The seconds of a time of JSON.
pub(super) fn seconds(text: &str) -> Option<Option<i64>> {
    let seconds = canonical(text).or_else(|| canonical(&time::seconds(text).ok()?))?;
    Some(Some(seconds).filter(|seconds| *seconds != NEVER))
}

/// The seconds and nanoseconds of a time of JSON with microseconds.
pub(super) fn nanos(text: &str) -> Option<Option<(i64, i64)>> {
    let text = time::micros(text).ok()?;
    let (whole, fraction) = text.trim_end_matches('Z').split_once('.')?;
    let (seconds, nanos) = (canonical(&format!("{whole}Z"))?, 1000 * fraction.parse::<i64>().ok()?);
    Some(Some((seconds, nanos)).filter(|time| *time != (NEVER, 0)))
}

/// The JSON of a time, if its year has four digits.
pub(super) fn text(seconds: i64) -> Option<Option<String>> {
    if seconds == NEVER {
        return Some(None);
    }
    let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_A_DAY));
    let rest = seconds.rem_euclid(SECONDS_OF_A_DAY);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let is_readable = (0..=9999).contains(&year);
    is_readable.then(|| Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")))
}

/// The JSON of a time with microseconds; what is finer is cut off.
pub(super) fn micro_text(seconds: i64, nanos: i32) -> Option<Option<String>> {
    let micros = i64::from(nanos / 1000);
    let seconds = seconds.checked_add(micros.div_euclid(1_000_000))?;
    let micros = micros.rem_euclid(1_000_000);
    if (seconds, micros) == (NEVER, 0) {
        return Some(None);
    }
    // The first moment has no text, but those after it in the same second have one.
    let whole = text(seconds)?.unwrap_or_else(|| "0001-01-01T00:00:00Z".to_owned());
    Some(Some(format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))))
}

/// The seconds of `2006-01-02T15:04:05Z`, written just like this.
fn canonical(text: &str) -> Option<i64> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if marks.iter().any(|(at, mark)| bytes[*at] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_i64, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let days = days(year, month, day);
    let is_real = date(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    is_real.then_some(days * SECONDS_OF_A_DAY + hour * 3600 + minute * 60 + second)
}

// Years are counted from March on, so that the leap day is the last one of a year. 400 of them have 146097 days.

fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + day_of_year - 719_468
}

fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_is_read_and_written() {
        let mut before = String::new();
        for day in -200_000..200_000 {
            let written = text(day * SECONDS_OF_A_DAY + 86_399).unwrap().unwrap();
            assert!(written > before, "{before} {written}");
            assert_eq!(seconds(&written), Some(Some(day * SECONDS_OF_A_DAY + 86_399)), "{written}");
            before = written;
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (number, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (NEVER + 1, "0001-01-01T00:00:01Z"),
        ] {
            assert_eq!(text(number), Some(Some(written.to_owned())));
            assert_eq!(seconds(written), Some(Some(number)));
        }
        assert_eq!((text(NEVER), seconds("0001-01-01T00:00:00Z")), (Some(None), Some(None)));
        assert_eq!((text(i64::MAX), text(i64::MIN), text(253_402_300_800)), (None, None, None));
        assert_eq!(seconds("2006-01-02T15:04:05+01:00"), seconds("2006-01-02T14:04:05Z"));
        for wrong in ["", "2006-02-30T15:04:05Z", "2006-01-02T24:04:05Z", "x"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn microseconds_are_cut_and_carried() {
        assert_eq!(micro_text(0, 1_999).unwrap().unwrap(), "1970-01-01T00:00:00.000001Z");
        assert_eq!(micro_text(0, -1_999).unwrap().unwrap(), "1969-12-31T23:59:59.999999Z");
        assert_eq!(micro_text(NEVER, 999), Some(None));
        assert_eq!(micro_text(i64::MAX, i32::MAX), None);
        assert_eq!(nanos("1970-01-01T00:00:01.000002Z"), Some(Some((1, 2_000))));
        assert_eq!(nanos("0001-01-01T00:00:00.000000Z"), Some(None));
    }
}
