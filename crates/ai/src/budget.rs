//! Budgets: reserved before a call, settled after it.
//!
//! A [`Ledger`] is what one owner (a key, a policy) has used in the current minute, hour, day and month. It has no limits of its own: these are
//! handed in with every reservation, so that an edit of them forgets nothing.
//!
//! # What it promises
//!
//! - At every moment, what is used and reserved in a period is at most the limit that the last reservation was made under, plus what calls
//!   used beyond their reservations. If no call uses more than was reserved for it, the limit is never exceeded.
//! - A reservation counts until it is settled or released, whatever becomes of limits meanwhile.
//!
//! # What it does not promise
//!
//! That what is settled after its period has ended counts in the next one: it was used in the period of its reservation.

use std::fmt;

/// How much: of calls, tokens, and money in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Calls.
    pub requests: u64,
    /// Tokens.
    pub tokens: u64,
    /// Money, in billionths of a unit.
    pub money: u64,
}

impl Amounts {
    /// The amount of a unit.
    pub fn of(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => self.requests,
            Unit::Tokens => self.tokens,
            Unit::Money => self.money,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            tokens: self.tokens.saturating_add(other.tokens),
            money: self.money.saturating_add(other.money),
        }
    }

    fn of_mut(&mut self, unit: Unit) -> &mut u64 {
        match unit {
            Unit::Requests => &mut self.requests,
            Unit::Tokens => &mut self.tokens,
            Unit::Money => &mut self.money,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            tokens: self.tokens.saturating_sub(other.tokens),
            money: self.money.saturating_sub(other.money),
        }
    }
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Calls.
    Requests,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 3] = [Self::Requests, Self::Tokens, Self::Money];
}

/// How long a limit is for. Periods are those of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A month.
    Month,
}

impl Period {
    /// All periods, the shortest first.
    pub const ALL: [Self; 4] = [Self::Minute, Self::Hour, Self::Day, Self::Month];

    /// The number of the period that a moment is in, in seconds since 1970.
    pub fn number(self, now: u64) -> u64 {
        match self {
            Self::Minute => now / 60,
            Self::Hour => now / 3_600,
            Self::Day => now / 86_400,
            Self::Month => month(now / 86_400),
        }
    }

    /// How many seconds are left of the period that a moment is in.
    pub fn left(self, now: u64) -> u64 {
        let end = match self {
            Self::Minute => (now / 60 + 1) * 60,
            Self::Hour => (now / 3_600 + 1) * 3_600,
            Self::Day => (now / 86_400 + 1) * 86_400,
            Self::Month => {
                let (today, this) = (now / 86_400, month(now / 86_400));
                let next = (1..=31).find(|days| month(today + days) != this).unwrap_or(31);
                (today + next) * 86_400
            }
        };
        end.saturating_sub(now)
    }
}

/// The month that a day since 1970 is in, counted from the year 0. The days of a year are counted from March, so that the leap day is the last.
fn month(day: u64) -> u64 {
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    (era * 400 + year_of_era) * 12 + from_march + 2
}

/// So much in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Of what.
    pub unit: Unit,
    /// In how long.
    pub period: Period,
    /// How much.
    pub most: u64,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Which.
    pub limit: Limit,
    /// What is used and reserved.
    pub taken: u64,
    /// What was asked for.
    pub wanted: u64,
    /// Seconds until the period ends.
    pub wait: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit: Limit { unit, period, most }, taken, wanted, wait } = self;
        let period = match period {
            Period::Minute => "minute",
            Period::Hour => "hour",
            Period::Day => "day",
            Period::Month => "month",
        };
        match unit {
            Unit::Requests => write!(f, "the limit of {most} requests a {period} is reached")?,
            Unit::Tokens => write!(
                f,
                "the limit of {most} tokens a {period} does not allow this request: {taken} are used or reserved, {wanted} would be reserved"
            )?,
            Unit::Money => write!(
                f,
                "the budget of {} a {period} does not allow this request: {} is used or reserved, {} would be reserved",
                crate::Money(*most),
                crate::Money(*taken),
                crate::Money(*wanted)
            )?,
        }
        write!(f, "; try again in {wait} seconds, or with a smaller max_tokens")
    }
}

/// What an owner has used and reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    windows: [Window; Period::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    number: u64,
    used: Amounts,
    reserved: Amounts,
    /// What is leased of a budget that is shared with others.
    leased: Amounts,
    /// Units of which there was nothing left to lease, and when that was, in seconds since 1970.
    exhausted: [Option<u64>; Unit::ALL.len()],
}

impl Window {
    fn taken(&self, unit: Unit) -> u64 {
        self.used.of(unit).saturating_add(self.reserved.of(unit))
    }
}

/// Why nothing is reserved of a budget that is shared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// A limit is reached.
    Exceeded(Exceeded),
    /// More has to be leased first.
    Unleased,
}

/// What a ledger lacks, or has to spare, of a budget that is shared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of what.
    pub unit: Unit,
    /// In how long.
    pub period: Period,
    /// In which period of this length.
    pub number: u64,
    /// How much.
    pub amount: u64,
}

/// What is reserved for a call. It counts until it is settled or released.
#[must_use = "a reservation that is neither settled nor released counts until its periods end"]
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation {
    numbers: [u64; Period::ALL.len()],
    amounts: Amounts,
}

impl Reservation {
    /// How much is reserved.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }
}

impl Ledger {
    /// Reserves, if all limits allow it.
    ///
    /// # Errors
    ///
    /// The first limit that does not; then nothing is reserved.
    pub fn reserve(&mut self, now: u64, limits: &[Limit], wanted: Amounts) -> Result<Reservation, Exceeded> {
        self.turn(now);
        for limit in limits {
            let taken = self.windows[limit.period as usize].taken(limit.unit);
            let asked = wanted.of(limit.unit);
            if taken.saturating_add(asked) > limit.most {
                return Err(Exceeded { limit: *limit, taken, wanted: asked, wait: limit.period.left(now) });
            }
        }
        Ok(self.take(wanted))
    }

    fn take(&mut self, wanted: Amounts) -> Reservation {
        for window in &mut self.windows {
            window.reserved = window.reserved.plus(wanted);
        }
        Reservation { numbers: self.windows.map(|window| window.number), amounts: wanted }
    }

    /// Reserves of a budget that is shared with others, if all limits allow it and enough is leased.
    ///
    /// # Errors
    ///
    /// Why nothing is reserved. [`Shortage::Unleased`] is to be followed by a lease, of what [`lacks`](Self::lacks) says.
    pub fn reserve_leased(
        &mut self,
        now: u64,
        limits: &[Limit],
        wanted: Amounts,
    ) -> Result<Reservation, Shortage> {
        self.turn(now);
        let mut is_short = false;
        for limit in limits {
            let window = &self.windows[limit.period as usize];
            let (taken, asked) = (window.taken(limit.unit), wanted.of(limit.unit));
            let needed = taken.saturating_add(asked);
            if needed <= limit.most && needed <= window.leased.of(limit.unit) {
                continue;
            }
            // Whoever asks once more within a second hears the same.
            let is_known = window.exhausted[limit.unit as usize].is_some_and(|then| now <= then + 1);
            if needed > limit.most || is_known {
                let exceeded = Exceeded { limit: *limit, taken, wanted: asked, wait: limit.period.left(now) };
                return Err(Shortage::Exceeded(exceeded));
            }
            is_short = true;
        }
        match is_short {
            true => Err(Shortage::Unleased),
            false => Ok(self.take(wanted)),
        }
    }

    /// What is to be leased so that all of this can be reserved, with the limit of it.
    pub fn lacks(&mut self, now: u64, limits: &[Limit], wanted: Amounts) -> Vec<(Part, u64)> {
        self.turn(now);
        let lacks = limits.iter().filter_map(|limit| {
            let Limit { unit, period, most } = *limit;
            let window = &self.windows[period as usize];
            let needed = window.taken(unit).saturating_add(wanted.of(unit));
            let amount = needed.saturating_sub(window.leased.of(unit));
            (amount > 0).then_some((Part { unit, period, number: window.number, amount }, most))
        });
        lacks.collect()
    }

    /// Notes what was leased of what is lacking; less than that says that there is no more.
    pub fn lease(&mut self, now: u64, lacking: Part, amount: u64) {
        self.turn(now);
        let Part { unit, period, number, .. } = lacking;
        let window = &mut self.windows[period as usize];
        if window.number == number {
            let leased = window.leased.of_mut(unit);
            *leased = leased.saturating_add(amount);
            window.exhausted[unit as usize] = (amount < lacking.amount).then_some(now);
        }
    }

    /// Takes out what is leased and not used or reserved, to give it back.
    pub fn take_spare(&mut self, now: u64) -> Vec<Part> {
        self.turn(now);
        let mut spare = Vec::new();
        for (window, period) in self.windows.iter_mut().zip(Period::ALL) {
            for unit in Unit::ALL {
                let amount = window.leased.of(unit).saturating_sub(window.taken(unit));
                if amount > 0 {
                    *window.leased.of_mut(unit) -= amount;
                    spare.push(Part { unit, period, number: window.number, amount });
                }
            }
        }
        spare
    }

    /// Replaces a reservation by what was really used.
    pub fn settle(&mut self, reservation: Reservation, used: Amounts) {
        for (window, number) in self.windows.iter_mut().zip(reservation.numbers) {
            if window.number == number {
                window.reserved = window.reserved.minus(reservation.amounts);
                window.used = window.used.plus(used);
            }
        }
    }

    /// Takes all of a reservation for used: nobody knows what was.
    pub fn keep(&mut self, reservation: Reservation) {
        let used = reservation.amounts;
        self.settle(reservation, used);
    }

    /// Gives a reservation back: the call was never made.
    pub fn release(&mut self, reservation: Reservation) {
        self.settle(reservation, Amounts::default());
    }

    /// What is used in the period that a moment is in, and what is reserved.
    pub fn taken(&mut self, now: u64, period: Period) -> (Amounts, Amounts) {
        self.turn(now);
        let window = &self.windows[period as usize];
        (window.used, window.reserved)
    }

    /// Whether the last period in which anything was used or reserved has ended, so that this ledger says no more than a new one.
    pub fn is_over(&self, now: u64) -> bool {
        self.windows.iter().zip(Period::ALL).all(|(window, period)| window.number < period.number(now))
    }

    /// Notes what was used in a period before, as records tell: for a start. If another period has begun since, it says nothing of that.
    pub fn restore(&mut self, now: u64, period: Period, used: Amounts) {
        self.turn(now);
        let window = &mut self.windows[period as usize];
        if window.number == period.number(now) {
            window.used = window.used.plus(used);
        }
    }

    /// Begins new periods. The clock may go backwards by a little; then the later period goes on.
    fn turn(&mut self, now: u64) {
        for (window, period) in self.windows.iter_mut().zip(Period::ALL) {
            let number = period.number(now);
            if number > window.number {
                *window = Window { number, ..Window::default() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: u64 = 1_700_000_000;

    fn tokens(tokens: u64) -> Amounts {
        Amounts { requests: 1, tokens, money: 0 }
    }

    fn limit(period: Period, most: u64) -> Limit {
        Limit { unit: Unit::Tokens, period, most }
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        // 2024-02-29, 2024-03-01, 2023-12-31, 2024-01-01 at midnight.
        let months =
            [1_709_164_800, 1_709_251_200, 1_703_980_800, 1_704_067_200].map(|day| Period::Month.number(day));
        assert_eq!(months, [2024 * 12 + 1, 2024 * 12 + 2, 2023 * 12 + 11, 2024 * 12]);
        assert_eq!(Period::Month.left(1_709_164_800 + 10), 86_400 - 10);
        assert_eq!(Period::Minute.left(61), 59);
    }

    #[test]
    fn what_is_reserved_counts_and_what_was_not_used_comes_back() {
        let (mut ledger, limits) = (Ledger::default(), [limit(Period::Day, 100)]);
        let first = ledger.reserve(NOON, &limits, tokens(60)).unwrap();
        let exceeded = ledger.reserve(NOON, &limits, tokens(60)).unwrap_err();
        assert_eq!((exceeded.taken, exceeded.wanted), (60, 60));
        ledger.settle(first, tokens(10));
        let second = ledger.reserve(NOON, &limits, tokens(90)).unwrap();
        ledger.release(second);
        let third = ledger.reserve(NOON, &limits, tokens(90)).unwrap();
        ledger.keep(third);
        assert!(ledger.reserve(NOON, &limits, tokens(1)).is_err());
        assert!(ledger.reserve(NOON + 86_400, &limits, tokens(100)).is_ok(), "the next day");
    }

    #[test]
    fn an_edit_of_limits_forgets_nothing() {
        let mut ledger = Ledger::default();
        let first = ledger.reserve(NOON, &[limit(Period::Day, 100)], tokens(80)).unwrap();
        ledger.keep(first);
        assert!(ledger.reserve(NOON, &[limit(Period::Month, 90)], tokens(20)).is_err());
        let second = ledger.reserve(NOON, &[limit(Period::Month, 100)], tokens(20)).unwrap();
        ledger.release(second);
    }

    #[test]
    fn what_is_settled_late_counts_where_it_was_reserved() {
        let (mut ledger, limits) = (Ledger::default(), [limit(Period::Minute, 100)]);
        let late = ledger.reserve(59, &limits, tokens(100)).unwrap();
        let next = ledger.reserve(60, &limits, tokens(100)).unwrap();
        ledger.settle(late, tokens(100));
        assert_eq!(
            ledger.taken(60, Period::Minute).1,
            tokens(100),
            "the reservation of the new minute is untouched"
        );
        ledger.keep(next);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Reserve(u64),
        Settle(usize, u64),
        Keep(usize),
        Release(usize),
        Wait(u64),
        Edit(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1_u64..50).prop_map(Step::Reserve),
            2 => (any::<usize>(), 0_u64..50).prop_map(|(which, used)| Step::Settle(which, used)),
            1 => any::<usize>().prop_map(Step::Keep),
            1 => any::<usize>().prop_map(Step::Release),
            1 => (1_u64..40).prop_map(Step::Wait),
            1 => (50_u64..300).prop_map(Step::Edit),
        ]
    }

    proptest! {
        /// A model: all calls of a minute with what they count. No minute takes in more than the largest limit that held in it.
        #[test]
        fn a_limit_is_never_exceeded_if_calls_use_no_more_than_was_reserved(steps in prop::collection::vec(step(), 1..200)) {
            let (mut ledger, mut now, mut most) = (Ledger::default(), NOON, 100);
            let mut open: Vec<(Reservation, u64)> = Vec::new();
            let mut model: std::collections::HashMap<u64, u64> = std::collections::HashMap::new();
            for step in steps {
                let minute = now / 60;
                match step {
                    Step::Reserve(amount) => {
                        let taken = model.get(&minute).copied().unwrap_or(0);
                        match ledger.reserve(now, &[limit(Period::Minute, most)], tokens(amount)) {
                            Ok(reservation) => {
                                prop_assert!(taken + amount <= most);
                                *model.entry(minute).or_default() += amount;
                                open.push((reservation, minute));
                            }
                            Err(exceeded) => {
                                prop_assert!(taken + amount > most);
                                prop_assert_eq!(exceeded.taken, taken);
                            }
                        }
                    }
                    Step::Settle(which, used) if !open.is_empty() => {
                        let (reservation, minute) = open.swap_remove(which % open.len());
                        let reserved = reservation.amounts().tokens;
                        let used = used.min(reserved);
                        *model.entry(minute).or_default() -= reserved - used;
                        ledger.settle(reservation, tokens(used));
                    }
                    Step::Keep(which) if !open.is_empty() => {
                        ledger.keep(open.swap_remove(which % open.len()).0);
                    }
                    Step::Release(which) if !open.is_empty() => {
                        let (reservation, minute) = open.swap_remove(which % open.len());
                        *model.entry(minute).or_default() -= reservation.amounts().tokens;
                        ledger.release(reservation);
                    }
                    Step::Wait(seconds) => now += seconds,
                    Step::Edit(limit) => most = limit,
                    Step::Settle(..) | Step::Keep(_) | Step::Release(_) => {}
                }
                let (used, reserved) = ledger.taken(now, Period::Minute);
                prop_assert_eq!(used.tokens + reserved.tokens, model.get(&(now / 60)).copied().unwrap_or(0));
            }
        }
    }
}
