//! What the benchmarks found, in one form: rows, growth, and the one table of it all.
//!
//! Each benchmark program makes a [`Report`] of [`Row`]s, ours beside a peer's, and of [`Curve`]s that tell how a cost grows with
//! the number of things. It can print that, or write it as JSON for the program of this crate, which joins several into
//! `bench/RESULTS.md` and its charts.

mod chart;
mod curve;
mod machine;
mod number;
mod program;
mod row;
mod table;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use chart::{Bars, lines};
pub use curve::{Curve, Point};
pub use machine::Machine;
pub use number::{Samples, Unit};
pub use program::{Asked, run};
pub use row::{Row, Target};
pub use table::markdown;

/// What one run found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// In the order in which they are shown.
    pub rows: Vec<Row>,
    /// How costs grow.
    pub curves: Vec<Curve>,
    /// What has to be known to judge the numbers: who did what with which settings. Markdown, a paragraph each.
    pub notes: Vec<String>,
}

impl From<Vec<Row>> for Report {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }
}

impl Report {
    /// Reads what [`Report::save`] wrote.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a report.
    pub fn load(file: &Path) -> Result<Self, String> {
        let text = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{} is not a report: {error}", file.display()))
    }

    /// Writes it, to be joined with others.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn save(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
    }

    /// Puts another one behind this one.
    pub fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.curves.extend(other.curves);
        self.notes.extend(other.notes);
    }

    /// The tables, for a terminal and for Markdown alike, and the line that sums them up.
    pub fn text(&self) -> String {
        let mut text = row::render(&self.rows);
        if !self.curves.is_empty() {
            text += &format!("\n{}", curve::render(&self.curves));
        }
        text + &format!("\n{}\n", self.summary())
    }

    /// How many rows there are and how many of them fall short.
    pub fn summary(&self) -> String {
        let count = |of: fn(&Row) -> bool| self.rows.iter().filter(|row| of(row)).count();
        let worse = self.curves.iter().filter(|curve| !curve.is_linear()).count();
        format!(
            "{} rows: {} with a target, {} of them not met; {} could not be measured. {} growth rows: {worse} worse than linear.",
            self.rows.len(),
            count(|row| row.target.is_some()),
            count(|row| row.failure.is_none() && !row.met()),
            count(|row| row.failure.is_some()),
            self.curves.len(),
        )
    }

    /// Whether everything was measured, every target is met, and nothing grows worse than linearly.
    pub fn is_good(&self) -> bool {
        self.rows.iter().all(Row::met) && self.curves.iter().all(Curve::is_linear)
    }
}
