//! `watchkeeper watch`, running.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::server::signal;

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A watch that runs, and what it says. Killed if the test does not end it.
pub(crate) struct Watcher {
    child: Child,
    out: Receiver<String>,
    notes: Receiver<String>,
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel();
    thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    told
}

impl Watcher {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (out, notes) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, out, notes }
    }

    /// Starts it and waits until it has seen what is there.
    pub(crate) fn ready(command: Command) -> Self {
        let watcher = Self::start(command);
        watcher.note("-- watching ");
        watcher
    }

    /// The next line of stdout.
    pub(crate) fn line(&self) -> String {
        self.out.recv_timeout(TIMEOUT).expect("a line")
    }

    /// The next line of stdout without its time.
    pub(crate) fn told(&self) -> String {
        without_time(&self.line())
    }

    /// Waits for a note that begins so, and returns it.
    pub(crate) fn note(&self, beginning: &str) -> String {
        loop {
            let note =
                self.notes.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no note {beginning:?} came"));
            if note.starts_with(beginning) {
                return note;
            }
        }
    }

    /// All notes that have come.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.try_iter().collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for its end: the code, and what was still said on stdout and stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        (code, self.out.iter().collect(), self.notes.iter().collect())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `13:02:11  ADDED` is `ADDED`; the time has to look like one.
pub(crate) fn without_time(line: &str) -> String {
    match line.split_once("  ") {
        Some((time, rest)) if time.len() == 8 && time.split(':').all(|part| part.parse::<u8>().is_ok()) => {
            rest.trim_end().to_owned()
        }
        _ => line.trim().to_owned(),
    }
}
