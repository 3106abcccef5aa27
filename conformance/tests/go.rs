//! client-go, controller-runtime and envtest see what the tests in `go/` say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use watchkeeper_conformance::{Server, TestOutcome, Verdict, binary, choice, tool};

#[test]
fn programs_in_go_see_what_their_tests_say() {
    if choice("PROGRAMS").is_none() {
        println!("LEFT OUT: the programs in Go; scripts/conformance runs everything");
        return;
    }
    let Some(go) = tool("go") else { return };
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
    let tests = temporary.join("../conformance/go.test");
    let built =
        Command::new(go).args(["test", "-c", "-o"]).arg(&tests).arg(".").current_dir(&folder).status();
    assert!(built.unwrap().success(), "the tests in go/ do not compile");

    let server = Server::start(&temporary.join("go")).unwrap();
    let mut program = Command::new(&tests);
    program.arg("-test.v").arg("-test.timeout=15m").current_dir(&folder);
    // What our binaries for envtest do besides what kube-apiserver does is tested, too.
    program.env("WATCHKEEPER_CONTROLLERS", "*");
    match assets(temporary) {
        Some(folder) => program.env("KUBEBUILDER_ASSETS", folder),
        None => program.arg("-test.skip=TestEnvtest|TestWebhooks"),
    };
    if let Some(only) = choice("ONLY") {
        program.arg(format!("-test.run={only}"));
    }
    let verdict = Verdict::of(&mut program, &server, outcome).unwrap();
    println!("{}", verdict.output);
    println!("Go: {} passed, {} failed, {} left out", verdict.passed, verdict.failed, verdict.skipped);
    assert!(verdict.is_success && verdict.failed == 0, "{}", verdict.output);
    assert!(verdict.passed > 0, "nothing was tested");
}

/// The folder of binaries for envtest: that of `WATCHKEEPER_CONFORMANCE_ASSETS`, or ours. None beside a running server:
/// what that has says nothing about others.
fn assets(temporary: &Path) -> Option<PathBuf> {
    if let Some(folder) = choice("ASSETS") {
        return Some(folder.into());
    }
    if choice("KUBECONFIG").is_some() {
        println!("envtest is left out: WATCHKEEPER_CONFORMANCE_ASSETS does not name a folder of binaries");
        return None;
    }
    let laid_out = Command::new(binary().unwrap())
        .args(["envtest", "--print-path", "--dir"])
        .arg(temporary.join("envtest"))
        .output()
        .unwrap();
    assert!(laid_out.status.success(), "{laid_out:?}");
    Some(String::from_utf8(laid_out.stdout).unwrap().trim_end().into())
}

fn outcome(line: &str) -> Option<TestOutcome> {
    let line = line.trim_start();
    [("--- PASS", TestOutcome::Passed), ("--- FAIL", TestOutcome::Failed), ("--- SKIP", TestOutcome::Skipped)]
        .into_iter()
        .find_map(|(begin, outcome)| line.starts_with(begin).then_some(outcome))
}
