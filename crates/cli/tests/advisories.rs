//! `scripts/advisories`, which is part of `make lint`, says what it did and no more.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Runs the script with nothing in its path but what it needs, and a `cargo-deny` that is this script.
fn advisories(cargo_deny: Option<&str>) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    for program in ["bash", "dirname", "timeout"] {
        let places = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"]
            .map(|place| Path::new(place).join(program));
        let place =
            places.iter().find(|place| place.exists()).unwrap_or_else(|| panic!("{program} is installed"));
        symlink(place, directory.path().join(program)).unwrap();
    }
    if let Some(body) = cargo_deny {
        let program = directory.path().join("cargo-deny");
        fs::write(&program, format!("#!{}/bash\n{body}\n", directory.path().display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/advisories");
    let bash = directory.path().join("bash");
    let output = Command::new(bash).arg(script).env("PATH", directory.path()).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn advisories_are_checked_where_they_can_be_and_it_is_said_where_not() {
    let missing = "advisories: NOT CHECKED: cargo-deny is not installed (scripts/setup --deny)\n";
    assert_eq!(advisories(None), (true, missing.to_owned()));
    let offline = "advisories: NOT CHECKED: the database of RustSec cannot be fetched from here\n";
    assert_eq!(advisories(Some("exit 1")), (true, offline.to_owned()));
    let clean = "advisories: checked, none is known for what is in Cargo.lock\n";
    assert_eq!(advisories(Some("exit 0")), (true, clean.to_owned()));
    let found = r#"case "$*" in *" fetch "*) ;; *) echo "error[vulnerability]"; exit 1 ;; esac"#;
    assert_eq!(advisories(Some(found)), (false, "error[vulnerability]\n".to_owned()));
}
