use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::calendar;
use crate::quote::of_time as quote;

const SECONDS_OF_A_DAY: i64 = 86_400;
const NANOS_OF_A_SECOND: i64 = 1_000_000_000;
/// The longest time between two moments, in seconds: Go counts nanoseconds in 64 bits.
const LONGEST: i64 = i64::MAX / NANOS_OF_A_SECOND;

/// The layout of `metav1.Time`.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// The layout of `metav1.MicroTime`.
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// A moment, as Go's `time.Time` in UTC: seconds since 1970 and nanoseconds into that second.
///
/// ```
/// use watchkeeper_go::Time;
/// let time = Time::parse("2020-03-01T00:30:00.25+01:00")?;
/// assert_eq!(time.rfc3339(), "2020-02-29T23:30:00Z");
/// assert_eq!(time.rfc3339_micro(), "2020-02-29T23:30:00.250000Z");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    seconds: i64,
    nanos: u32,
}

impl Time {
    /// The first moment of the year 1, which Go takes for "no time".
    pub const ZERO: Self = Self { seconds: -62_135_596_800, nanos: 0 };

    /// The moment so many seconds after 1970.
    pub const fn from_unix(seconds: i64) -> Self {
        Self { seconds, nanos: 0 }
    }

    /// Reads a `metav1.Time`: RFC 3339, with or without a fraction of a second.
    ///
    /// As in Go, a fraction may follow a comma, an hour may have one digit, and a second is never 60.
    ///
    /// # Errors
    ///
    /// The message of Go's `time.Parse`.
    pub fn parse(text: &str) -> Result<Self, String> {
        Reader::new(text, SECONDS).read()
    }

    /// Reads a `metav1.MicroTime`: RFC 3339 with six digits after the second.
    ///
    /// # Errors
    ///
    /// The message of Go's `time.Parse`.
    pub fn parse_micro(text: &str) -> Result<Self, String> {
        Reader::new(text, MICROS).read()
    }

    /// Whether this is "no time".
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whole seconds since 1970.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds into the second.
    pub const fn nanos(self) -> u32 {
        self.nanos
    }

    /// The year in UTC.
    pub fn year(self) -> i64 {
        calendar::date(self.seconds.div_euclid(SECONDS_OF_A_DAY)).0
    }

    /// The moment so many nanoseconds later or earlier; `None` where 64 bits of seconds end.
    pub fn checked_add_nanos(self, nanos: i64) -> Option<Self> {
        let sum = i64::from(self.nanos) + nanos.rem_euclid(NANOS_OF_A_SECOND);
        let carried = nanos.div_euclid(NANOS_OF_A_SECOND) + sum.div_euclid(NANOS_OF_A_SECOND);
        let nanos = u32::try_from(sum.rem_euclid(NANOS_OF_A_SECOND)).ok()?;
        Some(Self { seconds: self.seconds.checked_add(carried)?, nanos })
    }

    /// Whole seconds from `earlier` to this moment, rounded towards zero. As Go's durations, at most 292 years.
    pub fn seconds_since(self, earlier: Self) -> i64 {
        let nanos = (i128::from(self.seconds) - i128::from(earlier.seconds)) * i128::from(NANOS_OF_A_SECOND)
            + i128::from(self.nanos)
            - i128::from(earlier.nanos);
        let seconds = nanos / i128::from(NANOS_OF_A_SECOND);
        i64::try_from(seconds.clamp(i128::from(-LONGEST), i128::from(LONGEST))).unwrap_or(LONGEST)
    }

    /// The text of a `metav1.Time`: UTC, whole seconds.
    pub fn rfc3339(self) -> String {
        format!("{}Z", self.to_the_second())
    }

    /// The text of a `metav1.MicroTime`: UTC, whole microseconds.
    pub fn rfc3339_micro(self) -> String {
        format!("{}.{:06}Z", self.to_the_second(), self.nanos / 1000)
    }

    fn to_the_second(self) -> String {
        let (year, month, day) = calendar::date(self.seconds.div_euclid(SECONDS_OF_A_DAY));
        let rest = self.seconds.rem_euclid(SECONDS_OF_A_DAY);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let (sign, year) = (if year < 0 { "-" } else { "" }, year.unsigned_abs());
        format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }

    /// The moment on the clock of this machine; `None` where that clock cannot show it.
    pub fn to_system(self) -> Option<SystemTime> {
        let distance = Duration::from_secs(self.seconds.unsigned_abs());
        let whole = if self.seconds < 0 {
            UNIX_EPOCH.checked_sub(distance)
        } else {
            UNIX_EPOCH.checked_add(distance)
        };
        whole?.checked_add(Duration::from_nanos(self.nanos.into()))
    }
}

impl From<SystemTime> for Time {
    /// Times further than some million years from 1970 are that far.
    fn from(time: SystemTime) -> Self {
        let far = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).min(1 << 50);
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self { seconds: far(after.as_secs()), nanos: after.subsec_nanos() },
            Err(error) => match (far(error.duration().as_secs()), error.duration().subsec_nanos()) {
                (seconds, 0) => Self { seconds: -seconds, nanos: 0 },
                (seconds, nanos) => Self { seconds: -seconds - 1, nanos: 1_000_000_000 - nanos },
            },
        }
    }
}

/// What `time.Parse` has read of a text, and what is left of it.
struct Reader<'a> {
    text: &'a str,
    layout: &'static str,
    rest: &'a [u8],
}

/// Why a part of a text is not what the layout says.
enum Wrong {
    /// It does not look like it.
    Form,
    /// It is a number that means nothing.
    Range(&'static str),
}

type Part<T> = Result<T, Wrong>;

impl<'a> Reader<'a> {
    fn new(text: &'a str, layout: &'static str) -> Self {
        Self { text, layout, rest: text.as_bytes() }
    }

    fn read(mut self) -> Result<Time, String> {
        let year = self.part("2006", Self::year)?;
        self.mark("-")?;
        let month = self.part("01", |reader| reader.within(true, 1, 12, "month"))?;
        self.mark("-")?;
        let day = self.part("02", |reader| reader.number(true))?;
        self.mark("T")?;
        let hour = self.part("15", |reader| reader.within(false, 0, 23, "hour"))?;
        self.mark(":")?;
        let minute = self.part("04", |reader| reader.within(true, 0, 59, "minute"))?;
        self.mark(":")?;
        let second = self.part("05", |reader| reader.within(true, 0, 59, "second"))?;
        let nanos =
            if self.layout == MICROS { self.part(".000000", Self::six_digits)? } else { self.fraction() };
        let offset = self.part("Z07:00", Self::offset)?;
        if !self.rest.is_empty() {
            return Err(format!(
                "parsing time {}: extra text: {}",
                quote(self.text.as_bytes()),
                quote(self.rest)
            ));
        }
        if !(1..=calendar::days_in(year, month)).contains(&day) {
            return Err(self.out_of_range("day"));
        }
        let clock = hour * 3600 + minute * 60 + second - offset;
        Ok(Time { seconds: calendar::days(year, month, day) * SECONDS_OF_A_DAY + clock, nanos })
    }

    /// A part that the layout has as `shown`.
    fn part<T>(&mut self, shown: &str, read: impl FnOnce(&mut Self) -> Part<T>) -> Result<T, String> {
        let before = self.rest;
        read(self).map_err(|wrong| match wrong {
            Wrong::Form => self.unlike(before, shown),
            Wrong::Range(name) => self.out_of_range(name),
        })
    }

    /// A character that stands for itself.
    fn mark(&mut self, mark: &str) -> Result<(), String> {
        match self.rest.strip_prefix(mark.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.unlike(self.rest, mark)),
        }
    }

    fn unlike(&self, found: &[u8], shown: &str) -> String {
        let [text, found] = [self.text.as_bytes(), found].map(quote);
        format!("parsing time {text} as \"{}\": cannot parse {found} as \"{shown}\"", self.layout)
    }

    fn out_of_range(&self, name: &str) -> String {
        format!("parsing time {}: {name} out of range", quote(self.text.as_bytes()))
    }

    fn year(&mut self) -> Part<i64> {
        let (year, rest) = self.rest.split_at_checked(4).ok_or(Wrong::Form)?;
        self.rest = rest;
        digits(year).ok_or(Wrong::Form)
    }

    /// A number of two digits, or of one where that is enough.
    fn number(&mut self, is_padded: bool) -> Part<i64> {
        let count = self.rest.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 || is_padded && count == 1 {
            return Err(Wrong::Form);
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits(number).ok_or(Wrong::Form)
    }

    fn within(&mut self, is_padded: bool, least: i64, most: i64, name: &'static str) -> Part<i64> {
        let number = self.number(is_padded)?;
        if (least..=most).contains(&number) { Ok(number) } else { Err(Wrong::Range(name)) }
    }

    /// Nanoseconds after a point or a comma that the layout does not have; finer digits are dropped.
    fn fraction(&mut self) -> u32 {
        let [b'.' | b',', rest @ ..] = self.rest else { return 0 };
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return 0;
        }
        let (digits, rest) = rest.split_at(count);
        self.rest = rest;
        let digit = |place: usize| digits.get(place).map_or(0, |digit| u32::from(digit - b'0'));
        (0..9).fold(0, |nanos, place| nanos * 10 + digit(place))
    }

    /// Nanoseconds as six characters after a point or a comma. The first may be a sign: Go reads them as any number.
    fn six_digits(&mut self) -> Part<u32> {
        let (fraction, rest) = self.rest.split_at_checked(7).ok_or(Wrong::Form)?;
        let [b'.' | b',', number @ ..] = fraction else { return Err(Wrong::Form) };
        let (is_negative, number) = match number {
            [sign @ (b'+' | b'-'), number @ ..] => (*sign == b'-', number),
            number => (false, number),
        };
        let micros = digits(number).ok_or(Wrong::Form)?;
        if is_negative && micros > 0 {
            return Err(Wrong::Range("fractional second"));
        }
        self.rest = rest;
        u32::try_from(micros * 1000).map_err(|_| Wrong::Form)
    }

    /// Seconds that the clock is ahead of UTC.
    fn offset(&mut self) -> Part<i64> {
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let (zone, rest) = self.rest.split_at_checked(6).ok_or(Wrong::Form)?;
        let [sign, _, _, b':', _, _] = zone else { return Err(Wrong::Form) };
        let hours = digits(&zone[1..3]).ok_or(Wrong::Form)?;
        let minutes = digits(&zone[4..]).ok_or(Wrong::Form)?;
        self.rest = rest;
        if minutes > 60 {
            return Err(Wrong::Range("time zone offset minute"));
        }
        if hours > 24 {
            return Err(Wrong::Range("time zone offset hour"));
        }
        match sign {
            b'+' => Ok(hours * 3600 + minutes * 60),
            b'-' => Ok(-(hours * 3600 + minutes * 60)),
            _ => Err(Wrong::Form),
        }
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn texts_are_read_and_refused_as_go_does() {
        for case in recorded(include_str!("cases/times.jsonl")) {
            let text = case["in"].as_str().unwrap();
            for (name, read, write) in [
                ("seconds", Time::parse(text), Time::rfc3339 as fn(Time) -> String),
                ("micro", Time::parse_micro(text), Time::rfc3339_micro),
            ] {
                let said = read.map_or_else(
                    |error| json!({"error": error}),
                    |time| json!({"unix": time.seconds(), "nanos": time.nanos(), "zero": time.is_zero(), "out": write(time)}),
                );
                assert_eq!(case[name], said, "{name} {case}");
            }
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Time::from_unix(seconds).rfc3339(), written);
            assert_eq!(Time::parse(written), Ok(Time::from_unix(seconds)));
        }
        assert_eq!(Time::from_unix(253_402_300_800).year(), 10_000);
        assert!(Time::from_unix(i64::MIN).rfc3339().starts_with('-'));
    }

    #[test]
    fn seconds_between_moments_end_where_go_runs_out_of_nanoseconds() {
        let epoch = Time::from_unix(0);
        let late = Time::parse("1970-01-01T00:00:01.999999999Z").unwrap();
        assert_eq!((late.seconds_since(epoch), epoch.seconds_since(late)), (1, -1));
        assert_eq!(epoch.seconds_since(Time::ZERO), LONGEST);
        assert_eq!(Time::from_unix(i64::MIN).seconds_since(Time::from_unix(i64::MAX)), -LONGEST);
    }

    #[test]
    fn nanoseconds_are_carried() {
        let add = |seconds, nanos| Time::from_unix(seconds).checked_add_nanos(nanos);
        assert_eq!(add(0, -1), Some(Time { seconds: -1, nanos: 999_999_999 }));
        assert_eq!(add(0, 1_999_999_999), Some(Time { seconds: 1, nanos: 999_999_999 }));
        assert_eq!((add(i64::MAX, 1_000_000_000), add(i64::MIN, -1)), (None, None));
        assert_eq!(add(1, 1).and_then(|time| time.checked_add_nanos(-2)), add(0, 999_999_999));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(1024)))]

        #[test]
        fn a_moment_of_the_machine_is_found_again(seconds in -1_i64 << 36..1 << 36, nanos in 0_u32..1_000_000_000) {
            let time = Time { seconds, nanos };
            prop_assert_eq!(time.to_system().map(Time::from), Some(time));
        }

        #[test]
        fn what_is_written_is_read(seconds in Time::ZERO.seconds..253_402_300_800, micros in 0_u32..1_000_000) {
            let time = Time { seconds, nanos: micros * 1000 };
            prop_assert_eq!(Time::parse_micro(&time.rfc3339_micro()), Ok(time));
            prop_assert_eq!(Time::parse(&time.rfc3339()), Ok(Time::from_unix(seconds)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), likely in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2]?[0-9]:[0-5][0-9]:[0-5][0-9]([.,][0-9+-]{0,12})?(Z|[+-][0-9]{2}:[0-9]{2})?") {
            for text in [text, likely] {
                let _ = (Time::parse(&text), Time::parse_micro(&text));
            }
        }
    }

    #[test]
    fn recorded_cases_are_of_both_layouts() {
        let cases = recorded(include_str!("cases/times.jsonl"));
        let read = |name: &str| cases.iter().filter(|case| case[name]["error"] == Value::Null).count();
        assert!(read("seconds") > 20 && read("micro") > 5);
    }
}
