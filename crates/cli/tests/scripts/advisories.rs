//! `scripts/advisories`, which is part of `make lint`, says what it did and no more.

use crate::machine::Machine;

/// Runs the script with a `cargo-deny` that is this text for bash.
fn advisories(cargo_deny: Option<&str>) -> (bool, String) {
    let machine = Machine::with(&["bash", "dirname", "timeout"]);
    let machine = match cargo_deny {
        Some(body) => machine.command("cargo-deny", body),
        None => machine,
    };
    let said = machine.run("advisories");
    (said.is_success, said.output)
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
