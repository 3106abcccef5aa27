//! A program in another language that judges a server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::server::{Error, Server};

/// What a program said, and how many of its tests passed and failed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that were left out, because the server does not have what they need.
    pub skipped: usize,
    /// All that it printed.
    pub output: String,
    /// Whether it ended well.
    pub is_success: bool,
}

/// What programs are told that a server has, if it has it.
const FEATURES: [&str; 2] = ["controllers", "authorization"];

impl Verdict {
    /// Runs a program against a server and counts the lines by which it says how each test went. The program finds the
    /// server in `KUBECONFIG`, and in `WATCHKEEPER_CONFORMANCE_HAS` what the server has.
    pub fn of(
        program: &mut Command,
        server: &Server,
        how: fn(&str) -> Option<TestOutcome>,
    ) -> Result<Self, Error> {
        let name = PathBuf::from(program.get_program());
        let features = FEATURES.into_iter().filter(|feature| Server::has(feature)).collect::<Vec<_>>();
        let output = program
            .env("KUBECONFIG", server.kubeconfig())
            .env("WATCHKEEPER_CONFORMANCE_HAS", features.join(","))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| broken(&name, &error.to_string()))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        let mut verdict = Self { is_success: output.status.success(), ..Self::default() };
        for outcome in text.lines().filter_map(how) {
            match outcome {
                TestOutcome::Passed => verdict.passed += 1,
                TestOutcome::Failed => verdict.failed += 1,
                TestOutcome::Skipped => verdict.skipped += 1,
            }
        }
        verdict.output = text;
        Ok(verdict)
    }
}

/// How a test went, as a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was left out.
    Skipped,
}

/// A tool in `$PATH`, or nothing, said loudly: the programs that need it are not run then.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        let line = "!".repeat(100);
        announce(&format!(
            "{line}\n!! {name} is not installed: THE PROGRAMS THAT NEED IT WERE NOT RUN\n{line}"
        ));
    }
    found
}

/// Says something past the test runner, which keeps what a passing test prints to itself.
fn announce(text: &str) {
    use std::io::Write;
    // There is nobody to tell if stderr is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn broken(program: &Path, reason: &str) -> Error {
    Error::Program { program: program.display().to_string(), reason: reason.to_owned() }
}
