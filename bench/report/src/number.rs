//! Measurements and their units.

use serde::{Deserialize, Serialize};

/// What a number counts, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Seconds of the clock or of CPU time; fewer are better.
    Seconds,
    /// Bytes; fewer are better.
    Bytes,
    /// Something per second; more is better.
    Rate,
    /// A bare number; less is better.
    Number,
}

impl Unit {
    /// Whether a larger number is the better one.
    pub fn more_is_better(self) -> bool {
        self == Self::Rate
    }

    /// How many times `ours` is better than `theirs`: above 1 is better, whichever way that is.
    pub fn times_better(self, ours: f64, theirs: f64) -> f64 {
        if self.more_is_better() { ours / theirs } else { theirs / ours }
    }

    /// A number with its unit, to three digits.
    pub fn show(self, value: f64) -> String {
        let scaled = |scales: &[(f64, &str)]| {
            let fits = scales.iter().find(|(scale, _)| value >= *scale).or(scales.last());
            fits.map(|(scale, name)| format!("{} {name}", digits(value / scale))).unwrap_or_default()
        };
        match self {
            Self::Seconds => scaled(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]),
            Self::Bytes => scaled(&[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
            Self::Rate => format!("{value:.0}/s"),
            Self::Number => digits(value),
        }
    }
}

/// Three digits of a number, or all before the point if there are more.
pub(crate) fn digits(value: f64) -> String {
    let decimals = if value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.decimals$}")
}

/// Several measurements of one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// One more.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one in the middle: what is judged.
    pub fn median(&self) -> Option<f64> {
        self.at(0.5)
    }

    /// What they come to on average: of a clock that is coarse, all of them together say more than each.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.iter().sum::<f64>() / self.len() as f64)
    }

    /// Half the distance between the quartiles, as a share of the median.
    pub fn spread(&self) -> Option<f64> {
        let (low, median, high) = (self.at(0.25)?, self.median()?, self.at(0.75)?);
        Some(if median == 0.0 { 0.0 } else { (high - low) / 2.0 / median })
    }

    fn at(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get((sorted.len().saturating_sub(1) as f64 * share).round() as usize).copied()
    }

    /// The median with its unit, and the spread if there is one.
    pub(crate) fn show(&self, unit: Unit) -> String {
        let Some(median) = self.median() else { return String::new() };
        match self.spread() {
            Some(spread) if self.len() > 1 => format!("{} ±{:.0} %", unit.show(median), spread * 100.0),
            _ => unit.show(median),
        }
    }
}

impl From<f64> for Samples {
    fn from(value: f64) -> Self {
        Self(vec![value])
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_unit_that_fits() {
        let shown =
            [0.000_000_042_1, 0.0000421, 0.0421, 4.21, 421.0].map(|seconds| Unit::Seconds.show(seconds));
        assert_eq!(shown, ["42.1 ns", "42.1 us", "42.1 ms", "4.21 s", "421 s"]);
        assert_eq!(Unit::Bytes.show(25e6), "25.0 MB");
        assert_eq!(Unit::Bytes.show(612.0), "612 B");
        assert_eq!(Unit::Rate.show(123_456.7), "123457/s");
    }

    #[test]
    fn better_is_more_of_a_rate_and_less_of_everything_else() {
        assert!((Unit::Rate.times_better(30.0, 10.0) - 3.0).abs() < 1e-9);
        assert!((Unit::Seconds.times_better(10.0, 30.0) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_is_shown_with_half_the_distance_of_the_quartiles() {
        let samples: Samples = [5.0, 1.0, 2.0, 4.0, 3.0].into_iter().collect();
        assert_eq!(samples.show(Unit::Seconds), "3.00 s ±33 %");
        assert_eq!(Samples::from(3.0).show(Unit::Seconds), "3.00 s");
        assert_eq!(Samples::default().show(Unit::Seconds), "");
    }
}
