//! Webhooks are asked what kube-apiserver asks them, and their answers have the same effect: `webhooks/cases.py` (admission) and
//! `webhooks/conversion.py` against their records.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use watchkeeper_conformance::{Server, choice};

#[test]
fn webhooks_are_asked_and_obeyed_as_by_the_real_server() {
    compare("cases");
}

#[test]
fn custom_resources_are_converted_as_by_the_real_server() {
    compare("conversion");
}

/// Has a script compare what our server does with its record.
fn compare(script: &str) {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let installed = temporary.join("../conformance/python/bin/python");
    let python = choice("PYTHON").map_or(installed, PathBuf::from);
    assert!(python.exists(), "{} is not there; scripts/setup installs it", python.display());
    // No garbage collector runs beside the server whose answers are recorded.
    let arguments = ["--controllers", "*,-garbage-collector-controller"].map(OsStr::new);
    let server = Server::start_with(&temporary.join("webhooks").join(script), &arguments).unwrap();
    let path = format!("{}/webhooks/{script}.py", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(&python)
        .args(["-B", &path, "compare"])
        .env("KUBECONFIG", server.kubeconfig())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
