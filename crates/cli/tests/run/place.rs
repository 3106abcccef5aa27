//! A directory with a reactor and its files, and the reactor running.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::server::{signal, watchkeeper};

/// How long anything may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A directory with everything that a reactor needs.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// A reactor on the documents of the kind Route in `routes/`.
    pub(crate) fn new(reactions: &str) -> Self {
        let place = Self::empty();
        place.reactions(reactions);
        place
    }

    pub(crate) fn empty() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(place.path("routes")).unwrap();
        place
    }

    pub(crate) fn reactions(&self, reactions: &str) {
        self.write(
            "reactor.yaml",
            &format!(
                "apiVersion: run.watchkeeper.dev/v1alpha1\nkind: Reactor\nmetadata: {{name: test}}\nspec:\n  sources:\n  - name: routes\n    \
                 url: file:./routes/\n    settings: {{apiVersion: example.com/v1, kind: Route}}\n  reactions:\n{reactions}"
            ),
        );
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        // As editors do it: nobody sees half of it.
        let new = self.path(".new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    /// A route with a number in it.
    pub(crate) fn route(&self, name: &str, size: u64) {
        self.write(
            &format!("routes/{name}.yaml"),
            &format!("apiVersion: example.com/v1\nkind: Route\nmetadata: {{name: {name}}}\nspec: {{size: {size}}}\n"),
        );
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(&format!("routes/{name}.yaml"))).unwrap();
    }

    /// The lines of a file, none if there is no file.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until a file has these lines, in any order.
    pub(crate) fn has(&self, name: &str, lines: &[&str]) {
        let mut expected: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        expected.sort();
        let mut last = Vec::new();
        let begun = Instant::now();
        while last != expected {
            assert!(begun.elapsed() < TIMEOUT, "{name} has {last:#?}, not {expected:#?}");
            thread::sleep(Duration::from_millis(5));
            last = self.lines(name);
            last.sort();
        }
    }

    /// `watchkeeper run -f reactor.yaml`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = watchkeeper();
        command.arg("run").arg("-f").arg(self.path("reactor.yaml")).args(arguments);
        command.env("TMPDIR", self.directory.path());
        command
    }

    /// The same, running.
    pub(crate) fn run(&self, arguments: &[&str]) -> Runner {
        Runner::start(self.command(arguments))
    }
}

/// What a command that ends by itself said: code, stdout and stderr.
pub(crate) fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A reactor that runs. Killed if the test does not end it.
pub(crate) struct Runner {
    child: Child,
    lines: Receiver<String>,
    all: Arc<Mutex<Vec<String>>>,
}

impl Runner {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (tell, lines) = channel();
        let all = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&all);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                keep.lock().unwrap().push(line.clone());
                let _ = tell.send(line);
            }
        });
        Self { child, lines, all }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that has this in it.
    pub(crate) fn says(&self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(_) => panic!("{part:?} was not said, but {:#?}", self.said()),
            }
        }
    }

    /// Everything that was said.
    pub(crate) fn said(&self) -> Vec<String> {
        self.all.lock().unwrap().clone()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for its end: the code, and everything it said.
    pub(crate) fn end(&mut self) -> (Option<i32>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        // The lines end with the process.
        while self.lines.recv_timeout(Duration::from_secs(5)).is_ok() {}
        (code, self.said())
    }

    /// Kills it without a warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether there is a process, zombies not counted.
pub(crate) fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
