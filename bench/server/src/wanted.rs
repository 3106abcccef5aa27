//! What a row will show, before it is measured.

use watchkeeper_bench_report::{Row, Samples, Target as Aim, Unit};
use watchkeeper_bench_target::Peer;

/// A row without its numbers.
pub(crate) struct Wanted {
    what: String,
    unit: Unit,
    aim: Option<Aim>,
}

impl Wanted {
    pub(crate) fn new(unit: Unit, what: impl Into<String>) -> Self {
        Self { what: what.into(), unit, aim: None }
    }

    /// It should be better than the peer's by so many times.
    pub(crate) fn better(self, times: f64) -> Self {
        Self { aim: Some(Aim::TimesBetter(times)), ..self }
    }

    /// Ours should be this at the most.
    pub(crate) fn at_most(self, value: f64) -> Self {
        Self { aim: Some(Aim::Value(value)), ..self }
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// The row. If there is no peer to compare with, a row that should be better than it says why.
    pub(crate) fn found(
        self,
        group: &str,
        ours: Samples,
        peer: Result<Samples, &str>,
        failure: Option<String>,
    ) -> Row {
        let compares = matches!(self.aim, Some(Aim::TimesBetter(_)));
        let missing = peer.as_ref().err().filter(|_| compares).map(|why| (*why).to_owned());
        let row = Row::new(group, self.what, self.unit, ours).lacks(failure.or(missing));
        let row = match peer {
            Ok(peer) if !peer.is_empty() => row.beside(Peer::NAME, peer),
            _ => row,
        };
        Row { target: self.aim, ..row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted::new(Unit::Seconds, "it")
    }

    #[test]
    fn a_row_that_compares_fails_without_a_peer_and_says_why() {
        let row = wanted().better(5.0).found("group", 1.0.into(), Err("not built"), None);
        assert_eq!(row.failure.as_deref(), Some("not built"));
        assert!(!row.met());
    }

    #[test]
    fn a_row_that_does_not_compare_does_without_a_peer() {
        let row = wanted().at_most(2.0).found("group", 1.0.into(), Err("not built"), None);
        assert_eq!(row.failure, None);
        assert!(row.met());
    }

    #[test]
    fn what_went_wrong_is_said_before_what_is_missing() {
        let row = wanted().better(5.0).found("group", 1.0.into(), Err("not built"), Some("it broke".into()));
        assert_eq!(row.failure.as_deref(), Some("it broke"));
    }
}
