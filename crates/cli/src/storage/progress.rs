//! How far a command is, for whoever looks at a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often the line is written at most.
const INTERVAL: Duration = Duration::from_millis(100);

/// One line on stderr that is written again and again; nothing where stderr is no terminal.
pub(super) struct Line {
    what: &'static str,
    total: Option<usize>,
    /// When it was written last.
    written: Mutex<Option<Instant>>,
    is_shown: bool,
}

impl Line {
    pub(super) fn new(what: &'static str, total: Option<usize>) -> Self {
        Self { what, total, written: Mutex::default(), is_shown: io::stderr().is_terminal() }
    }

    /// Says how many are done.
    pub(super) fn show(&self, done: usize) {
        let Ok(mut written) = self.written.lock() else { return };
        if !self.is_shown || written.is_some_and(|written| written.elapsed() < INTERVAL) {
            return;
        }
        *written = Some(Instant::now());
        let _ = write!(io::stderr(), "\r{}\u{1b}[K", text(self.what, done, self.total));
    }
}

/// Leaves an empty line to whoever writes next.
impl Drop for Line {
    fn drop(&mut self) {
        if self.written.lock().is_ok_and(|written| written.is_some()) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

fn text(what: &str, done: usize, total: Option<usize>) -> String {
    match total {
        Some(total) => {
            format!("{what} {done} of {total} keys ({}%)", done.saturating_mul(100) / total.max(1))
        }
        None => format!("{what} {done} keys"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        assert_eq!(text("reading", 7, None), "reading 7 keys");
        assert_eq!(text("writing", 7, Some(10)), "writing 7 of 10 keys (70%)");
        assert_eq!(text("writing", 0, Some(0)), "writing 0 of 0 keys (0%)");
    }
}
