use std::fmt;
use std::str::FromStr;

use crate::Usage;

/// An amount of money, in billionths of a unit of whatever currency prices are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub u64);

const NANOS: u64 = 1_000_000_000;

impl Money {
    /// As a number of units.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
}

impl FromStr for Money {
    type Err = String;

    /// Reads a decimal number such as `2.50`, of at most nine digits after the point.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an amount such as 2.50");
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || rest.len() > 9 || !is_digits(whole) || !is_digits(rest) {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let nanos: u64 = format!("{rest:0<9}").parse().map_err(|_| wrong())?;
        whole.checked_mul(NANOS).and_then(|units| units.checked_add(nanos)).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / NANOS, self.0 % NANOS);
        let text = text.trim_end_matches('0');
        // At least two digits after the point, as prices have.
        let digits = text.len() - text.find('.').unwrap_or(text.len()) - 1;
        write!(f, "{text}{}", "0".repeat(2_usize.saturating_sub(digits)))
    }
}

/// What a model costs, for a million tokens each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Of the prompt.
    pub input: Money,
    /// Of the prompt, from a cache. Default: as of the prompt.
    pub cached: Option<Money>,
    /// Of the prompt, written to a cache. Default: as of the prompt.
    pub cache_written: Option<Money>,
    /// Of what the model writes.
    pub output: Money,
}

impl Prices {
    /// What a call costs, rounded up.
    pub fn cost(&self, usage: &Usage) -> Money {
        let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let sum: u128 = [
            (plain, self.input),
            (usage.cached, self.cached.unwrap_or(self.input)),
            (usage.cache_written, self.cache_written.unwrap_or(self.input)),
            (usage.output, self.output),
        ]
        .iter()
        .map(|(tokens, price)| u128::from(*tokens) * u128::from(price.0))
        .sum();
        Money(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// What a call costs at most, whatever of its prompt comes from a cache or is written to one.
    pub fn most(&self, usage: &Usage) -> Money {
        let others = [self.cached, self.cache_written].into_iter().flatten();
        let input = others.fold(self.input, Money::max);
        Self { input, cached: None, cache_written: None, output: self.output }.cost(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_exactly() {
        for (text, nanos, shown) in [
            ("2.5", 2_500_000_000, "2.50"),
            ("0.000000001", 1, "0.000000001"),
            ("10", 10_000_000_000, "10.00"),
        ] {
            assert_eq!(text.parse(), Ok(Money(nanos)));
            assert_eq!(Money(nanos).to_string(), shown);
        }
        for text in ["", ".5", "-1", "1e3", "1.0000000001", "99999999999999", "1,5"] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_prompt_costs_at_most_the_highest_of_its_prices() {
        let usage = |cached, cache_written| Usage {
            input: 1_000,
            cached,
            cache_written,
            output: 100,
            ..Usage::default()
        };
        for (cached, cache_written) in
            [(None, None), (Some(1), Some(7)), (Some(7), Some(1)), (Some(1), Some(1)), (None, Some(7))]
        {
            let price = |units: u64| Money(units * 1_000_000);
            let [cached, cache_written] = [cached, cache_written].map(|units| units.map(price));
            let prices = Prices { input: price(3), cached, cache_written, output: price(5) };
            let most = prices.most(&usage(0, 0));
            let all = [(0, 0), (1_000, 0), (0, 1_000), (300, 300)];
            let costs = all.map(|(cached, written)| prices.cost(&usage(cached, written)));
            assert_eq!(costs.iter().max(), Some(&most), "{prices:?}");
        }
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let prices = Prices {
            input: Money(3_000_000_000),
            cached: Some(Money(300_000_000)),
            output: Money(15_000_000_000),
            ..Prices::default()
        };
        let usage = Usage { input: 1_000, cached: 400, output: 100, ..Usage::default() };
        assert_eq!(prices.cost(&usage), Money(600 * 3_000 + 400 * 300 + 100 * 15_000));
        assert_eq!(
            prices.cost(&Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() }),
            Money(u64::MAX)
        );
    }
}
