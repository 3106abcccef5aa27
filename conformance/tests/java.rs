//! The fabric8 client for Java sees what `java/Conformance.java` says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::path::Path;
use std::process::Command;

use watchkeeper_conformance::{Server, TestOutcome, Verdict, choice, tool};

#[test]
fn the_java_client_sees_what_its_tests_say() {
    if choice("PROGRAMS").is_none() {
        println!("LEFT OUT: the program in Java; scripts/conformance runs everything");
        return;
    }
    let (Some(javac), Some(java)) = (tool("javac"), tool("java")) else { return };
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let libraries = temporary.join("../conformance/java");
    assert!(libraries.exists(), "{} is not there; scripts/setup installs it", libraries.display());
    let libraries = libraries.join("*").display().to_string();
    let scratch = temporary.join("java");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
    let server = Server::start(&scratch).unwrap();
    let classes = scratch.join("classes");
    let compiled = Command::new(javac)
        .args(["-cp", &libraries, "-d"])
        .arg(&classes)
        .args(["Conformance.java", "Tree.java"])
        .current_dir(&folder)
        .status();
    assert!(compiled.unwrap().success(), "the program in java/ does not compile");
    let mut program = Command::new(java);
    program.args(["-cp", &format!("{libraries}:{}", classes.display()), "Conformance"]).arg(&folder);
    let verdict = Verdict::of(&mut program, &server, outcome).unwrap();
    println!("{}", verdict.output);
    println!("Java: {} passed, {} failed", verdict.passed, verdict.failed);
    assert!(verdict.is_success && verdict.failed == 0, "{}", verdict.output);
    assert!(verdict.passed > 0, "nothing was tested");
}

fn outcome(line: &str) -> Option<TestOutcome> {
    if line.starts_with("ok      ") {
        Some(TestOutcome::Passed)
    } else {
        line.starts_with("FAILED  ").then_some(TestOutcome::Failed)
    }
}
