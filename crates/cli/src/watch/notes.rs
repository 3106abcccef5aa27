//! What is said beside the changes, on stderr.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::terminal::one_line;

/// Notes for the person who watches. Whoever closed stderr does not want to know.
pub(super) struct Notes {
    quiet: bool,
    terminal: bool,
    colour: bool,
    /// When progress was last shown, if it still stands on the line.
    shown: Option<Instant>,
    /// How many objects there will be, if that is known.
    total: Option<usize>,
}

/// Progress is shown this often at the most.
const EVERY: Duration = Duration::from_millis(100);
/// How many letters wide the bar is.
const BAR: usize = 30;

impl Notes {
    pub(super) fn new(quiet: bool, colour: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { quiet, terminal, colour: colour && terminal, shown: None, total: None }
    }

    /// One line, `-- so`.
    pub(super) fn say(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        self.clear();
        let (begin, end) = if self.colour { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(io::stderr(), "{begin}-- {}{end}", one_line(text));
    }

    /// Whether anybody sees progress.
    pub(super) fn shows_progress(&self) -> bool {
        !self.quiet && self.terminal
    }

    /// How many objects the first list will have.
    pub(super) fn expect(&mut self, total: Option<usize>) {
        self.total = total;
    }

    /// How many objects have come so far, while the first list comes; only on a terminal.
    pub(super) fn progress(&mut self, count: usize) {
        if !self.shows_progress() || self.shown.is_some_and(|shown| shown.elapsed() < EVERY) {
            return;
        }
        self.shown = Some(Instant::now());
        let _ = write!(io::stderr(), "\r\x1b[K-- {}", bar(count, self.total));
        let _ = io::stderr().flush();
    }

    /// Takes the progress off the line.
    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `[######........................] 2,000 of 10,000 objects`, or where the end is not known, a count.
fn bar(count: usize, total: Option<usize>) -> String {
    match total {
        // More may come while it is counted.
        Some(total) if total >= count && total > 0 => {
            let full = BAR * count / total;
            let (full, rest) = ("#".repeat(full), ".".repeat(BAR - full));
            format!("[{full}{rest}] {} of {} objects", grouped(count), grouped(total))
        }
        _ => format!("{} objects so far", grouped(count)),
    }
}

/// `12,345`.
pub(super) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 change`, `2 changes`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `800 ms`, `2 s`, `1 min 5 s`.
pub(super) fn rounded(time: Duration) -> String {
    match time.as_millis() {
        ..1000 => format!("{} ms", time.as_millis()),
        1000..60_000 => format!("{} s", time.as_secs_f64().round()),
        _ => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_list_and_a_count_where_the_end_is_not_known() {
        assert_eq!(bar(0, Some(10)), format!("[{}] 0 of 10 objects", ".".repeat(30)));
        assert_eq!(
            bar(5_000, Some(10_000)),
            format!("[{}{}] 5,000 of 10,000 objects", "#".repeat(15), ".".repeat(15))
        );
        assert_eq!(bar(10, Some(10)), format!("[{}] 10 of 10 objects", "#".repeat(30)));
        assert_eq!(bar(11, Some(10)), "11 objects so far");
        assert_eq!(bar(7, None), "7 objects so far");
        assert_eq!(bar(0, Some(0)), "0 objects so far");
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2].map(|count| counted(count, "change")), ["0 changes", "1 change", "2 changes"]);
        let times = [250, 1400, 59_700, 65_000].map(|ms| rounded(Duration::from_millis(ms)));
        assert_eq!(times, ["250 ms", "1 s", "60 s", "1 min 5 s"]);
    }
}
