//! The official Python client and kopf see what the tests in `python/` say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use watchkeeper_conformance::{Server, TestOutcome, Verdict, choice};

#[test]
fn the_programs_in_python_see_what_their_tests_say() {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let installed = temporary.join("../conformance/python/bin/python");
    let python = choice("PYTHON").map_or(installed, PathBuf::from);
    assert!(python.exists(), "{} is not there; scripts/setup installs it", python.display());
    let server = Server::start(&temporary.join("python")).unwrap();
    let mut program = Command::new(&python);
    program
        .args(["-B", "-m", "unittest", "discover", "--verbose", "--start-directory"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python"));
    let verdict = Verdict::of(&mut program, &server, outcome).unwrap();
    println!("{}", verdict.output);
    println!("Python: {} passed, {} failed, {} left out", verdict.passed, verdict.failed, verdict.skipped);
    assert!(verdict.is_success && verdict.failed == 0, "{}", verdict.output);
    assert!(verdict.passed > 0, "nothing was tested");
}

fn outcome(line: &str) -> Option<TestOutcome> {
    let (_, end) = line.rsplit_once("... ")?;
    match end.split(' ').next()? {
        "ok" => Some(TestOutcome::Passed),
        "FAIL" | "ERROR" => Some(TestOutcome::Failed),
        "skipped" => Some(TestOutcome::Skipped),
        _ => None,
    }
}
