//! `kubectl` sees what the scripts in `kubectl/` say. Each script is a test.
//!
//! `WATCHKEEPER_CONFORMANCE_ACCEPT=1` writes what came into the scripts, to be read before it is believed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use regex::Regex;
use watchkeeper_conformance::{Kubectl, Outcome, Script, Server, Session, choice, files};

/// How many scripts run at a time: each of their commands is a process.
const MOST_THREADS: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments
        .test_threads
        .get_or_insert_with(|| std::thread::available_parallelism().map_or(2, usize::from).min(MOST_THREADS));
    let run = Arc::new(Run::new());
    let trials = files("kubectl", "test").into_iter().map(|(name, path)| run.trial(name, path)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    run.report();
    conclusion.exit_code()
}

/// What the tests share: a server, which starts with the first of them, and how much they did.
struct Run {
    kubectl: Result<Kubectl, String>,
    server: OnceLock<Result<Server, String>>,
    commands: AtomicUsize,
    failed: AtomicUsize,
}

impl Run {
    fn new() -> Self {
        let installed = scratch().join("../../conformance/bin");
        Self {
            kubectl: Kubectl::find(&installed).map_err(|error| error.to_string()),
            server: OnceLock::new(),
            commands: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
        }
    }

    fn trial(self: &Arc<Self>, name: String, path: PathBuf) -> Trial {
        let text = fs::read_to_string(&path).unwrap();
        let script = Script::parse(&text);
        let lacking = self.lacking(&script);
        let run = Arc::clone(self);
        let trial = Trial::test(name.clone(), move || {
            let outcomes = run.run(&name, &script)?;
            if choice("ACCEPT").is_some() {
                fs::write(&path, accepted(&text, &script, &outcomes))?;
            }
            run.judge(&script, &outcomes)
        });
        match lacking {
            Some(need) => trial.with_kind(format!("needs {need}")).with_ignored_flag(true),
            None => trial,
        }
    }

    /// What a script needs and the server or kubectl does not have.
    fn lacking(&self, script: &Script) -> Option<String> {
        let is_for_any_kubectl = script.needs.iter().any(|need| need == "any-kubectl");
        let is_old = self.kubectl.as_ref().is_ok_and(|kubectl| kubectl.minor < Kubectl::OLDEST);
        if is_old && !is_for_any_kubectl {
            return Some(format!("kubectl 1.{}", Kubectl::OLDEST));
        }
        script.needs.iter().find(|need| *need != "any-kubectl" && !Server::has(need)).cloned()
    }

    fn run(&self, name: &str, script: &Script) -> Result<Vec<Outcome>, Failed> {
        let kubectl = self.kubectl.as_ref()?;
        let server = self.server.get_or_init(|| {
            let _ = fs::remove_dir_all(scratch());
            Server::start(&scratch()).map_err(|error| error.to_string())
        });
        Ok(Session::start(name, server.as_ref()?, kubectl, &scratch())?.run(script)?)
    }

    fn judge(&self, script: &Script, outcomes: &[Outcome]) -> Result<(), Failed> {
        let commands = script.steps.iter().filter(|step| step.command.contains("kubectl ")).count();
        let failed: Vec<&str> = outcomes
            .iter()
            .filter(|outcome| !outcome.passed)
            .map(|outcome| outcome.report.as_str())
            .collect();
        self.commands.fetch_add(commands, Ordering::Relaxed);
        self.failed.fetch_add(failed.len(), Ordering::Relaxed);
        assert!(commands > 0, "there are no commands in the script");
        if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
    }

    fn report(&self) {
        let (commands, failed) = (self.commands.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        if let (Ok(kubectl), 1..) = (&self.kubectl, commands) {
            println!("kubectl 1.{}: {commands} commands, {failed} failed", kubectl.minor);
        }
    }
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubectl")
}

/// The text of a script with the outcomes in place of the expectations.
fn accepted(text: &str, script: &Script, outcomes: &[Outcome]) -> String {
    let words = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
        (r"(\s)\d+[smh](?:\d+[sm])?(\s|$)", "$1<age>$2"),
        (r#"(resourceVersion"?: ?)"\d+""#, r#"$1"<rv>""#),
        (r"(Resource Version:\s+)\d+", "$1<rv>"),
        // Newer ones say from which namespace.
        (r#"" deleted(?: from \S+ namespace)?"#, "\" deleted<any>"),
    ];
    let words = words.map(|(pattern, word)| (Regex::new(pattern).unwrap(), word));
    let old: Vec<&str> = text.lines().collect();
    let mut new = Vec::new();
    let mut from = 0;
    for (step, outcome) in script.steps.iter().zip(outcomes) {
        new.extend(old[from..step.expected_from].iter().map(|line| (*line).to_owned()));
        from = step.expected_to;
        if outcome.passed {
            new.extend(old[step.expected_from..from].iter().map(|line| (*line).to_owned()));
        } else {
            new.extend(outcome.accepted.iter().map(|line| {
                words.iter().fold(line.clone(), |line, (pattern, word)| {
                    pattern.replace_all(&line, *word).into_owned()
                })
            }));
        }
    }
    new.extend(old[from..].iter().map(|line| (*line).to_owned()));
    new.join("\n") + "\n"
}
