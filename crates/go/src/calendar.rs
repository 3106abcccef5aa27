//! The Gregorian calendar: days since 1970-01-01 and back.
//!
//! Years are counted from March on, so that the leap day is the last day of a year. 400 of these years have 146,097 days.

/// Days from the first of March of the year 0 to 1970-01-01.
const EPOCH: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// Days from 1970-01-01 to a date. A day beyond the end of its month counts into the next one.
///
/// ```
/// use watchkeeper_go::calendar;
/// assert_eq!(calendar::days(1970, 1, 1), 0);
/// assert_eq!(calendar::days(2000, 2, 29), 11_016);
/// assert_eq!(calendar::date(11_016), (2000, 2, 29));
/// ```
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + day_of_year - EPOCH
}

/// The year, month and day so many days after 1970-01-01.
pub fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// The number of days of a month; none if there is no such month.
pub fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = date(-1_000_000);
        for number in -1_000_000..1_000_000 {
            assert_eq!(date(number), (year, month, day));
            assert_eq!(days(year, month, day), number);
            day += 1;
            if day > days_in(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn only_twelve_months_have_days() {
        assert_eq!((days_in(2020, 0), days_in(2020, 13)), (0, 0));
        assert_eq!((days_in(1900, 2), days_in(2000, 2), days_in(2020, 2)), (28, 29, 29));
    }
}
