//! Dates, times and durations, as the package `strfmt` of kube-openapi reads them.

use watchkeeper_go::{calendar, duration};

pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let digits = bytes.get(from..to)?;
        digits
            .iter()
            .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
    };
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && (1..=calendar::days_in(year, month)).contains(&day)
}

/// A date, a `t`, a time with a zone. Whatever stands behind a second `t` is not looked at.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_time(time).unwrap_or(false),
        _ => false,
    }
}

fn is_time(text: &str) -> Option<bool> {
    let two_digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (clock, mut rest) = text.split_at_checked(8)?;
    let (hour, minute, second) = (clock.get(..2)?, clock.get(3..5)?, clock.get(6..)?);
    let clock_is_good = clock.as_bytes()[2] == b':'
        && clock.as_bytes()[5] == b':'
        && [hour, minute, second].into_iter().all(two_digits)
        && hour <= "23"
        && minute <= "59"
        && second <= "59";
    // The separator of the fraction can be any character, even the sign of a zone.
    let mut chars = rest.chars();
    if let Some(separator) = chars.next().filter(|char| *char != '\n') {
        let digits = rest[separator.len_utf8()..].bytes().take_while(u8::is_ascii_digit).count();
        let after = &rest[separator.len_utf8() + digits..];
        if digits > 0 && is_zone(after) {
            rest = after;
        }
    }
    Some(clock_is_good && is_zone(rest))
}

fn is_zone(text: &str) -> bool {
    let bytes = text.as_bytes();
    text == "z"
        || (bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].into_iter().all(|at| bytes[at].is_ascii_digit()))
}

/// What Go calls a duration, or anywhere in the text a number and a unit, spelled out or not.
pub(super) fn is_duration(text: &str) -> bool {
    duration::parse(text).is_ok() || has_duration(text).unwrap_or(false)
}

/// `None` if a number is too large for any unit.
fn has_duration(text: &str) -> Option<bool> {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|char: char| char.is_ascii_digit()) {
        let from = &rest[start..];
        let end = from.find(|char: char| !char.is_ascii_digit()).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        let space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\u{c}' | '\r');
        let after = after.trim_start_matches(space);
        let end =
            after.find(|char: char| !(char.is_ascii_alphabetic() || char == 'µ')).unwrap_or(after.len());
        if end > 0 {
            number.parse::<i64>().ok()?;
            found |= is_unit(&after[..end].to_lowercase());
        }
        rest = &after[end..];
    }
    Some(found)
}

fn is_unit(unit: &str) -> bool {
    const SHORT: [&str; 10] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w"];
    const LONG: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    SHORT.contains(&unit) || unit == "wk" || LONG.iter().any(|long| unit.starts_with(long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_counts() {
        for good in ["2020-02-29", "1999-12-31", "0001-01-01", "2000-02-29"] {
            assert!(is_date(good), "{good}");
        }
        for bad in [
            "2019-02-29",
            "1900-02-29",
            "2020-13-01",
            "2020-1-1",
            "2020-01-32",
            "",
            "20200101",
            "2020-01-01 ",
        ] {
            assert!(!is_date(bad), "{bad}");
        }
    }

    #[test]
    fn times_need_a_zone() {
        for good in [
            "2014-12-15T19:30:20Z",
            "2014-12-15t08:00:00.000z",
            "2014-12-15T19:30:20.000+01:00",
            "2014-12-15T19:30:20x5-23:59",
        ] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "2014-12-15",
            "2014-12-15T19:30:20",
            "2014-12-15T24:00:00Z",
            "2014-12-15T23:60:00Z",
            "2014-12-15 19:30:20Z",
            "t",
            "2014-12-15T19:30:2Z",
            "2014-12-15T19:30:20é",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    #[test]
    fn durations_are_those_of_go_and_of_scala() {
        for good in ["1h30m", "-1.5h", "0", "5 minutes", "3 days", "1w", "12 ms", ".5s", "1us", "in 3 hours"]
        {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["", "h", "1", "1x", "1 1", "99999999999999999999 d", "."] {
            assert!(!is_duration(bad), "{bad}");
        }
    }
}
