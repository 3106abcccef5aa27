//! Durations as Go's `time` package reads them: `1h30m`, `1.5s`, `-5ms`.

use crate::quote::of_time;

/// The nanoseconds of a duration.
///
/// # Errors
///
/// The message of Go's `time.ParseDuration`.
///
/// ```
/// use watchkeeper_go::duration;
/// assert_eq!(duration::parse("1m0.5s"), Ok(60_500_000_000));
/// assert_eq!(duration::parse("5").unwrap_err(), r#"time: missing unit in duration "5""#);
/// ```
pub fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let (is_negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let (unit, after) = after.split_at(after.find(is_of_number).unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted(text)));
        }
        let Some(size) = nanoseconds(unit) else {
            return Err(format!("time: unknown unit {} in duration {}", quoted(unit), quoted(text)));
        };
        let whole = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
        let time = whole.ok().and_then(|whole| whole.checked_mul(size)?.checked_add(part(fraction, size)));
        total = time
            .and_then(|time| total.checked_add(time))
            .filter(|total| *total <= 1 << 63)
            .ok_or_else(invalid)?;
        rest = after;
    }
    match i64::try_from(total) {
        Ok(total) if is_negative => Ok(-total),
        Ok(total) => Ok(total),
        Err(_) if is_negative => Ok(i64::MIN),
        Err(_) => Err(invalid()),
    }
}

fn is_of_number(char: char) -> bool {
    char.is_ascii_digit() || char == '.'
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()))
}

/// `0.fraction` of `size`, rounded down. Eighteen digits say more than a nanosecond of an hour.
fn part(fraction: &str, size: u64) -> u64 {
    let kept = &fraction[..fraction.len().min(18)];
    let scale = 10_u128.pow(u32::try_from(kept.len()).unwrap_or_default());
    let value: u128 = kept.parse().unwrap_or_default();
    u64::try_from(value * u128::from(size) / scale).unwrap_or_default()
}

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn quoted(text: &str) -> String {
    of_time(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for case in recorded(include_str!("cases/durations.jsonl")) {
            match parse(case["in"].as_str().unwrap()) {
                Ok(nanoseconds) => assert_eq!(case["nanos"], nanoseconds, "{case}"),
                Err(message) => assert_eq!(case["error"], message, "{case}"),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(256)))]

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), likely in "[-+]?([0-9]{0,20}[.]?[0-9]{0,25}(ns|us|ms|s|m|h|)){0,3}") {
            let _ = (parse(&text), parse(&likely));
        }

        #[test]
        fn what_is_written_is_read(nanoseconds in any::<i64>()) {
            prop_assert_eq!(parse(&format!("{nanoseconds}ns")), Ok(nanoseconds));
        }
    }
}
