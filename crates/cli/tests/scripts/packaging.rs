//! `scripts/test-packaging` says what it did not check, and of which commit a result is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

fn python(script: &str, arguments: &[&str], target: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
    let mut python = Command::new("python3");
    python.arg(script).args(arguments).env("CARGO_TARGET_DIR", target).env("PACKAGING_BUILT", "1");
    python.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn results_say_of_which_commit_they_are_and_what_is_missing_fails_a_whole_run() {
    let place = tempfile::tempdir().unwrap();
    let output = python("packaging/test_results.py", &[], place.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_machine_without_the_judges_is_told_what_they_did_not_judge() {
    // Our programs are there, and none of others.
    let target = tempfile::tempdir().unwrap();
    fs::create_dir(target.path().join("debug")).unwrap();
    symlink(env!("CARGO_BIN_EXE_watchkeeper"), target.path().join("debug/watchkeeper")).unwrap();
    let named = ["workflow", "manifests", "dockerfile"];
    let output = python("test-packaging", &named, target.path());
    let (told, last) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "those who name checks build what they need: {told}{last}");
    assert!(
        told.contains("workflow: NOT RUN: actionlint is not built: scripts/packaging-tools actionlint\n"),
        "{told}"
    );
    assert!(last.starts_with("NOT RUN: 3 of 3 checks. Nothing is known of:\n"), "{last}");
    for line in [
        "  manifests: kubeconform is not built: scripts/packaging-tools kubeconform\n",
        "  dockerfile: hadolint is not installed: scripts/packaging-tools python\n",
    ] {
        assert!(last.contains(line), "{last}");
    }

    let output = python("test-packaging", &["workflows"], target.path());
    let last = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{last}");
    assert!(
        last.starts_with("there is no workflows: the checks are deploy manifests ")
            && last.lines().count() == 1,
        "{last}"
    );
}
