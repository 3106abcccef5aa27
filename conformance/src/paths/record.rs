//! What the real server said to every case, as a file.
//!
//! ```text
//! # for the reader
//! cases 24000 0123456789abcdef
//! 0 403 Forbidden
//! 1 200 PodList x/a x/b
//!
//! 0 0 1 0
//! ```
//!
//! First the number of the cases and their fingerprint, then every outcome that there is with a number of its own, the
//! most frequent first; after an empty line, for each case the number of its outcome.

use std::collections::HashMap;
use std::fmt::Write;

use super::answer::Outcome;
use super::case::Case;

/// How many cases are on a line.
const LINE: usize = 50;

/// The outcomes of all cases, in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// Of which cases they are.
    pub fingerprint: u64,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
}

impl Record {
    /// The outcomes of these cases.
    pub fn new(cases: &[Case], outcomes: Vec<Outcome>) -> Self {
        Self { fingerprint: Case::fingerprint(cases), outcomes }
    }

    /// Reads what [`Record::to_text`] wrote.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let head = lines.next().unwrap_or_default();
        let fingerprint = head.rsplit(' ').next().and_then(|hash| u64::from_str_radix(hash, 16).ok());
        let fingerprint = fingerprint.ok_or_else(|| format!("{head:?} names no fingerprint"))?;
        let mut known = Vec::new();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            let (_, outcome) = line.split_once(' ').ok_or_else(|| format!("{line:?} is no outcome"))?;
            known.push(outcome.parse::<Outcome>().map_err(|error| format!("{line:?}: {error}"))?);
        }
        let numbers = lines.flat_map(|line| line.split(' '));
        let outcome = |number: &str| {
            let found = number.parse::<usize>().ok().and_then(|number| known.get(number));
            found.cloned().ok_or_else(|| format!("there is no outcome {number:?}"))
        };
        Ok(Self { fingerprint, outcomes: numbers.map(outcome).collect::<Result<_, _>>()? })
    }

    /// The record as it is kept in a file.
    pub fn to_text(&self) -> String {
        let mut counts: HashMap<&Outcome, usize> = HashMap::new();
        for outcome in &self.outcomes {
            *counts.entry(outcome).or_default() += 1;
        }
        let mut known: Vec<(&Outcome, usize)> = counts.into_iter().collect();
        known.sort_by_key(|(outcome, count)| (std::cmp::Reverse(*count), outcome.to_string()));
        let mut text = "# The answers of kube-apiserver to the cases of src/paths: made by scripts/conformance --record-paths.\n"
            .to_owned();
        let _ = writeln!(text, "cases {} {:016x}", self.outcomes.len(), self.fingerprint);
        let mut numbers = HashMap::new();
        for (number, (outcome, _)) in known.into_iter().enumerate() {
            let _ = writeln!(text, "{number} {outcome}");
            numbers.insert(outcome, number.to_string());
        }
        for line in self.outcomes.chunks(LINE) {
            let line: Vec<&str> = line.iter().map(|outcome| numbers[outcome].as_str()).collect();
            let _ = write!(text, "\n{}", line.join(" "));
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let outcomes = ["403 Forbidden", "200 PodList x/a y/a", "403 Forbidden", "200 -"];
        let outcomes = outcomes.map(|outcome| outcome.parse().unwrap()).into();
        let record = Record { fingerprint: 7, outcomes };
        assert_eq!(Record::parse(&record.to_text()), Ok(record));
    }
}
