use std::time::Duration;

/// A duration as Go writes it: `90s`, `5m`, `1h30m`. It is longer than nothing.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    match parse_any(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(format!("{text:?} is not a duration such as 90s, 5m or 1h30m")),
    }
}

/// The same, or no time at all: `0s`, `0`.
pub(crate) fn parse_any(text: &str) -> Result<Duration, String> {
    let nanos = watchkeeper_go::duration::parse(text).ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("{text:?} is not a duration such as 90s, 5m or 1h30m, or 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, seconds) in
            [("90s", 90.0), ("5m", 300.0), ("1h30m", 5400.0), ("250ms", 0.25), ("1.5s", 1.5)]
        {
            assert_eq!(parse(text).map(|duration| duration.as_secs_f64()), Ok(seconds));
        }
        for wrong in ["", "5", "s", "-5s", "5 s", "5d", "0s", "5m3", "99999999999999999999s", "\u{fc}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [parse_any("0"), parse_any("0s"), parse_any("2s")].map(|read| read.map(|read| read.as_secs())),
            [Ok(0), Ok(0), Ok(2)]
        );
        assert!(parse_any("-1s").is_err() && parse_any("").is_err());
    }
}
