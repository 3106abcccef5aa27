//! The part of the attacks that asks for no times: what has to be refused is refused, and what must go on goes on.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

#[test]
fn what_was_allowed_by_its_path_is_refused_and_a_poisonous_pod_does_not_stop_collection() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-bench-attacks"));
    command.args(["--only", "checks"]);
    // As for the conformance tests. Otherwise it is the one beside the program, which a test of the whole workspace builds.
    if let Some(server) = std::env::var("WATCHKEEPER_CONFORMANCE_SERVER").ok().filter(|path| !path.is_empty())
    {
        command.args(["--server", &format!("watchkeeper={server}")]);
    }
    let output = command.output().unwrap();
    let (table, faults) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{table}");
    assert!(output.status.success(), "{faults}");
    assert!(table.contains("/api/v1/secrets//scale"), "{table}");
}
