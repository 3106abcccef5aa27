//! Moments in certificates, to the second.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Malformed;
use crate::der::{self, GENERALIZED_TIME, Reader, UTC_TIME};

const DAY: i64 = 86_400;

/// Reads the next moment. It has seconds and is in UTC, as X.509 wants it.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<SystemTime, Malformed> {
    const WRONG: Malformed = Malformed("a time is not written as it should be");
    let value = reader.value()?;
    let digits = value.content.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let digits = digits.ok_or(WRONG)?;
    let (pairs, []) = digits.as_chunks::<2>() else { return Err(WRONG) };
    let numbers: Vec<i64> =
        pairs.iter().map(|[tens, ones]| i64::from(tens - b'0') * 10 + i64::from(ones - b'0')).collect();
    let (year, rest) = match (value.tag, numbers.as_slice()) {
        // Two digits are the years from 1950 to 2049.
        (UTC_TIME, [year, rest @ ..]) => (year + if *year < 50 { 2000 } else { 1900 }, rest),
        (GENERALIZED_TIME, [century, year, rest @ ..]) => (century * 100 + year, rest),
        _ => return Err(WRONG),
    };
    let [month, day, hour, minute, second] = *rest else { return Err(WRONG) };
    let is_time = (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
    if !is_time || civil(days(year, month, day)) != (year, month, day) {
        return Err(WRONG);
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let moment =
        if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    moment.ok_or(WRONG)
}

/// Writes a moment: with two digits for the year as long as that is unambiguous, as X.509 wants it. One before 1970 is 1970,
/// one after 9999 the end of it.
pub fn write(at: SystemTime) -> Vec<u8> {
    /// The last second of 9999.
    const LAST: i64 = 253_402_300_799;
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).unwrap_or(LAST).min(LAST);
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let rest = format!("{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    match year {
        ..2050 => der::tagged(UTC_TIME, format!("{:02}{rest}", year % 100).as_bytes()),
        _ => der::tagged(GENERALIZED_TIME, format!("{year:04}{rest}").as_bytes()),
    }
}

/// The date so many days after 1970-01-01 in the Gregorian calendar. Years begin in March, so that leap days come last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The opposite of [`civil`]. A day that a month does not have is one of the next.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}
