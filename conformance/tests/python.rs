//! The official Python client sees what `python/test_client.py` says.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use watchkeeper_conformance::{Server, choice};

#[test]
fn the_python_client_sees_what_its_tests_say() {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scratch = temporary.join("python");
    let installed = temporary.join("../conformance/python/bin/python");
    let python = choice("PYTHON").map_or(installed, PathBuf::from);
    assert!(python.exists(), "{} is not there; scripts/setup installs it", python.display());
    let server = Server::start(&scratch).unwrap();
    let output = Command::new(&python)
        .args(["-B", "-m", "unittest", "discover", "--start-directory"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python"))
        .env("KUBECONFIG", server.kubeconfig())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    println!("{report}");
    assert!(output.status.success(), "{report}");
    assert!(report.contains("\nRan ") && !report.contains("\nRan 0 "), "nothing was tested");
}
