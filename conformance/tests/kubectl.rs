//! `kubectl` sees what the scripts in `kubectl/` say.
//!
//! `WATCHKEEPER_CONFORMANCE_ONLY=name` runs one script; `WATCHKEEPER_CONFORMANCE_ACCEPT=1` writes what came into the
//! scripts, to be read before it is believed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use regex::Regex;
use watchkeeper_conformance::{Kubectl, Outcome, Script, Server, Session, choice};

struct Result {
    name: String,
    failed: Vec<String>,
    commands: usize,
}

#[test]
fn kubectl_sees_what_the_scripts_say() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubectl");
    let _ = fs::remove_dir_all(&scratch);
    let kubectl = Kubectl::find(&scratch.join("../../conformance/bin")).unwrap();
    let server = Server::start(&scratch).unwrap();
    let queue = Mutex::new(scripts());
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(path) = next(&queue) {
                    results.lock().unwrap().push(run(&path, &server, &kubectl, &scratch));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by(|a, b| a.name.cmp(&b.name));
    for result in &results {
        println!("{:<28} {:>3} commands, {} failed", result.name, result.commands, result.failed.len());
        result.failed.iter().for_each(|report| println!("{report}"));
    }
    let commands: usize = results.iter().map(|result| result.commands).sum();
    let failed: usize = results.iter().map(|result| result.failed.len()).sum();
    println!("kubectl 1.{}: {} commands, {failed} failed", kubectl.minor, commands);
    assert_eq!(failed, 0, "commands whose results were not as expected");
    assert!(commands > 0, "nothing was tested");
}

fn next(queue: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    queue.lock().unwrap().pop()
}

fn scripts() -> Vec<PathBuf> {
    let only = choice("ONLY");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kubectl");
    let mut scripts: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "test"))
        .filter(|path| only.as_ref().is_none_or(|only| path.file_stem().unwrap().to_str() == Some(only)))
        .collect();
    scripts.sort();
    scripts
}

fn run(path: &Path, server: &Server, kubectl: &Kubectl, scratch: &Path) -> Result {
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = fs::read_to_string(path).unwrap();
    let script = Script::parse(&text);
    let old = kubectl.minor < Kubectl::OLDEST;
    let lacking = script.needs.iter().find(|need| match need.as_str() {
        "any-kubectl" => false,
        need => !server.has(need),
    });
    if let Some(need) = lacking {
        println!("{name}: left out, the server has no {need}");
        return Result { name, failed: Vec::new(), commands: 0 };
    }
    if old && !script.needs.iter().any(|need| need == "any-kubectl") {
        println!("{name}: left out, kubectl 1.{} is too old for it", kubectl.minor);
        return Result { name, failed: Vec::new(), commands: 0 };
    }
    let session = Session::start(&name, server, kubectl, scratch).unwrap();
    let outcomes = session.run(&script).unwrap();
    if choice("ACCEPT").is_some() {
        fs::write(path, accepted(&text, &script, &outcomes)).unwrap();
    }
    let commands = script.steps.iter().filter(|step| step.command.contains("kubectl ")).count();
    let failed =
        outcomes.into_iter().filter(|outcome| !outcome.passed).map(|outcome| outcome.report).collect();
    Result { name, failed, commands }
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
