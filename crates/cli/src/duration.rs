use std::time::Duration;

/// A duration as people write it: `90s`, `5m`, `1h30m`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 90s, 5m or 1h30m");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).ok_or_else(wrong)?;
        let count: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|char: char| char.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return Err(wrong()),
        };
        let count = u32::try_from(count).map_err(|_| wrong())?;
        total = unit.checked_mul(count).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = &rest[letters..];
    }
    if total.is_zero() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [("90s", 90.0), ("5m", 300.0), ("1h30m", 5400.0), ("250ms", 0.25)] {
            assert_eq!(parse(text).map(|duration| duration.as_secs_f64()), Ok(seconds));
        }
        for wrong in ["", "5", "s", "-5s", "5 s", "5d", "0s", "5m3", "99999999999999999999s", "\u{fc}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
