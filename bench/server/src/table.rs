//! One row for each thing measured: what was found, what is required, how the peer did.

use std::fmt::Write;

/// What a number counts, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// Seconds; fewer are better.
    Seconds,
    /// Bytes; fewer are better.
    Bytes,
    /// Something per second; more is better.
    Rate,
    /// A bare number; less is better.
    Number,
}

impl Unit {
    fn more_is_better(self) -> bool {
        self == Self::Rate
    }

    /// A number with its unit, to three digits.
    fn show(self, value: f64) -> String {
        let scaled = |scales: &[(f64, &str)]| {
            let fits = scales.iter().find(|(scale, _)| value >= *scale).or(scales.last());
            fits.map(|(scale, name)| format!("{} {name}", digits(value / scale))).unwrap_or_default()
        };
        match self {
            Self::Seconds => scaled(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")]),
            Self::Bytes => scaled(&[(1e6, "MB"), (1e3, "kB"), (1.0, "B")]),
            Self::Rate => format!("{value:.0}/s"),
            Self::Number => digits(value),
        }
    }
}

fn digits(value: f64) -> String {
    let decimals = if value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.decimals$}")
}

/// Several measurements of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The best, the median and the worst of them.
    fn spread(&self, unit: Unit) -> Option<[f64; 3]> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        if unit.more_is_better() {
            sorted.reverse();
        }
        Some([*sorted.first()?, sorted[sorted.len() / 2], *sorted.last()?])
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// One thing that was measured.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    /// The most it may be, or of what more is better, the least.
    pub(crate) required: Option<f64>,
    pub(crate) ours: Samples,
    /// Empty if there is no peer, or if it was not asked.
    pub(crate) peer: Samples,
}

impl Row {
    /// How much of what is allowed was used; 1 is the most.
    fn used(&self) -> Option<f64> {
        let ([best, ..], required) = (self.ours.spread(self.unit)?, self.required?);
        Some(if self.unit.more_is_better() { required / best } else { best / required })
    }

    /// Whether the requirement is met, by the best of the rounds: what is slow once is the machine, what is slow always is us.
    pub(crate) fn holds(&self) -> bool {
        match self.required {
            None => true,
            // Without measurements nothing is met.
            Some(_) => self.used().is_some_and(|used| used <= 1.0),
        }
    }

    fn times_better(&self) -> Option<f64> {
        let ([ours, ..], [peer, ..]) = (self.ours.spread(self.unit)?, self.peer.spread(self.unit)?);
        Some(if self.unit.more_is_better() { ours / peer } else { peer / ours })
    }

    fn cells(&self) -> [String; 8] {
        let show = |value: f64| self.unit.show(value);
        let [best, median, worst] = self.ours.spread(self.unit).map(|all| all.map(show)).unwrap_or_default();
        let required = self.required.map(|required| {
            let sign = if self.unit.more_is_better() { ">=" } else { "<=" };
            format!("{sign} {}{}", show(required), if self.holds() { "" } else { " MISSED" })
        });
        let peer = self.peer.spread(self.unit).map(|[best, ..]| show(best));
        [
            self.what.clone(),
            best,
            median,
            worst,
            required.unwrap_or_default(),
            self.used().map(|used| format!("{used:.2}")).unwrap_or_default(),
            peer.unwrap_or_default(),
            self.times_better().map(|times| format!("{}x", digits(times))).unwrap_or_default(),
        ]
    }
}

/// The rows as a Markdown table that also reads well in a terminal. The columns of the peer are there if it was measured.
pub(crate) fn render(rows: &[Row]) -> String {
    let header = [
        "what",
        "best",
        "median",
        "worst",
        "required",
        "best / required",
        "peer, best",
        "better than the peer",
    ];
    let columns = if rows.iter().any(|row| row.times_better().is_some()) { 8 } else { 6 };
    let cells: Vec<[String; 8]> =
        std::iter::once(header.map(String::from)).chain(rows.iter().map(Row::cells)).collect();
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (at, row) in cells.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
        if at == 0 {
            for width in &widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: Unit, required: f64, ours: &[f64], peer: &[f64]) -> Row {
        let samples = |values: &[f64]| values.iter().copied().collect();
        Row { what: "it".into(), unit, required: Some(required), ours: samples(ours), peer: samples(peer) }
    }

    #[test]
    fn numbers_are_shown_in_the_unit_that_fits() {
        let shown = [0.0000421, 0.0421, 4.21, 421.0].map(|seconds| Unit::Seconds.show(seconds));
        assert_eq!(shown, ["42.1 us", "42.1 ms", "4.21 s", "421 s"]);
        assert_eq!(Unit::Bytes.show(25e6), "25.0 MB");
        assert_eq!(Unit::Bytes.show(612.0), "612 B");
        assert_eq!(Unit::Rate.show(123_456.7), "123457/s");
    }

    #[test]
    fn of_seconds_the_smallest_is_judged_and_may_be_as_large_as_required() {
        assert!(row(Unit::Seconds, 0.05, &[0.9, 0.05], &[]).holds());
        assert!(!row(Unit::Seconds, 0.05, &[0.9, 0.051], &[]).holds());
    }

    #[test]
    fn of_rates_the_largest_is_judged_and_may_be_as_small_as_required() {
        assert!(row(Unit::Rate, 100.0, &[3.0, 100.0], &[]).holds());
        assert!(!row(Unit::Rate, 100.0, &[3.0, 99.0], &[]).holds());
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        assert!(!row(Unit::Rate, 100.0, &[], &[]).holds());
    }

    #[test]
    fn a_row_tells_the_spread_and_how_much_better_we_are_than_the_peer() {
        let [what, best, median, worst, required, used, peer, better] =
            row(Unit::Seconds, 0.05, &[0.03, 0.02, 0.01], &[4.0, 3.0]).cells();
        assert_eq!([what, best, median, worst].join(" "), "it 10.0 ms 20.0 ms 30.0 ms");
        assert_eq!([required, used, peer, better].join(", "), "<= 50.0 ms, 0.20, 3.00 s, 300x");
        let [_, best, _, worst, required, .., better] =
            row(Unit::Rate, 100.0, &[50.0, 80.0], &[40.0]).cells();
        assert_eq!([best, worst, required, better].join(", "), "80/s, 50/s, >= 100/s MISSED, 2.00x");
    }

    #[test]
    fn without_a_peer_there_are_no_columns_for_it() {
        let alone = row(Unit::Number, 1.0, &[1.0], &[]);
        assert!(!render(&[alone]).contains("peer"));
    }
}
