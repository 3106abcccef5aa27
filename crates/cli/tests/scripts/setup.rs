//! `scripts/setup`, which `make test` begins with: quiet where all is there, loud about what it installs and what it cannot.

use std::fs;
use std::path::Path;

use crate::machine::{Machine, Said};

const KUBECTL: &str = r#"echo '{"clientVersion": {'; echo '  "minor": "36",'; echo '}}'"#;

/// A machine with all that is needed. The Python client counts as installed.
fn complete() -> Machine {
    let machine = Machine::with(&[
        "bash", "cat", "cmp", "cp", "dirname", "env", "grep", "head", "mkdir", "paste", "realpath", "rm",
        "sed", "uname",
    ])
    .commands(&["cargo", "cc", "curl", "git", "initdb", "kill", "make", "nginx", "openssl", "ps", "rustup"])
    .commands(&["mariadb", "mariadb-install-db", "mariadbd"])
    .command("kubectl", KUBECTL)
    .command("rustc", "echo /")
    .command("id", "echo 0");
    let python = machine.target().join("conformance/python");
    fs::create_dir_all(&python).unwrap();
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/python/requirements.txt");
    fs::copy(wanted, python.join("requirements.txt")).unwrap();
    machine
}

/// Adds an apt-get that says what it is asked for.
fn with_apt(machine: Machine) -> Machine {
    machine.command("apt-get", r#"echo "apt-get $*" >&2"#)
}

fn refused(error: &str) -> Said {
    Said { is_success: false, output: String::new(), error: format!("setup: {error}\n") }
}

#[test]
fn where_everything_is_there_it_does_nothing_and_says_nothing() {
    let said = complete().run("setup");
    assert_eq!(said, Said { is_success: true, output: String::new(), error: String::new() });
}

#[test]
fn what_is_missing_is_named_and_installed_as_root_or_by_sudo() {
    let as_root = with_apt(complete()).without("curl").without("kill").run("setup");
    assert!(as_root.is_success, "{as_root:?}");
    assert_eq!(as_root.output, "setup: installs curl procps\n");
    assert_eq!(as_root.error, "apt-get update -qq\napt-get install -y -qq curl procps\n");

    let person = with_apt(complete()).without("curl").command("id", "echo 1000");
    let by_sudo = person.command("sudo", r#"echo sudo >&2; exec "$@""#).run("setup");
    assert!(by_sudo.is_success, "{by_sudo:?}");
    assert_eq!(by_sudo.error, "sudo\napt-get update -qq\nsudo\napt-get install -y -qq curl\n");
}

#[test]
fn what_cannot_be_installed_is_named_with_the_reason() {
    let no_apt = complete().without("openssl").run("setup");
    let reason = "there is no apt-get; install them, or what they are called here, and try again";
    assert_eq!(no_apt, refused(&format!("CANNOT INSTALL openssl: {reason}")));

    let no_sudo = with_apt(complete()).without("cc").command("id", "echo 1000").run("setup");
    let reason = "there is no sudo; run 'apt-get install build-essential' as root and try again";
    assert_eq!(no_sudo, refused(&format!("CANNOT INSTALL build-essential: {reason}")));

    let no_rust = complete().without("cargo").run("setup");
    assert_eq!(no_rust, refused("NO RUST TOOLCHAIN: install one with rustup and try again"));
}

#[test]
fn what_static_programs_need_is_installed_or_it_is_said_what_is_not_tested_then() {
    let missing = || complete().command("rustc", "echo /nowhere").command("uname", "echo riscv64");
    let said = missing().command("rustup", r#"echo "rustup $*" >&2"#).run("setup");
    assert!(said.is_success, "{said:?}");
    assert_eq!(said.output, "setup: installs the target riscv64-unknown-linux-musl\n");
    assert_eq!(said.error, "rustup --quiet target add riscv64-unknown-linux-musl\n");
    let said = missing().without("rustup").run("setup");
    let told = "setup: there is no riscv64-unknown-linux-musl and no rustup to install it: IMAGES ARE NOT BUILT IN TESTS\n";
    assert_eq!((said.is_success, said.output.as_str()), (true, told));
    let offline = missing().command("rustup", "exit 1").run("setup");
    assert!(offline.is_success && offline.output.ends_with("IMAGES ARE NOT BUILT IN TESTS\n"), "{offline:?}");
}

#[test]
fn an_old_kubectl_will_do_where_no_newer_one_can_be_had() {
    let said = complete().command("kubectl", &KUBECTL.replace("36", "20")).run("setup");
    assert!(said.is_success, "{said:?}");
    assert!(said.output.contains("kubectl is 1.20: THE SESSIONS FOR 1.30 AND NEWER ARE NOT RUN"), "{said:?}");
}
