use std::env;
use std::io::{self, IsTerminal, Write};

use crate::terminal::one_line;

/// How wide the words at the left are.
const WIDTH: usize = 12;

/// What a person sees while things start. On a terminal, what is being waited for is shown and replaced by what came of it;
/// elsewhere there are plain lines of what came of it.
pub(crate) struct Screen {
    is_terminal: bool,
    has_colours: bool,
    is_waiting: bool,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let has_colours = is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { is_terminal, has_colours, is_waiting: false }
    }

    /// What is being waited for.
    pub(crate) fn waiting(&mut self, what: &str, text: &str) {
        if self.is_terminal {
            self.clear();
            let (faint, plain) = if self.has_colours { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
            say(&format!("  {faint}{what:WIDTH$} {} ...{plain}", one_line(text)));
            self.is_waiting = true;
        }
    }

    /// A line that stays: what it is about, and what there is to say.
    pub(crate) fn line(&mut self, what: &str, text: &str) {
        self.clear();
        let (bold, plain) = if self.has_colours { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        say(&format!("  {bold}{what:WIDTH$}{plain} {}\n", one_line(text)));
    }

    /// One more line about the same.
    pub(crate) fn more(&mut self, text: &str) {
        self.clear();
        say(&format!("  {:WIDTH$} {}\n", "", one_line(text)));
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            say("\r\x1b[2K");
        }
    }
}

/// Whoever closed our stdout does not want to know.
fn say(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}
