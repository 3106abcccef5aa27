//! Moments in certificates, to the second.

use std::time::{SystemTime, UNIX_EPOCH};

use watchkeeper_go::{Time, calendar};

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
    if !is_time || !(1..=calendar::days_in(year, month)).contains(&day) {
        return Err(WRONG);
    }
    let seconds = calendar::days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Time::from_unix(seconds).to_system().ok_or(WRONG)
}

/// Writes a moment: with two digits for the year as long as that is unambiguous, as X.509 wants it. One before 1970 is 1970,
/// one after 9999 the end of it.
pub fn write(at: SystemTime) -> Vec<u8> {
    /// The last second of 9999.
    const LAST: i64 = 253_402_300_799;
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).unwrap_or(LAST).min(LAST);
    let (year, month, day) = calendar::date(seconds / DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let rest = format!("{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    match year {
        ..2050 => der::tagged(UTC_TIME, format!("{:02}{rest}", year % 100).as_bytes()),
        _ => der::tagged(GENERALIZED_TIME, format!("{year:04}{rest}").as_bytes()),
    }
}
