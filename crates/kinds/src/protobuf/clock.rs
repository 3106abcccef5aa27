//! Times as protobuf has them: seconds since 1970, and their fractions.
//!
//! All functions give `None` for what is no time, and `Some(None)` for the one that Go holds for no time at all.

use watchkeeper_go::Time;

/// The seconds of a time of JSON.
pub(super) fn seconds(text: &str) -> Option<Option<i64>> {
    let seconds = Time::parse(text).ok()?.seconds();
    Some(Some(seconds).filter(|seconds| *seconds != Time::ZERO.seconds()))
}

/// The seconds and nanoseconds of a time of JSON with microseconds.
pub(super) fn nanos(text: &str) -> Option<Option<(i64, i64)>> {
    let time = Time::parse_micro(text).ok()?;
    Some((!time.is_zero()).then(|| (time.seconds(), time.nanos().into())))
}

/// The JSON of a time, if its year has four digits.
pub(super) fn text(seconds: i64) -> Option<Option<String>> {
    written(Time::from_unix(seconds), Time::rfc3339)
}

/// The JSON of a time with microseconds; what is finer is cut off.
pub(super) fn micro_text(seconds: i64, nanos: i32) -> Option<Option<String>> {
    let whole_micros = i64::from(nanos / 1000) * 1000;
    written(Time::from_unix(seconds).checked_add_nanos(whole_micros)?, Time::rfc3339_micro)
}

fn written(time: Time, write: fn(Time) -> String) -> Option<Option<String>> {
    let is_readable = (0..=9999).contains(&time.year());
    is_readable.then(|| (!time.is_zero()).then(|| write(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: i64 = Time::ZERO.seconds();

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
