//! What is said beside the changes, on stderr.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Notes for the person who watches. Whoever closed stderr does not want to know.
pub(super) struct Notes {
    quiet: bool,
    terminal: bool,
    colour: bool,
    /// When progress was last shown, if it still stands on the line.
    shown: Option<Instant>,
}

/// Progress is shown this often at the most.
const EVERY: Duration = Duration::from_millis(100);

impl Notes {
    pub(super) fn new(quiet: bool, colour: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { quiet, terminal, colour: colour && terminal, shown: None }
    }

    /// One line, `-- so`.
    pub(super) fn say(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        self.clear();
        let (begin, end) = if self.colour { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(io::stderr(), "{begin}-- {text}{end}");
    }

    /// How many objects have come so far, while the first list comes; only on a terminal.
    pub(super) fn progress(&mut self, count: usize) {
        if self.quiet || !self.terminal || self.shown.is_some_and(|shown| shown.elapsed() < EVERY) {
            return;
        }
        self.shown = Some(Instant::now());
        let _ = write!(io::stderr(), "\r\x1b[K-- {} objects so far", grouped(count));
        let _ = io::stderr().flush();
    }

    /// Takes the progress off the line.
    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
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
    fn numbers_are_written_as_people_read_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2].map(|count| counted(count, "change")), ["0 changes", "1 change", "2 changes"]);
        let times = [250, 1400, 59_700, 65_000].map(|ms| rounded(Duration::from_millis(ms)));
        assert_eq!(times, ["250 ms", "1 s", "60 s", "1 min 5 s"]);
    }
}
