//! One row for each thing measured, the ratio last.

use std::fmt::Write;

/// One comparison.
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Ours, with its unit.
    pub ours: String,
    /// The peer's, with its unit.
    pub peer: String,
    /// Ours divided by the peer's: below 1 is better than the peer.
    pub ratio: f64,
    /// What the ratio has to be at the most, if that was promised.
    pub target: Option<f64>,
}

impl Row {
    /// Whether what was promised holds.
    pub fn holds(&self) -> bool {
        self.target.is_none_or(|target| self.ratio <= target)
    }
}

/// The rows as a Markdown table that also reads well in a terminal.
pub fn render(rows: &[Row]) -> String {
    let header = ["what", "ours", "peer", "promised", "ours / peer"].map(String::from);
    let cells: Vec<[String; 5]> = std::iter::once(header)
        .chain(rows.iter().map(|row| {
            let promised = match row.target {
                None => String::new(),
                Some(target) => {
                    format!("<= {target:.3} {}", if row.holds() { "holds" } else { "DOES NOT HOLD" })
                }
            };
            [row.what.clone(), row.ours.clone(), row.peer.clone(), promised, format!("{:.3}", row.ratio)]
        }))
        .collect();
    let widths: [usize; 5] =
        std::array::from_fn(|at| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for (at, row) in cells.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
        if at == 0 {
            for width in widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}
