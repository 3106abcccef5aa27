//! One comparison: ours, a peer's, what was aimed at.

use serde::{Deserialize, Serialize};

use crate::number::digits;
use crate::table::markdown;
use crate::{Samples, Unit};

/// What was aimed at, in section 6 of the design or in the issue that asked for the row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// Ours alone, in the unit of the row: at the most, or of what more is better, at the least.
    Value(f64),
    /// Ours is so many times better than the peer's, at the least.
    TimesBetter(f64),
}

/// One thing that was measured.
///
/// Built by [`Row::new`] or [`Row::failed`] and the methods that add to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The group that it can be run with, alone: `informers`, `queue`.
    pub group: String,
    /// What was measured, with the numbers that matter: `first sync of 10000 custom resources of 1 kB, CPU per object`.
    pub what: String,
    /// What its numbers count.
    pub unit: Unit,
    /// Ours, a measurement for each round.
    pub ours: Samples,
    /// Who the peer is, or nothing if there is none that does this.
    pub peer_name: Option<String>,
    /// The peer's, a measurement for each round.
    pub peer: Samples,
    /// What was aimed at.
    pub target: Option<Target>,
    /// Why it could not be measured.
    pub failure: Option<String>,
}

impl Row {
    /// A row without a peer and without a target.
    pub fn new(group: &str, what: impl Into<String>, unit: Unit, ours: Samples) -> Self {
        Self {
            group: group.into(),
            what: what.into(),
            unit,
            ours,
            peer_name: None,
            peer: Samples::default(),
            target: None,
            failure: None,
        }
    }

    /// A row that could not be measured, or not as a whole: the table says why, and fails.
    pub fn failed(group: &str, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { failure: Some(why.into()), ..Self::new(group, what, Unit::Number, Samples::default()) }
    }

    /// Says why it could not be measured as a whole, if it could not.
    pub fn lacks(mut self, why: Option<String>) -> Self {
        self.failure = why;
        self
    }

    /// Puts a peer beside it.
    pub fn beside(mut self, name: &str, peer: Samples) -> Self {
        self.peer_name = Some(name.into());
        self.peer = peer;
        self
    }

    /// Says what was aimed at.
    pub fn aims(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// By how much the median of ours is better than the peer's.
    pub fn times_better(&self) -> Option<f64> {
        Some(self.unit.times_better(self.ours.median()?, self.peer.median()?))
    }

    /// Whether the row was measured and its target, if it has one, is met by the median. What was aimed at and not measured is
    /// not met.
    pub fn met(&self) -> bool {
        self.failure.is_none()
            && self.target.is_none_or(|target| {
                let met = match target {
                    // Not by a quotient: nothing at all may be what is wanted.
                    Target::Value(value) if self.unit.more_is_better() => {
                        self.ours.median().map(|ours| ours >= value)
                    }
                    Target::Value(value) => self.ours.median().map(|ours| ours <= value),
                    Target::TimesBetter(times) => self.times_better().map(|better| better >= times),
                };
                met.unwrap_or(false)
            })
    }

    fn cells(&self) -> [String; 6] {
        let target = self.target.map(|target| {
            let wanted = match target {
                Target::Value(value) => {
                    format!(
                        "{} {}",
                        if self.unit.more_is_better() { ">=" } else { "<=" },
                        self.unit.show(value)
                    )
                }
                Target::TimesBetter(times) => format!(">= {}x", (times * 100.0).round() / 100.0),
            };
            format!("{wanted} {}", if self.met() { "met" } else { "NOT MET" })
        });
        let peer = match &self.peer_name {
            Some(name) => format!("{} ({name})", self.peer.show(self.unit)),
            None => String::new(),
        };
        let ours = match &self.failure {
            Some(why) => format!("{} NOT MEASURED: {why}", self.ours.show(self.unit)).trim_start().into(),
            None => self.ours.show(self.unit),
        };
        [
            self.group.clone(),
            self.what.clone(),
            ours,
            peer,
            self.times_better().map(|times| format!("{}x", digits(times))).unwrap_or_default(),
            target.unwrap_or_default(),
        ]
    }
}

/// The table of all rows.
pub(crate) fn render(rows: &[Row]) -> String {
    let header = ["group", "what", "ours", "peer", "times better", "target"].map(String::from);
    markdown(std::iter::once(header).chain(rows.iter().map(Row::cells)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: Unit, ours: f64, peer: f64) -> Row {
        Row::new("group", "it", unit, ours.into()).beside("them", peer.into())
    }

    #[test]
    fn a_value_is_met_up_to_itself_and_by_a_rate_from_itself_on() {
        assert!(row(Unit::Seconds, 0.05, 1.0).aims(Target::Value(0.05)).met());
        assert!(!row(Unit::Seconds, 0.051, 1.0).aims(Target::Value(0.05)).met());
        assert!(row(Unit::Rate, 100.0, 1.0).aims(Target::Value(100.0)).met());
        assert!(!row(Unit::Rate, 99.0, 1.0).aims(Target::Value(100.0)).met());
        assert!(row(Unit::Number, 0.0, 0.0).aims(Target::Value(0.0)).met());
        assert!(!row(Unit::Number, 1.0, 0.0).aims(Target::Value(0.0)).met());
    }

    #[test]
    fn times_better_compares_with_the_peer() {
        assert!(row(Unit::Bytes, 10.0, 60.0).aims(Target::TimesBetter(6.0)).met());
        assert!(!row(Unit::Bytes, 10.0, 59.0).aims(Target::TimesBetter(6.0)).met());
        assert!(row(Unit::Rate, 60.0, 10.0).aims(Target::TimesBetter(6.0)).met());
    }

    #[test]
    fn what_was_not_measured_is_not_met_and_says_why() {
        let row = Row::failed("group", "it", "there is no Go");
        assert!(!row.met());
        assert!(render(&[row]).contains("NOT MEASURED: there is no Go"));
        let alone = Row::new("group", "it", Unit::Rate, 1.0.into()).aims(Target::TimesBetter(2.0));
        assert!(!alone.met(), "there is no peer to be better than");
    }

    #[test]
    fn a_row_tells_both_sides_and_what_was_aimed_at() {
        let cells = row(Unit::Seconds, 0.01, 0.03).aims(Target::TimesBetter(5.0)).cells();
        assert_eq!(cells.join(" | "), "group | it | 10.0 ms | 30.0 ms (them) | 3.00x | >= 5x NOT MET");
    }
}
