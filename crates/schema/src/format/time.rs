//! Dates, times and durations as Go reads them.

pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0u32, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'))
        })
    };
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-' && day >= 1 && day <= days_in(month, year)
}

fn days_in(month: u32, year: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
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
    is_go_duration(text) || has_duration(text).unwrap_or(false)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut total = 0f64;
    let mut parts = 0;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !(char.is_ascii_digit() || char == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        if !number.bytes().any(|byte| byte.is_ascii_digit())
            || number.bytes().filter(|byte| *byte == b'.').count() > 1
        {
            return false;
        }
        let end = after.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let nanoseconds = match unit {
            "ns" => 1e0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return false,
        };
        total += number.parse::<f64>().unwrap_or_default() * nanoseconds;
        parts += 1;
        rest = after;
    }
    parts > 0 && total < i64::MAX as f64
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

/// An RFC 3339 time as the API writes times: UTC, whole seconds. The error is Go's.
pub(crate) fn utc(text: &str) -> Result<String, String> {
    parse_utc(text).ok_or_else(|| {
        let quoted = crate::go_text::quote(text);
        format!("parsing time {quoted} as \"2006-01-02T15:04:05Z07:00\": cannot parse {quoted} as \"2006\"")
    })
}

fn parse_utc(text: &str) -> Option<String> {
    let (date, time) = text.split_once('T')?;
    let (clock, rest) = time.split_at_checked(8)?;
    let zone = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => fraction.trim_start_matches(|char: char| char.is_ascii_digit()),
        None => rest,
    };
    let zone_is_good = zone == "Z" || (zone != "z" && is_zone(zone));
    if !is_date(date) || !is_time(&format!("{clock}z"))? || !zone_is_good {
        return None;
    }
    let number = |text: &str, from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let offset = match zone {
        "Z" => 0,
        zone => {
            let minutes = number(zone, 1, 3)? * 60 + number(zone, 4, 6)?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let (hour, minute, second) = (number(clock, 0, 2)?, number(clock, 3, 5)?, number(clock, 6, 8)?);
    let minutes = hour * 60 + minute - offset;
    let day = days_from_date(number(date, 0, 4)?, number(date, 5, 7)?, number(date, 8, 10)?)
        + minutes.div_euclid(1440);
    let (year, month, day) = date_from_days(day);
    let minutes = minutes.rem_euclid(1440);
    Some(format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{second:02}Z", minutes / 60, minutes % 60))
}

/// Days since the first of March of the year 0, in the Gregorian calendar: leap days then stand at the end of a year.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 1
}

fn date_from_days(days: i64) -> (i64, i64, i64) {
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (year * 365 + year / 4 - year / 100);
    let month = (day * 5 + 2) / 153;
    let day = day - (month * 153 + 2) / 5 + 1;
    let year = year + era * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
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
    fn times_are_written_in_utc() {
        for (given, written) in [
            ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
            ("2020-03-01T00:30:00.25+01:00", "2020-02-29T23:30:00Z"),
            ("1999-12-31T23:59:59-00:01", "2000-01-01T00:00:59Z"),
            ("2100-02-28T23:00:00-02:00", "2100-03-01T01:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(utc(given).unwrap(), written);
        }
        for bad in
            ["", "x", "2020-01-01", "2020-01-01T00:00:00", "2020-01-01t00:00:00Z", "2020-02-30T00:00:00Z"]
        {
            assert!(utc(bad).is_err(), "{bad}");
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
