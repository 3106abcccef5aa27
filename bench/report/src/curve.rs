//! How a cost grows with the number of things.

use serde::{Deserialize, Serialize};

use crate::table::markdown;
use crate::{Samples, Unit};

/// What may be above 1 before growth counts as worse than linear: measurements of a factor 16 that are 15 % apart move the
/// exponent by 0.05, and work that does not fit into a cache of the processor any more costs as much again.
const TOLERANCE: f64 = 0.1;

/// One number of things and what it cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// How many things there were.
    pub count: f64,
    /// What ours cost in total.
    pub ours: Samples,
    /// What the peer's cost in total; empty if it was not measured.
    pub peer: Samples,
}

/// One cost at several numbers of things, say N, 4N and 16N.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The group that it can be run with, alone.
    pub group: String,
    /// What was measured.
    pub what: String,
    /// What the numbers count. A cost: not a rate.
    pub unit: Unit,
    /// Who the peer is, or nothing if there is none.
    pub peer_name: Option<String>,
    /// By rising count.
    pub points: Vec<Point>,
}

impl Curve {
    /// The exponent `k` of the `count^k` that fits ours best: 0 is a constant cost, 1 is linear.
    pub fn exponent(&self) -> Option<f64> {
        exponent(self.points.iter().map(|point| (point.count, point.ours.median())))
    }

    /// The same of the peer.
    pub fn peer_exponent(&self) -> Option<f64> {
        exponent(self.points.iter().map(|point| (point.count, point.peer.median())))
    }

    /// Whether ours grows at the most in proportion to the count.
    pub fn is_linear(&self) -> bool {
        self.exponent().is_some_and(|exponent| exponent <= 1.0 + TOLERANCE)
    }

    fn cells(&self) -> [String; 6] {
        let side = |of: fn(&Point) -> &Samples| {
            let shown =
                self.points.iter().filter_map(|point| of(point).median()).map(|cost| self.unit.show(cost));
            shown.collect::<Vec<_>>().join(", ")
        };
        let shown =
            |exponent: Option<f64>| exponent.map(|exponent| format!("{exponent:.2}")).unwrap_or_default();
        let counts =
            self.points.iter().map(|point| format!("{}", point.count)).collect::<Vec<_>>().join(", ");
        let verdict = match self.exponent() {
            None => " NOT MEASURED",
            Some(_) if self.is_linear() => "",
            Some(_) => " WORSE THAN LINEAR",
        };
        [
            format!("{}: {}", self.group, self.what),
            counts,
            side(|point| &point.ours),
            shown(self.exponent()) + verdict,
            side(|point| &point.peer),
            match &self.peer_name {
                Some(name) => format!("{} ({name})", shown(self.peer_exponent())),
                None => String::new(),
            },
        ]
    }
}

/// The slope of the line through the logarithms, by least squares.
fn exponent(points: impl Iterator<Item = (f64, Option<f64>)>) -> Option<f64> {
    let points: Vec<_> = points
        .filter_map(|(count, cost)| Some((count, cost?)))
        .filter(|(count, cost)| *count > 0.0 && *cost > 0.0)
        .map(|(count, cost)| (count.ln(), cost.ln()))
        .collect();
    let number = points.len() as f64;
    let middle = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / number;
    let (x, y) = (middle(|point| point.0), middle(|point| point.1));
    let across: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (points.len() > 1 && along > 0.0).then(|| across / along)
}

/// The table of all curves.
pub(crate) fn render(curves: &[Curve]) -> String {
    let header = ["growth", "counts", "ours", "exponent", "peer", "its exponent"].map(String::from);
    markdown(std::iter::once(header).chain(curves.iter().map(Curve::cells)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(cost: fn(f64) -> f64) -> Curve {
        let point = |count| Point { count, ours: cost(count).into(), peer: Samples::default() };
        let points = [100.0, 400.0, 1600.0].map(point).to_vec();
        Curve { group: "group".into(), what: "it".into(), unit: Unit::Seconds, peer_name: None, points }
    }

    #[test]
    fn the_exponent_is_that_of_the_power() {
        for (cost, exponent) in [
            ((|_| 7.0) as fn(f64) -> f64, 0.0),
            (|n| 3.0 * n, 1.0),
            (|n| n * n, 2.0),
            (|n: f64| n.sqrt(), 0.5),
        ] {
            assert!((curve(cost).exponent().unwrap_or(f64::NAN) - exponent).abs() < 1e-9);
        }
    }

    #[test]
    fn worse_than_linear_is_said_and_n_log_n_of_small_numbers_is_not_hidden() {
        assert!(curve(|n| n).is_linear());
        assert!(!curve(|n| n * n).is_linear());
        assert!(!curve(|n| n * n.ln()).is_linear());
        assert!(render(&[curve(|n| n * n)]).contains("2.00 WORSE THAN LINEAR"));
    }

    #[test]
    fn without_two_points_nothing_is_known() {
        let mut curve = curve(|n| n);
        curve.points.truncate(1);
        assert!(!curve.is_linear());
        assert!(render(&[curve]).contains("NOT MEASURED"));
    }
}
