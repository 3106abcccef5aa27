//! Tables that are Markdown and read well in a terminal too.

use std::fmt::Write;

/// Rows of cells as a table; the first row is its header.
pub fn markdown<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    // What a cell says may hold what separates cells.
    let rows: Vec<_> =
        rows.into_iter().map(|row| row.map(|cell| cell.replace('|', "\\|").replace('\n', " "))).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_bars_are_escaped() {
        let table = markdown([["a", "b"], ["long", "x|y"]].map(|row| row.map(String::from)));
        assert_eq!(table, "| a    | b    |\n|------|------|\n| long | x\\|y |\n");
    }
}
